"""How far a crash test has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CrashProgress", "OnProgress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashProgress:
    """How far a crash test has come: before its first kill, and behind each."""

    done: int
    """Kills that were tried."""
    planned: int
    """Kills that will have been tried at its end, unless enough have findings before."""
    broken: int
    """Kills with findings."""
    seconds: float
    """Since the first kill."""

    @property
    def seconds_left(self) -> float | None:
        """How long the others will take if they are as quick; None before the first is done."""
        return self.seconds / self.done * (self.planned - self.done) if self.done else None


OnProgress = Callable[[CrashProgress], None]
