"""Endings: an attempt that did not succeed is ended at once, in a commit of its own (rules L49, L53)."""

from __future__ import annotations

from collections.abc import Collection

from langgraph_ext.database import Tx
from langgraph_ext.ledger import attempts, control, effects, leases
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, Error
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.runs import At, move

__all__ = ["end", "fail"]

_CANCELLED = "cancelled"
"""The code of a refusal because the run was cancelled, or is to be."""


def end(
    tx: Tx,
    attempt: Attempt,
    target: AttemptStatus,
    *,
    error: Error,
    gives_back: bool,
    now_us: int,
    still_calling: Collection[str] = (),
) -> bool:
    """End an attempt whose body raised or was cancelled; what it has left started is in doubt.

    If it was refused something because its run was asked to end, that ends with it.

    Args:
        tx: The open transaction.
        attempt: As it was admitted.
        target: How it ended.
        error: What it raised.
        gives_back: Whether it holds the thread's lease by itself, and gives it back now.
        now_us: Microseconds since the epoch, UTC.
        still_calling: Its effects whose calls are still running.

    Returns:
        Whether it ended now; False if it stands otherwise by now.

    Raises:
        LeaseError: The thread is another's by now (`lease_lost`): that one gives the attempt up.
    """
    leases.check(tx, attempt.thread_id, attempt.epoch)
    ended = attempts.end(tx, attempt, target, now_us=now_us, error=error)
    effects.doubt_left(tx, [attempt.attempt_id], now_us=now_us, still_calling=still_calling)
    if ended and error[2] == _CANCELLED:
        control.see_to(tx, attempt.run, At(attempt.thread_id, tx.one("run_get", run=attempt.run)["last_id"], now_us))
    if gives_back:
        leases.give_back(tx, attempt.thread_id, attempt.epoch, now_us=now_us)
    return ended


def fail(tx: Tx, attempt_id: str, *, error: Error, gives_back: bool, now_us: int, root_id: str | None) -> None:
    """End an attempt whose end could not be settled, for a function of its own raised in there.

    Args:
        tx: The open transaction.
        attempt_id: The attempt; again, or of one that is gone, changes nothing.
        error: What was raised.
        gives_back: Whether it holds the thread's lease by itself.
        now_us: Microseconds since the epoch, UTC.
        root_id: The root checkpoint that the graph cannot go on from, if it is the root graph that was told; its run
            has failed. (A subgraph's node raises, and what comes of that is told by the task that runs it.)

    Raises:
        LeaseError: The thread is another's by now (`lease_lost`).
    """
    attempt = attempts.find(tx, attempt_id)
    if attempt is None or attempt.status is not AttemptStatus.RUNNING:
        return
    ended = end(tx, attempt, AttemptStatus.FAILED, error=error, gives_back=gives_back, now_us=now_us)
    if ended and root_id is not None:
        move(tx, attempt.run, RunStatus.FAILED, At(attempt.thread_id, root_id, now_us), error=error[:2])
