"""Channel values: each is stored once, in the row of the first put that carries it, and pointed at by the later ones.

A put's head says where each value of its checkpoint lies:

    places = {"": {channel: [type, start, length]},            in this row's own data
              checkpoint_id: {channel: [type, start, length]}}  in the data of that earlier put, same namespace

A channel whose version is the parent's inherits the parent's place; any other is written here. Places are relative to
(thread, namespace), so a thread is copied row by row as it is, and versions are only ever compared, so they may be of
any kind and two forks may reach the same one.

This file is the only one that knows how values are laid out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["OWN", "Homes", "Packed", "Places", "lay_out", "moved", "pack", "sources", "unpack"]

Place = list[Any]
"""`[type, start, length]`: the serde's type tag, and the bytes in the data of the row that holds the value."""

Places = dict[str, dict[str, Place]]

Homes = dict[tuple[str, str], tuple[str, Place]]
"""`(deleted checkpoint id, channel) -> (checkpoint id, place)`: where a moved value lies now."""

OWN = ""
"""The source that stands for the row itself; no checkpoint id is empty."""

Dumps = Callable[[Any], tuple[str, bytes]]
Loads = Callable[[tuple[str, bytes]], Any]

_NO_VERSION = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The values of one put, those that must be written already encoded."""

    encoded: tuple[tuple[str, str, bytes], ...]
    """`(channel, type, bytes)` of the channels that are new in this put."""
    others: Mapping[str, Any]
    """Values that the parent should already have, not encoded."""
    versions: Mapping[str, Any]
    dumps: Dumps


def pack(values: Mapping[str, Any], versions: Mapping[str, Any], new: Iterable[str], dumps: Dumps) -> Packed:
    """Encode what is new; runs before the transaction, in the caller's thread."""
    fresh = set(new)
    encoded = tuple((channel, *dumps(value)) for channel, value in values.items() if channel in fresh)
    others = {channel: value for channel, value in values.items() if channel not in fresh}
    return Packed(encoded=encoded, others=others, versions=versions, dumps=dumps)


def lay_out(packed: Packed, parent_id: str | None, parent: Mapping[str, Any] | None) -> tuple[Places, bytes]:
    """Where each value goes, given the parent's head (None when there is no parent, or it is not stored).

    Returns:
        The places for this put's head, and its own data. A value the parent does not have at this version is written
        here, so a checkpoint is always read back whole.
    """
    inherited = _inherited(packed, parent_id, parent) if packed.others and parent_id and parent else {}
    encoded = list(packed.encoded)
    if packed.others:
        known = {channel for part in inherited.values() for channel in part}
        encoded += [(channel, *packed.dumps(value)) for channel, value in packed.others.items() if channel not in known]
    own: dict[str, Place] = {}
    start = 0
    for channel, kind, data in encoded:
        own[channel] = [kind, start, len(data)]
        start += len(data)
    places = {OWN: own, **inherited} if own else inherited
    return places, b"".join(data for _, _, data in encoded)


def _inherited(packed: Packed, parent_id: str, parent: Mapping[str, Any]) -> Places:
    theirs: Mapping[str, Any] = parent.get("channel_versions", {})
    inherited: Places = {}
    for source, part in parent["places"].items():
        mine = {
            channel: place
            for channel, place in part.items()
            if channel in packed.others and theirs.get(channel, _NO_VERSION) == packed.versions.get(channel)
        }
        if mine:
            inherited[source or parent_id] = mine
    return inherited


def sources(places: Places) -> Iterator[str]:
    """The other checkpoints that hold values of this one."""
    return (source for source in places if source != OWN)


def unpack(places: Places, data_of: Mapping[str, bytes], loads: Loads) -> dict[str, Any]:
    """Decode every value.

    Args:
        places: From the put's head.
        data_of: The data of each source, the put's own under `OWN`.
        loads: The serde's decoder.
    """
    values: dict[str, Any] = {}
    for source, part in places.items():
        data = data_of[source]
        for channel, (kind, start, length) in part.items():
            values[channel] = loads((kind, data[start : start + length]))
    return values


def moved(
    places: Places, data: bytes, doomed: Mapping[str, bytes], homes: Homes, checkpoint_id: str
) -> tuple[Places, bytes]:
    """This put's layout once the rows in `doomed` are gone.

    The first survivor that still needs a value takes it in; `homes` remembers where, for the survivors after it.

    Args:
        places: From the put's head.
        data: The put's own data.
        doomed: Data of each row that is about to be deleted, by checkpoint id.
        homes: Filled as survivors are visited.
        checkpoint_id: This put.
    """
    kept: Places = {source: dict(part) for source, part in places.items() if source not in doomed}
    for source, part in places.items():
        if source not in doomed:
            continue
        for channel, (kind, start, length) in part.items():
            if (source, channel) not in homes:
                homes[source, channel] = (checkpoint_id, [kind, len(data), length])
                data += doomed[source][start : start + length]
            home, place = homes[source, channel]
            kept.setdefault(OWN if home == checkpoint_id else home, {})[channel] = place
    return kept, data
