"""Keeping: what may stay of the ledger when a thread is deleted: its runs with their totals, and their events.

What holds payloads goes: what tasks wrote, results of attempts, questions and answers, effects with their receipts,
memos, messages; and of events what anybody has said in words of his own. A run that was open is cancelled: nobody can
go on with it.

What stays, stands under a name that no thread has (`kept_id`), so that a thread that begins anew under the old name has
nothing to do with it. Who reads it is shown the old one. Its checkpoints stay as bare rows, out of sight, because they
alone say which run a task belongs to, and in which node.
"""

from __future__ import annotations

from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx, worded_in
from langgraph_ext.ledger import runs
from langgraph_ext.ledger.agent_threads import thread_of
from langgraph_ext.ledger.forgetting import agent_roots_of, forget_agent_rows, forget_payloads, forget_thread
from langgraph_ext.ledger.node_paths import KEPT
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.runs import At

__all__ = ["DELETED", "end_open", "forget_kept", "is_kept", "keep_thread"]

DELETED = "thread_deleted"
"""Why a run is cancelled whose thread is deleted."""

_EMPTY = b""

_NOTHING = b"{}"


def end_open(tx: Tx, thread_id: str, *, now_us: int) -> None:
    """Cancel the open runs of a thread that is about to be deleted and kept, and those of its agent nodes' agents."""
    for root_id in agent_roots_of(tx, thread_id):
        end_open(tx, thread_of(root_id), now_us=now_us)
    for run in tx.all("runs_open_of_thread", thread_id=thread_id):
        at = At(thread_id, run["last_id"], now_us)
        runs.move(tx, run["run"], RunStatus.CANCELLED, at, details={"reason": DELETED})


def keep_thread(tx: Tx, thread_id: str, kept_id: str, *, seq: int, now_us: int) -> None:
    """Put aside what is kept of a thread, and delete the rest.

    Args:
        tx: The transaction that deletes the thread.
        thread_id: The thread. Its open runs were ended (`end_open`).
        kept_id: A name that no thread has, nor will have.
        seq: The event of its deletion: what stands before it is kept.
        now_us: Microseconds since the epoch, UTC.
    """
    _keep(tx, thread_id, kept_id, of=thread_id, seq=seq, now_us=now_us)


def _keep(tx: Tx, thread_id: str, kept_id: str, *, of: str, seq: int, now_us: int) -> None:
    for number, root_id in enumerate(agent_roots_of(tx, thread_id), start=1):
        forget_agent_rows(tx, root_id)
        _keep(tx, thread_of(root_id), f"{kept_id}.{number}", of=of, seq=seq, now_us=now_us)
    where = {"thread_id": thread_id, "seq": seq}
    for row in tx.all("kept_details", **where):
        _strip(tx, thread_id, row)
    tx.run("kept_calls_other", **where)
    tx.run("kept_calls_empty", **where, kept_id=kept_id, empty=_EMPTY)
    for row in tx.all("kept_puts", **where):
        _empty(tx, row, kept_id)
    tx.run("kept_events", **where, kept_id=kept_id)
    forget_payloads(tx, thread_id)
    tx.run("kept_model_calls_close", thread_id=thread_id, now_us=now_us)
    tx.run("kept_model_calls", thread_id=thread_id, kept_id=kept_id)
    tx.run("kept_visits", thread_id=thread_id, kept_id=kept_id)
    tx.run("kept_runs", thread_id=thread_id, kept_id=kept_id)
    tx.run("kept_add", kept_id=kept_id, thread_id=of, seq=seq)


def _empty(tx: Tx, row: Row, kept_id: str) -> None:
    """Leave of a checkpoint what tells to which run, and within which nodes, a task belongs."""
    metadata = _NOTHING
    if row["root_id"] is not None:
        metadata = canonical.encode({"parents": canonical.decode(row["metadata"]).get("parents") or {}})
    tx.run(
        "kept_put_empty",
        seq=row["seq"],
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        kept_id=kept_id,
        metadata=metadata,
        empty=_EMPTY,
        nothing=_NOTHING,
    )


def _strip(tx: Tx, thread_id: str, row: Row) -> None:
    """Take out of an event's details what is not an id, a code, a time or a number."""
    details: dict[str, Any] = canonical.decode(row["details"])
    worded = worded_in(row["event"], details) | {"part"}
    left = {name: value for name, value in details.items() if name not in worded}
    if row["event"] is not None and row["event"].startswith("interrupt."):
        asked = tx.maybe("interrupt_task", thread_id=thread_id, interrupt_id=details["interrupt_id"])
        if asked is not None:  # the question goes, which knew
            left["task_id"] = asked["task_id"]
    if left != details:
        tx.run("kept_details_put", seq=row["seq"], details=canonical.encode(left).decode())


def is_kept(tx: Tx, thread_id: str) -> bool:
    """Whether this is the name of no thread, but one under which the ledger of a deleted one was kept."""
    return thread_id.startswith(KEPT) and tx.maybe("kept_name", kept_id=thread_id) is not None


def forget_kept(tx: Tx, thread_id: str) -> int:
    """Delete what was kept of a thread at earlier deletions; returns how many of these there were."""
    found = [row["kept_id"] for row in tx.all("kept_ids", thread_id=thread_id)]
    for kept_id in found:
        tx.run("events_delete", thread_id=kept_id)
        forget_thread(tx, kept_id)
        tx.run("kept_delete", kept_id=kept_id)
    return len(found)
