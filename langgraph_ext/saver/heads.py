"""Heads: several runs at once on one thread, of which one may go on (rule L15).

A run of LangGraph's loads a checkpoint and stores the ones that follow it. If another run has stored a child of that
checkpoint meanwhile, the second child would be a branch nobody asked for, and one of the two would be lost from sight.
So it is refused. What LangGraph does on purpose passes: a fork, a replay, an answer to an old question begin at a
checkpoint that already had a child when it was loaded, and `update_state` says that it is one.

Whether it had a child travels with the checkpoint's id, in the config that LangGraph carries from load to store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import tombstones
from langgraph_ext.saver import host

__all__ = ["Superseded", "is_guarded", "refuse_a_second_child", "refuse_an_orphan"]


class Superseded(str):
    """The id of a checkpoint that had a child when it was loaded. Equal to, and hashed as, the same text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and type(other) not in (str, Superseded):
            return NotImplemented  # another kind of text may know better
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if isinstance(other, str) and type(other) not in (str, Superseded):
            return NotImplemented
        return str.__ne__(self, other)

    __hash__ = str.__hash__


def is_guarded(config: RunnableConfig, metadata: Mapping[str, Any], checkpoint_ns: str) -> bool:
    """Whether a put may be the first child of its parent only: one of a running root graph that began at the head."""
    return (
        not checkpoint_ns
        and host.from_graph(config)
        and metadata.get("source") not in ("update", "fork")
        and type(config["configurable"].get("checkpoint_id")) is not Superseded
    )


def refuse_a_second_child(tx: Tx, thread_id: str, checkpoint_id: str, parent_id: str | None) -> None:
    """Raise if another run has gone on from the parent. The same checkpoint again is no other.

    Raises:
        ConflictError: It has (`thread_conflict`).
    """
    newest = tx.maybe("place_newest", thread_id=thread_id)
    if newest is None or newest["checkpoint_id"] in (checkpoint_id, parent_id):
        return
    found = (
        newest
        if parent_id is None
        else tx.maybe("place_child", thread_id=thread_id, parent_id=parent_id, checkpoint_id=checkpoint_id)
    )
    if found is None:
        return
    since = f"checkpoint {parent_id!r}, where this run began, has" if parent_id else "the thread was empty and has"
    raise ConflictError(
        f"thread {thread_id!r}: {since} got {found['checkpoint_id']!r} from another run meanwhile; this run's "
        "checkpoint was not stored, though its nodes may have run. Runs on one thread go one after the other: wait for "
        "the other, and invoke again. (A node that calls update_state on its own thread, or a stream that was left and "
        "at once followed by another call, makes two runs too.) "
        'LedgerSaver(…, concurrency="allow") stores both, as a fork',
        code="thread_conflict",
        details={"thread_id": thread_id, "parent_id": parent_id, "other_id": found["checkpoint_id"]},
    )


def refuse_an_orphan(tx: Tx, thread_id: str, checkpoint_id: str, parent_id: str) -> None:
    """Raise if a running graph goes on from a checkpoint that was deleted, with its run, say. The same again may come.

    Raises:
        ConflictError: It does (`thread_deleted`).
    """
    where = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    if tx.maybe("place_get", **where) is None:
        raise tombstones.deleted(thread_id, checkpoint_id, parent_id=parent_id)
