"""Lost calls: what an earlier owner of a thread left behind of its model calls (rule L37).

Called in the transaction that takes the thread, by whoever takes it. An open call is closed as interrupted, and what it
may have used stays reserved. A call that was made before its run was on record is counted with that run, if it came to
be; so no crash hides what was spent.
"""

from __future__ import annotations

from langgraph_ext.database import Tx

__all__ = ["adopt_early", "close_left"]


def close_left(tx: Tx, thread_id: str, *, epoch: int, now_us: int) -> None:
    """Close the calls that owners before this epoch left open; may be repeated."""
    tx.run("model_calls_close_left", thread_id=thread_id, epoch=epoch, now_us=now_us)
    adopt_early(tx, thread_id, below=epoch)


def adopt_early(tx: Tx, thread_id: str, *, below: int) -> None:
    """Give the calls of the last hold below an epoch, made before their run was on record, to the run begun in it.

    Only the run at the head can be that one: nothing else runs on a thread that is held. If it began before, the run of
    these calls has never come to be stored, and they stay with the thread alone.
    """
    early = tx.maybe("model_calls_early", thread_id=thread_id)
    if early is None or early["epoch"] != below - 1:  # a hold in between could have begun the head's run
        return
    head = tx.maybe("run_being_run", thread_id=thread_id)
    if head is not None and head["started_us"] >= early["held_us"]:
        tx.run("model_calls_adopt", thread_id=thread_id, epoch=early["epoch"], run=head["run"])
