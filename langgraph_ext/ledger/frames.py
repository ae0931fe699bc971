"""Frames: what a body holds while its attempt runs, and the check that it still does (rule L52).

Every act of a frame (an effect, a call, a memo) looks, in its own transaction, whether its attempt is running, of this
run and under this epoch. Whoever was given up, has ended, or goes on in another process writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, find

__all__ = ["FrameKey", "check_frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameKey:
    """Names one go at an attempt, as its admission made it."""

    attempt_id: str
    run: int
    """The run's number."""
    epoch: int
    """The fencing epoch of the lease it runs under."""
    node_path: str
    iteration_path: tuple[int, ...]
    """The ordinals of the enclosing visits and of this one, outermost first."""


def check_frame(tx: Tx, frame: FrameKey) -> Attempt:
    """The attempt of a frame that may act; writes nothing.

    Raises:
        ConflictError: It may not: the attempt is not there, not running, of another run, or goes on under another epoch
            (`attempt_mismatch`).
    """
    attempt = find(tx, frame.attempt_id)
    if attempt is None:
        raise _mismatch(frame, "is not in this ledger: its thread or run was deleted")
    if attempt.run != frame.run:
        raise _mismatch(frame, f"is of run number {attempt.run}, not {frame.run}")
    if attempt.epoch != frame.epoch:
        raise _mismatch(frame, f"runs under epoch {attempt.epoch} now, and this is epoch {frame.epoch}")
    if attempt.status is not AttemptStatus.RUNNING:
        raise _mismatch(frame, f"is {attempt.status}, not running")
    return attempt


def _mismatch(frame: FrameKey, why: str) -> ConflictError:
    return ConflictError(
        f"attempt {frame.attempt_id!r} {why}; nothing was stored. Let this body end: what it has begun is on record, "
        "and whoever goes on with the thread finds it",
        code="attempt_mismatch",
        details={"attempt_id": frame.attempt_id, "run": frame.run, "epoch": frame.epoch},
    )
