"""Fences: who may write to a thread that an invocation holds (rule L13).

Each write of an attached invocation names the epoch of its lease, and is refused when that is no longer the thread's.
A checkpoint of a graph that is not attached is refused while another invocation holds the thread as a whole.
"""

from __future__ import annotations

from langgraph_ext.database import Tx
from langgraph_ext.errors import LeaseError
from langgraph_ext.ledger import leases

__all__ = ["UNATTACHED", "fence"]

UNATTACHED = 0
"""No lease has this epoch: that of a running graph whose invocation holds none."""


def fence(tx: Tx, thread_id: str, epoch: int | None, *, now_us: int) -> None:
    """Refuse a write that does not come from the thread's holder; None stands for one that anybody may make.

    Raises:
        LeaseError: The lease is another's by now (`lease_lost`), or another invocation holds the thread
            (`thread_busy`).
    """
    if epoch is None:
        return
    if epoch != UNATTACHED:
        leases.check(tx, thread_id, epoch)
        return
    lease = leases.holder(tx, thread_id, now_us=now_us)
    if lease is not None and lease.whole:
        raise LeaseError(
            f"thread {thread_id!r} is held by {lease.owner}, and this graph, which is not attached, runs on it too; "
            "its checkpoint was not stored. Attach it with with_ledger(graph), so that it waits, or is refused before "
            "it runs",
            code="thread_busy",
            retryable=True,
            details={"thread_id": thread_id, "epoch": lease.epoch},
        )
