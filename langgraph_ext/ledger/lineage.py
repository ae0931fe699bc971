"""Lineage: whether what the tasks of a checkpoint have written is in a later one."""

from __future__ import annotations

from langgraph_ext import canonical
from langgraph_ext.database import Tx

__all__ = ["has_taken"]


def has_taken(tx: Tx, *, thread_id: str, checkpoint_ns: str, executed: str, later: str) -> bool | None:
    """Whether the step of a checkpoint came to its end on the way to a later one.

    Args:
        tx: The transaction.
        thread_id: The thread.
        checkpoint_ns: The namespace of both.
        executed: The checkpoint whose tasks have written something.
        later: The other one.

    Returns:
        Whether the checkpoint behind `executed` is that of its step; else somebody went on from there otherwise, with
        new input, say. None if it is not before `later`: that is on another branch, or is it.
    """
    checkpoint_id: str | None = later
    below: bytes | None = None
    while checkpoint_id is not None and checkpoint_id >= executed:  # ids sort by age, parents before their children
        if checkpoint_id == executed:
            return None if below is None else bool(canonical.decode(below).get("source") == "loop")
        row = tx.maybe("place_get", thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        if row is None:
            return None
        checkpoint_id, below = row["parent_id"], row["metadata"]
    return None
