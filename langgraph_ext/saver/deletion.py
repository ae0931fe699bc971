"""Deletion: whole threads and runs, and copying a thread; the rows are taken away in retention.py."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import forgetting, keeping, open_ends, tombstones
from langgraph_ext.ledger.node_paths import KEPT
from langgraph_ext.ledger.runs import is_apart
from langgraph_ext.saver import copying, strands
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.retention import newest_stored, puts_of, say, space_of, take_away

__all__ = ["copy_thread", "delete_for_runs", "delete_thread", "to_delete"]


def delete_thread(tx: Tx, thread_id: str, *, keep_as: str | None = None, stored_us: int) -> bool:
    """Delete everything of a thread, in all its namespaces, and leave a tombstone (rule S9).

    An event takes its place, behind all that goes. The row of its lease stays: no epoch comes again.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        keep_as: A name that nobody has, under which runs, totals and events are kept, without payloads; None: they go,
            too, with those that were kept at earlier deletions.
        stored_us: Now: microseconds since the epoch, UTC.

    Returns:
        Whether there was anything.

    Raises:
        LeaseError: Somebody holds it, or one of its agents, under a live lease (`thread_busy`).
    """
    roots = forgetting.agent_roots_of(tx, thread_id)
    lapsed = open_ends.refuse_held(tx, thread_id, roots, now_us=stored_us)  # who holds it may have stored nothing yet
    found = tx.maybe("thread_exists", thread_id=thread_id)
    known = forgetting.newest_known(tx, thread_id, roots)  # its checkpoints may be gone, or were never stored
    if found is not None or known is not None:
        stored_id = newest_stored(tx, thread_id)
        tombstones.bury(tx, thread_id, max(stored_id, known or ""), now_us=stored_us)
        open_ends.end_lapsed(tx, lapsed, now_us=stored_us)
        if keep_as is not None:
            keeping.end_open(tx, thread_id, now_us=stored_us)
        seq = say(tx, "thread.deleted", thread_id, stored_id, stored_us)
        if found is not None and found["strand"] is not None:
            strands.delete(tx, thread_id)
        if keep_as is not None:
            keeping.keep_thread(tx, thread_id, f"{KEPT}{keep_as}", seq=seq, now_us=stored_us)
            return True
        tx.run("thread_delete", thread_id=thread_id, seq=seq)
        forgetting.forget_thread(tx, thread_id, roots)
    elif keep_as is not None:
        return False
    return keeping.forget_kept(tx, thread_id) > 0 or found is not None or known is not None


def to_delete(tx: Tx, thread_id: str) -> int:
    """How many checkpoints of a thread are listed, which `delete_thread` would delete."""
    number: int = tx.one("puts_listed", thread_id=thread_id)["puts"]
    return number


def delete_for_runs(tx: Tx, run_ids: Sequence[str], *, stored_us: int) -> None:
    """Delete the checkpoints of these runs, with their writes; every other checkpoint keeps its state.

    A run of which no checkpoint is left, as it has none any more, goes from the ledger.
    """
    named = set(run_ids)
    namespaces = {
        (row["thread_id"], row["checkpoint_ns"])
        for run_id in sorted(named)
        for row in tx.all("namespaces_of_run", run_id=run_id)
    }
    begun = (tx.maybe("run_named", run_id=run_id) for run_id in sorted(named))
    threads = {run["thread_id"] for run in begun if run is not None and _is_bare(tx, run)}
    for thread_id in sorted(threads | {thread_id for thread_id, _ in namespaces}):
        stamp = say(tx, "thread.pruned", thread_id, newest_stored(tx, thread_id), stored_us)
        addresses = [Address(*each, None) for each in sorted(namespaces) if each[0] == thread_id]
        found = ((address, puts_of(tx, address)) for address in addresses)
        take_away(tx, [space_of(tx, address, rows, _of_runs(rows, named)) for address, rows in found], stamp=stamp)
        forgetting.forget_undone(tx, thread_id, named)


def _is_bare(tx: Tx, run: Row) -> bool:
    """Whether a graph's run has no checkpoint any more, and is not what was kept of a deleted thread."""
    return not is_apart(run) and not run["deleted_thread"] and tx.maybe("run_place", run=run["run"]) is None


def _of_runs(rows: Sequence[Row], run_ids: set[str]) -> set[str]:
    return {row["checkpoint_id"] for row in rows if row["run_id"] in run_ids}


def copy_thread(tx: Tx, source: str, target: str, *, stored_us: int) -> None:
    """Copy a thread: all namespaces, checkpoints, hidden ancestors and writes. The copy belongs to no run.

    Raises:
        InvalidArgument: The target already has rows; copying into it would mix two histories.
    """
    if tx.maybe("thread_exists", thread_id=target) is not None:
        if tx.repeated and tx.one("thread_copied", target=target, stored_us=stored_us)["others"] == 0:
            return  # an earlier try of this very call was committed
        raise InvalidArgument(
            f"copy_thread: thread {target!r} is not empty; name a new thread, or delete it first",
            details={"thread_id": target},
        )
    if tx.sealer is None:
        tx.run("thread_copy", source=source, target=target, stored_us=stored_us)
    else:
        copying.copy_rows(tx, source, target, stored_us=stored_us)
    strands.copy(tx, source, target, stamp=tx.one("log_last")["seq"])
