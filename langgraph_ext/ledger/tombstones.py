"""Tombstones: what is left of a deleted thread, so that it does not come again (rule S9).

A thread may be deleted while somebody still runs it, in this process or in another. Whatever he writes then is refused
by what is stored, and not by what anybody remembers: ids of checkpoints sort by age, so one that is not newer than all
that was deleted belongs to the old life of the thread, unless it is stored again; and so does one whose parent is gone.

    deleted        begun anew, from a checkpoint without a parent that is newer than the tombstone
    1 ─ 2 ─ 3 ✝    5 ─ 6
              └─ 4 refused: its parent is gone

The tombstone stays when the thread begins anew: late writers may come after that as well. It counts the deletions, so
that who knows in which life of the thread he began can say so (saver/lives.py).
"""

from __future__ import annotations

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError

__all__ = ["bury", "deleted", "life_of", "refuse_call", "refuse_missing", "refuse_put"]


def bury(tx: Tx, thread_id: str, newest_id: str, *, now_us: int) -> None:
    """Leave a tombstone.

    Args:
        tx: The transaction that deletes the thread.
        thread_id: The thread.
        newest_id: The greatest checkpoint id that is deleted.
        now_us: Microseconds since the epoch, UTC.
    """
    tx.run("tombstone_put", thread_id=thread_id, newest_id=newest_id, now_us=now_us)


def life_of(tx: Tx, thread_id: str) -> int:
    """Which life a thread is in: how often it was deleted."""
    row = tx.maybe("tombstone_get", thread_id=thread_id)
    return 0 if row is None else row["deletions"]


def refuse_put(
    tx: Tx,
    thread_id: str,
    checkpoint_ns: str,
    checkpoint_id: str,
    parent_id: str | None,
    root_id: str | None,
    *,
    life: int | None,
) -> None:
    """Refuse a checkpoint that comes too late, before anything of it is written.

    Args:
        tx: The open transaction.
        thread_id: Its thread.
        checkpoint_ns: Its namespace.
        checkpoint_id: Its id.
        parent_id: Its parent's, if it has one.
        root_id: Of a subgraph's: the root checkpoint that is being executed, if that is known.
        life: In which life of the thread the one who puts it began; None if that is not known.

    Raises:
        ConflictError: It does (`thread_deleted`).
    """
    tombstone = tx.maybe("tombstone_get", thread_id=thread_id)
    if tombstone is None or _is_stored(tx, thread_id, checkpoint_ns, checkpoint_id):
        return
    newest_id = tombstone["newest_id"]
    if parent_id is not None and not _is_stored(tx, thread_id, checkpoint_ns, parent_id):
        raise deleted(thread_id, checkpoint_id, parent_id=parent_id)
    if _is_of_before(tombstone, life):
        raise deleted(thread_id, checkpoint_id)
    if parent_id is None and (checkpoint_id <= newest_id or _is_of_deleted(tx, thread_id, root_id, newest_id)):
        raise deleted(thread_id, checkpoint_id)


def refuse_call(tx: Tx, thread_id: str, checkpoint_ns: str, checkpoint_id: str, *, life: int | None) -> None:
    """Refuse what a task wrote that comes too late: its checkpoint is deleted, or it is not of this life.

    Args:
        tx: The open transaction.
        thread_id: Its thread.
        checkpoint_ns: Its namespace.
        checkpoint_id: The checkpoint that it executes. One that is newer than all that was deleted may be stored later.
        life: As of `refuse_put`.

    Raises:
        ConflictError: It does (`thread_deleted`).
    """
    tombstone = tx.maybe("tombstone_get", thread_id=thread_id)
    if tombstone is None:
        return
    is_deleted = checkpoint_id <= tombstone["newest_id"]
    if _is_of_before(tombstone, life) or (is_deleted and not _is_stored(tx, thread_id, checkpoint_ns, checkpoint_id)):
        raise deleted(thread_id, checkpoint_id)


def refuse_missing(tx: Tx, thread_id: str, checkpoint_id: str) -> None:
    """Refuse to wait for a checkpoint that is not stored, and will not be, for its thread was deleted.

    Raises:
        ConflictError: It was (`thread_deleted`).
    """
    tombstone = tx.maybe("tombstone_get", thread_id=thread_id)
    if tombstone is not None and checkpoint_id <= tombstone["newest_id"]:
        raise deleted(thread_id, checkpoint_id)


def deleted(thread_id: str, checkpoint_id: str | None, *, parent_id: str | None = None) -> ConflictError:
    """The error that says that a write came too late.

    Args:
        thread_id: The thread.
        checkpoint_id: What was to be stored, or where something was to be.
        parent_id: Its parent, if that is what is gone.
    """
    what = f"checkpoint {checkpoint_id!r}" if parent_id is None else f"checkpoint {parent_id!r}, its parent,"
    was = "was deleted" if parent_id is None else f"was deleted before {checkpoint_id!r} came"
    return ConflictError(
        f"thread {thread_id!r}: {what} {was}, with its thread or its run; nothing was written. Nothing brings it back: "
        "invoke with new input, which begins the thread anew, or goes on from what is left of it",
        code="thread_deleted",
        details={"thread_id": thread_id, "checkpoint_id": checkpoint_id, "parent_id": parent_id},
    )


def _is_of_before(tombstone: Row, life: int | None) -> bool:
    """Whether it comes from who began before the thread was deleted last."""
    return life is not None and bool(tombstone["deletions"] > life)


def _is_of_deleted(tx: Tx, thread_id: str, root_id: str | None, newest_id: str) -> bool:
    """Whether a subgraph belongs to a root checkpoint that is deleted. One that is newer may be stored later."""
    return root_id is not None and root_id <= newest_id and not _is_stored(tx, thread_id, "", root_id)


def _is_stored(tx: Tx, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> bool:
    where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return tx.maybe("place_get", **where) is not None
