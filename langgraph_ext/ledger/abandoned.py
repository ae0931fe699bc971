"""Abandoned: what an owner who is gone left running on a thread, seen before anybody takes the thread over."""

from __future__ import annotations

from langgraph_ext.database import Tx
from langgraph_ext.ledger import attempts, effects, leases, lost_calls

__all__ = ["give_up", "is_abandoned"]


def is_abandoned(tx: Tx, thread_id: str, *, now_us: int) -> bool:
    """Whether a thread's last lease was never given back, and its owner is gone, or let it expire."""
    return _left_epoch(tx, thread_id, now_us) is not None


def give_up(tx: Tx, thread_id: str, *, now_us: int) -> bool:
    """Give up the attempts that such an owner left running, as the next admission would; their effects are in doubt.

    An owner that was only stopped has not lost the thread by that, but these attempts: what it still tries as one of
    them is refused (rules L6, L52).

    Returns:
        Whether the thread was abandoned; if not, nothing happens.
    """
    left = _left_epoch(tx, thread_id, now_us)
    if left is None:
        return False
    given_up = attempts.interrupt_left(tx, thread_id, epoch=left + 1, now_us=now_us)
    effects.doubt_left(tx, given_up, now_us=now_us)
    lost_calls.close_left(tx, thread_id, epoch=left + 1, now_us=now_us)
    return True


def _left_epoch(tx: Tx, thread_id: str, now_us: int) -> int | None:
    """The epoch of such a lease; None if the thread is held, or was given back."""
    left = leases.left_epoch(tx, thread_id)
    return None if left is None or leases.holder(tx, thread_id, now_us=now_us) is not None else left
