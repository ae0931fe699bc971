"""DeltaChannel history: what one channel's ancestors wrote, back to the nearest stored value.

A DeltaChannel stores a value only now and then; LangGraph rebuilds it from the writes of the checkpoints in between.
The walk (ancestors.py) passes through ancestors that prune hid, and reads each ancestor once for all channels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.saver import values
from langgraph_ext.saver.ancestors import Ancestor, Page, calls_at, pages_above
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.fields import decode_fields
from langgraph_ext.saver.host import DELTA_COUNTERS
from langgraph_ext.saver.sealing import Seals, seals_at
from langgraph_ext.saver.strands import Strands
from langgraph_ext.saver.writes import LargeWrites, merge, taken_answers

__all__ = ["Step", "histories", "lineage", "unseeded", "walk"]


class Step(NamedTuple):
    """One ancestor on the path: what it wrote, and the stored values it ends some channels with."""

    calls: list[Row]
    taken: Collection[int]
    written: LargeWrites
    seeds: Mapping[str, tuple[str, bytes]]
    seals: Seals | None


def walk(tx: Tx, address: Address, channels: Sequence[str]) -> list[Step]:
    """What the ancestors of the checkpoint at `address` have of these channels, nearest first, as far as needed."""
    target = address.checkpoint_id
    if target is None:
        newest = tx.maybe("put_latest", **address.namespace)
        target = newest["checkpoint_id"] if newest else None
    steps: list[Step] = []
    remaining = set(channels)
    keys = {channel: canonical.encode(channel) for channel in remaining}
    strands = Strands(tx)
    for page in pages_above(tx, address.namespace, target):
        seeds: list[dict[str, tuple[str, bytes]]] = []
        for above in page.found:
            named = {channel for channel in remaining if keys[channel] in above.places}
            seeds.append(_seeds(tx, address, above, named, strands) if named else {})
            if seeds[-1]:
                remaining -= seeds[-1].keys()
                if not remaining:
                    break
        steps += _steps(tx, address, page, seeds, strands)
        if not remaining:
            break
    return steps


def _seeds(
    tx: Tx, address: Address, above: Ancestor, channels: set[str], strands: Strands
) -> dict[str, tuple[str, bytes]]:
    """The values of these channels that a checkpoint has."""
    where, seeds = address.namespace, {}
    seals = seals_at(tx, where, above.checkpoint_id)
    for source, part in values.decode_places(above.places).items():
        for channel in channels.intersection(part):
            place = part[channel]
            if values.is_grown(place):
                head = values.head_in(channel, place, seals)
                seeds[channel] = place[1], strands.body(where, channel, place[3], head)
            else:
                row = tx.one("put_data", **where, checkpoint_id=source or above.checkpoint_id)
                seeds[channel] = values.encoded_value(channel, place, row["data"], seals)
    return seeds


def _steps(
    tx: Tx, address: Address, page: Page, seeds: Sequence[Mapping[str, tuple[str, bytes]]], strands: Strands
) -> Iterator[Step]:
    """The steps of a page's first ancestors, as many as there are seeds, but for those that have nothing to say."""
    where = address.namespace
    for above, calls, seed in zip(page.found, calls_at(tx, where, page, len(seeds)), seeds, strict=False):
        if calls or seed:
            seals = seals_at(tx, where, above.checkpoint_id)
            taken, written = taken_answers(tx, address.thread_id, calls), strands.written(where, calls, seals)
            yield Step(calls, taken, written, seed, seals)


def lineage(tx: Tx, address: Address, checkpoint_id: str | None) -> Iterator[tuple[str, values.Places]]:
    """`(id, places)` of the stored ancestors of a checkpoint, nearest first, each once (parents may form a loop)."""
    for page in pages_above(tx, address.namespace, checkpoint_id):
        for above in page.found:
            yield above.checkpoint_id, values.decode_places(above.places)


def histories(
    steps: Sequence[Step], channels: Sequence[str], loads: Callable[[tuple[str, bytes]], Any]
) -> dict[str, DeltaChannelHistory]:
    """Decode a walk: for each channel its writes, oldest first, and its seed if the walk met one."""
    writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    names = {channel: canonical.encode(channel) for channel in channels}
    for step in steps:
        if any(name in call["body"] for call in step.calls for name in names.values()):
            for write in reversed(merge(step.calls, loads, step.taken, step.written, names, step.seals)):
                writes[write[1]].append(write)
        for channel, encoded in step.seeds.items():
            seeds[channel] = loads(encoded)
            names.pop(channel, None)
    found: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        found[channel] = {"writes": writes[channel][::-1]}
        if channel in seeds:
            found[channel]["seed"] = seeds[channel]
    return found


def unseeded(tx: Tx, address: Address, row: Row) -> set[str]:
    """The DeltaChannels of a put whose value is not stored with it, so that it needs its ancestors."""
    counters = canonical.decode(row["metadata"]).get(DELTA_COUNTERS)
    if not counters:
        return set()
    places = values.decode_places(row["places"])
    base = None
    if (source := values.base_source(places)) is not None:
        where = address.namespace
        data = tx.one("put_data", **where, checkpoint_id=source or row["checkpoint_id"])["data"]
        base = values.base_in(places, {source: data}, seals_at(tx, where, row["checkpoint_id"]))
    written = decode_fields(row["body"], base).get("channel_versions", {})
    return {channel for channel in counters if channel in written} - values.channels_of(places)
