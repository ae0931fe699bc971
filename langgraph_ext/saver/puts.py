"""Puts: the transaction that stores a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from langgraph_ext.database import Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import values
from langgraph_ext.saver.config import Address, encode_metadata, text
from langgraph_ext.saver.fields import encode_fields, unknown_keys
from langgraph_ext.saver.recent import RecentPut
from langgraph_ext.saver.retention import rehome

__all__ = ["Put", "completed", "prepare", "store"]


class Put(NamedTuple):
    """A checkpoint on its way into the log: checked and encoded, but for what depends on its parent."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    metadata: bytes
    body: bytes
    packed: values.Packed
    stored_us: int
    planned: tuple[RecentPut, dict[str, object]] | None = None
    """What will be stored, and its row, if the parent is still as it is remembered."""


def prepare(
    address: Address,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: Mapping[str, Any],
    *,
    dumps: values.Dumps,
    stored_us: int,
) -> Put:
    """Check and encode a checkpoint, in the caller's thread.

    Args:
        address: Thread, namespace and parent.
        config: Gives keys to the metadata.
        checkpoint: What to store.
        metadata: Must be JSON.
        new_versions: The channels to encode; the parent should have the others.
        dumps: The serde's encoder.
        stored_us: When: microseconds since the epoch, UTC.

    Raises:
        InvalidArgument: Metadata, versions or names cannot be stored.
    """
    thread_id, checkpoint_ns, parent_id = address
    encoded_metadata, run_id = encode_metadata(config, metadata)
    held, more = checkpoint.get("channel_values", {}), unknown_keys(checkpoint)
    packed = values.pack(
        {**held, values.MORE: more} if more else held,
        checkpoint.get("channel_versions", {}),
        held if parent_id is None else new_versions,
        dumps,
    )
    return Put(
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=_id_of(checkpoint),
        parent_id=parent_id,
        run_id=run_id,
        metadata=encoded_metadata,
        body=encode_fields(checkpoint),
        packed=packed,
        stored_us=stored_us,
    )


def _id_of(checkpoint: Checkpoint) -> str:
    checkpoint_id = text(checkpoint.get("id"), "checkpoint id", "put")
    if not checkpoint_id:
        raise InvalidArgument("put: the checkpoint's id is empty; LangGraph gives each checkpoint a time-ordered UUID")
    return checkpoint_id


def completed(put: Put, dumps: values.Dumps) -> Put:
    """The same put with every value encoded, for a parent that may not have them."""
    return put._replace(packed=values.pack_all(put.packed, dumps))


def below(put: Put, parent: RecentPut | None, dumps: values.Dumps) -> Put:
    """The same put, planned below this parent, if it is remembered and has the values that are not encoded here.

    Otherwise `completed`, before anybody can change them.
    """
    if parent is not None and (layout := _lay_out(put, parent.places)) is not None:
        return put._replace(planned=_row(put, layout))
    return completed(put, dumps) if put.packed.others else put


def store(tx: Tx, put: Put, parent: RecentPut | None) -> RecentPut | None:
    """Store a checkpoint. Storing the same one again changes nothing; another under its id takes its place.

    Args:
        tx: The transaction.
        put: What to store.
        parent: The remembered parent it was planned below: saves a look, if it is still so.

    Returns:
        What was stored; None, and nothing is, if the parent lacks a value that `put` has not encoded: store it
        `completed`.
    """
    if parent is not None and put.planned is not None:
        stored, row = put.planned
        if tx.run("put_append", **row, parent_places=parent.encoded) == 1:
            return stored
    found = None
    if put.parent_id is not None:
        found = tx.maybe(
            "put_places", thread_id=put.thread_id, checkpoint_ns=put.checkpoint_ns, checkpoint_id=put.parent_id
        )
    layout = _lay_out(put, values.decode_places(found["places"]) if found else None)
    if layout is None:
        return None
    stored, row = _row(put, layout)
    if tx.run("put_insert", **row) == 0:
        _replace(tx, put, row)
    return stored


def _lay_out(put: Put, parent: values.Places | None) -> tuple[values.Places, bytes] | None:
    return values.lay_out(put.packed, put.checkpoint_id, put.parent_id, parent)


def _row(put: Put, layout: tuple[values.Places, bytes]) -> tuple[RecentPut, dict[str, object]]:
    places, data = layout
    stored = RecentPut(put.checkpoint_id, places, values.encode_places(places))
    return stored, {
        "thread_id": put.thread_id,
        "checkpoint_ns": put.checkpoint_ns,
        "checkpoint_id": put.checkpoint_id,
        "parent_id": put.parent_id,
        "run_id": put.run_id,
        "stored_us": put.stored_us,
        "metadata": put.metadata,
        "places": stored.encoded,
        "body": put.body,
        "data": data,
    }


def _replace(tx: Tx, put: Put, row: Mapping[str, object]) -> None:
    """The id is taken: by this very checkpoint (a repeated call), or by one that this one replaces."""
    place = Address(put.thread_id, put.checkpoint_ns, None)
    old = tx.one(
        "put_get", thread_id=place.thread_id, checkpoint_ns=place.checkpoint_ns, checkpoint_id=put.checkpoint_id
    )
    same = all(old[name] == row[name] for name in ("parent_id", "metadata", "places", "body", "data"))
    if same and old["kind"] == "checkpoint":
        return
    rehome(tx, place, {put.checkpoint_id})
    tx.run("put_delete", seq=old["seq"])
    tx.run("put_insert", **row)
