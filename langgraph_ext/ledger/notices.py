"""Notices: what an operator reads in the log `langgraph_ext`: ids and codes, and nothing of a run that goes well.

INFO     a thread was taken over, an attempt given up, the next one authorized, an effect in doubt resolved
WARNING  effects are in doubt: a run waits for somebody to say what came of them

Each is written when the transaction is committed that it tells of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

__all__ = ["authorized", "given_up", "in_doubt", "resolved", "taken_over"]

_LOGGER = logging.getLogger("langgraph_ext")


def taken_over(thread_id: str, epoch: int, why: str | None) -> None:
    """A lease that nobody gave back is another owner's; nothing is said if `why` is None."""
    if why is not None:
        _LOGGER.info("lease taken over: thread %r, epoch %d (%s)", thread_id, epoch, why)


def given_up(thread_id: str, attempt_ids: Iterable[str]) -> None:
    """Attempts of an owner that is gone are interrupted."""
    for attempt_id in attempt_ids:
        _LOGGER.info("attempt interrupted: thread %r, attempt %r (owner_lost)", thread_id, attempt_id)


def authorized(attempt_id: str) -> None:
    """The next attempt may act."""
    _LOGGER.info("recovery authorized: attempt %r", attempt_id)


def resolved(effect_id: str, status: str) -> None:
    """Somebody has found out what an effect came to."""
    _LOGGER.info("effect resolved: effect %r (%s)", effect_id, status)


def in_doubt(thread_id: str, attempt_id: str, effect_ids: Iterable[str]) -> None:
    """A run stops until somebody says what came of an attempt, or of its effects."""
    effects = ", ".join(map(repr, effect_ids)) or "none on record"
    _LOGGER.warning("in doubt: thread %r, attempt %r, effects %s (recovery_required)", thread_id, attempt_id, effects)
