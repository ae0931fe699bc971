"""Active time: for how long a run was being run by attached invocations (rule L38).

It counts from the moment an invocation takes its thread's lease until it gives it back; between invocations, while the
run waits for an answer, nothing counts. After a crash it counts until the lease would have expired, at the most.
"""

from __future__ import annotations

from langgraph_ext.database import Tx

__all__ = ["count"]


def count(tx: Tx, thread_id: str, *, since_us: int, until_us: int) -> None:
    """An invocation held a thread for so long: its run, the one at the head, was active. Times in microseconds, UTC."""
    active_us = max(until_us - since_us, 0)
    tx.run("run_count_active", thread_id=thread_id, active_us=active_us, since_us=since_us)
