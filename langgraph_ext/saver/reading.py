"""Reading checkpoints: transactions that fetch rows, and the decoding of them outside.

A `Stored` is what one snapshot of the database says about a checkpoint, still encoded; `decode` turns it into
LangGraph's `CheckpointTuple` in the caller's thread, when the connection is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import tombstones
from langgraph_ext.saver import values
from langgraph_ext.saver.config import Address, config_of
from langgraph_ext.saver.fields import decode_fields
from langgraph_ext.saver.growing import NOTHING
from langgraph_ext.saver.heads import Superseded
from langgraph_ext.saver.sealing import Seals, seals_at
from langgraph_ext.saver.strands import Strands
from langgraph_ext.saver.writes import LargeWrites, merge, taken_answers

__all__ = ["Sources", "Stored", "decode", "fetch", "load", "with_parts"]


@dataclass(frozen=True, slots=True)
class Stored:
    """One checkpoint as fetched: its row, where its values lie, the data of every row that holds one, its calls."""

    row: Row
    places: values.Places
    data_of: Mapping[str, bytes]
    large: Mapping[str, bytes]
    """Its large values, by channel."""
    calls: list[Row]
    taken: Collection[int]
    """Sequence numbers of the calls whose answers were taken."""
    written: LargeWrites
    """The large writes of its calls."""
    seals: Seals | None
    """Opens all of it; None if the database is plain."""
    superseded: bool = False
    """Whether it had a child, as far as somebody asked."""


def fetch(tx: Tx, address: Address) -> Stored | None:
    """The checkpoint at `address`, or the newest of its namespace; None when there is none."""
    where = address.namespace
    if address.checkpoint_id is None:
        row = tx.maybe("put_latest", **where)
    else:
        row = tx.maybe("put_get", **where, checkpoint_id=address.checkpoint_id)
    if row is None or not row["listed"]:
        return None
    stored = with_parts(tx, row, Sources(tx))
    if address.checkpoint_id is None or address.checkpoint_ns:
        return stored  # the newest has no child, and only root graphs are asked (heads.py)
    named = {"thread_id": address.thread_id, "parent_id": address.checkpoint_id}
    child = tx.maybe("place_child", **named, checkpoint_id="")
    return stored if child is None else replace(stored, superseded=True)


def load(tx: Tx, address: Address) -> tuple[Stored | None, int]:
    """As `fetch`, with the life that the thread is in (lives.py)."""
    stored = fetch(tx, address)
    return stored, tombstones.life_of(tx, address.thread_id) if stored is None else stored.row["life"] or 0


def with_parts(tx: Tx, row: Row, sources: Sources) -> Stored:
    """A put's row with what belongs to it; `sources` may be shared by the checkpoints of one page."""
    places = values.decode_places(row["places"])
    thread_id, checkpoint_ns = row["thread_id"], row["checkpoint_ns"]
    data_of, grown = sources.data_behind(row, places), values.grown_in(places)
    large = sources.large(row, grown) if grown else NOTHING
    calls = tx.all("writes_of", thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=row["checkpoint_id"])
    seals = seals_at(tx, row)
    taken, written = taken_answers(tx, thread_id, calls), sources.strands.written(row, calls, seals)
    return Stored(row, places, data_of, large, calls, taken, written, seals)


class Sources:
    """Where values lie, read in one transaction and each once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._data: dict[tuple[str, str, str], bytes] = {}
        self.strands = Strands(tx)

    def data_behind(self, row: Row | Mapping[str, Any], places: values.Places) -> dict[str, bytes]:
        """The data of every row that holds a value of this put, by source."""
        thread_id, checkpoint_ns = row["thread_id"], row["checkpoint_ns"]
        data_of = {values.OWN: row["data"]}
        for source in values.sources(places):
            key = (thread_id, checkpoint_ns, source)
            if key not in self._data:
                where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": source}
                self._data[key] = self._tx.one("put_data", **where)["data"]
            data_of[source] = self._data[key]
        return data_of

    def large(self, row: Row | Mapping[str, Any], grown: Mapping[str, values.Place]) -> dict[str, bytes]:
        """The large values of a put, by channel as their places are given."""
        where = {"thread_id": row["thread_id"], "checkpoint_ns": row["checkpoint_ns"]}
        seals = seals_at(self._tx, row)
        heads = {channel: values.head_in(channel, place, seals) for channel, place in grown.items()}
        return {channel: self.strands.body(where, channel, grown[channel][3], head) for channel, head in heads.items()}


def decode(
    stored: Stored, loads: Callable[[tuple[str, bytes]], Any], *, config: RunnableConfig | None = None
) -> CheckpointTuple:
    """The checkpoint as LangGraph wants it; `config` is kept as its address when the caller gave one."""
    row = stored.row
    held = values.unpack(stored.places, stored.data_of, stored.large, loads, stored.seals)
    more = held.pop(values.MORE, {})
    thread_id, checkpoint_ns = row["thread_id"], row["checkpoint_ns"]
    parent_id = row["parent_id"]
    checkpoint = {
        "id": row["checkpoint_id"],
        **decode_fields(row["body"], values.base_in(stored.places, stored.data_of, stored.seals)),
        "channel_values": held,
        **more,
    }
    config = config or config_of(thread_id, checkpoint_ns, row["checkpoint_id"])
    if stored.superseded:
        config = {
            **config,
            "configurable": {**config["configurable"], "checkpoint_id": Superseded(row["checkpoint_id"])},
        }
    return CheckpointTuple(
        config=config,
        checkpoint=checkpoint,  # type: ignore[arg-type]
        metadata=canonical.decode(row["metadata"]),
        parent_config=config_of(thread_id, checkpoint_ns, parent_id) if parent_id else None,
        pending_writes=merge(stored.calls, loads, stored.taken, stored.written, seals=stored.seals),
    )
