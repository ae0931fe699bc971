"""Time and ids for tests: the same ones each time. Transactions take both as arguments, so nothing need be patched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

__all__ = ["FixedClock", "fixed_ids"]


class FixedClock:
    """A clock that stands still until it is told to go on; called, it says the time.

    Args:
        now_us: Its first time, in microseconds since the epoch, UTC; by default 2023-11-14T22:13:20Z.
    """

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """The time: microseconds since the epoch, UTC."""
        return self._now_us

    def advance(self, seconds: float = 0.0, *, us: int = 0) -> int:
        """Go on by so much (or back, by a negative amount), rounded to a microsecond; the time then."""
        with self._lock:
            self._now_us += round(seconds * 1_000_000) + us
            return self._now_us


def fixed_ids(prefix: str = "id", *, first: int = 1) -> Callable[[], str]:
    """A source of ids that counts: `id-000001`, `id-000002`, …; safe in any thread.

    Args:
        prefix: What each id begins with.
        first: The number of the first one.
    """
    numbers = count(first)
    return lambda: f"{prefix}-{next(numbers):06}"
