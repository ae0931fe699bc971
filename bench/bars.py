"""Bars and goals: what the ratios to the peers must keep to (bar), and what they should reach (goal).

A ratio is LedgerSaver divided by its peer: SqliteSaver for the sync API, AsyncSqliteSaver for the async API. Of times
less is better, of rates more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.savers import Form

__all__ = ["BARS", "JUDGED_DURABILITIES", "JUDGED_ROUNDS", "Bar", "Verdict", "bar_of", "judge"]

JUDGED_ROUNDS = 7
"""Rounds below which a ratio is shown and not judged: a median of fewer is chance."""

JUDGED_DURABILITIES = (None, "sync", "async")
"""With "exit" the saver is called once at the end of a run, so that there is next to nothing to compare."""


class Verdict(StrEnum):
    """What became of a bar in one run."""

    GOAL = "goal reached"
    BAR = "bar met"
    MISSED = "MISSED"
    NO_BAR = "no bar"


@dataclass(frozen=True, slots=True)
class Bar:
    """The limits of one ratio."""

    bar: float
    goal: float | None = None
    more_is_better: bool = False

    @property
    def sign(self) -> str:
        """How a ratio has to stand to a limit."""
        return "≥" if self.more_is_better else "≤"

    def keeps(self, ratio: float, limit: float) -> bool:
        """Whether a ratio keeps to a limit; to be exactly at it is enough."""
        return ratio >= limit if self.more_is_better else ratio <= limit


_RAW = ("put", "put_writes(3)", "get latest, same thread", "get latest, any thread", "get by id", "list(10)")

BARS: dict[tuple[str, str, Form], Bar] = {
    ("A", "superstep", "sync"): Bar(0.9, 0.75),
    ("A", "superstep", "async"): Bar(0.6, 0.45),
    ("B", "last 10 turns", "sync"): Bar(0.85, 0.5),
    ("B", "last 10 turns", "async"): Bar(0.75, 0.5),
    ("B", "on disk", "sync"): Bar(0.1, 0.03),
    ("B", "on disk", "async"): Bar(0.1, 0.03),
    ("BD", "last 10 turns", "sync"): Bar(1.1, 0.9),
    ("BD", "last 10 turns", "async"): Bar(1.0, 0.8),
    ("C", "task", "sync"): Bar(0.85, 0.6),
    ("C", "task", "async"): Bar(0.45, 0.25),
    ("D", "supersteps", "sync"): Bar(1.25, 1.5, more_is_better=True),
    ("D", "supersteps", "async"): Bar(3.0, 4.0, more_is_better=True),
    **{("E", operation, "sync"): Bar(1.35, 1.0) for operation in _RAW},
    **{("E", operation, "async"): Bar(0.85, 0.6) for operation in _RAW},
    ("E", "list(10), filter", "sync"): Bar(0.4, 0.25),
    ("E", "list(10), filter", "async"): Bar(0.4, 0.25),
    ("E", "delete small", "sync"): Bar(1.6, 1.2),
    ("E", "delete small", "async"): Bar(0.85),
}
"""By case, measure and API."""


def bar_of(case: str, measure: str, form: Form, durability: str | None) -> Bar | None:
    """The bar of one ratio; None where it is information only."""
    return BARS.get((case, measure, form)) if durability in JUDGED_DURABILITIES else None


def judge(ratio: float, bar: Bar | None) -> Verdict:
    """How a ratio stands to its bar and goal; the ratio is taken as it is, not as it is printed."""
    if bar is None:
        return Verdict.NO_BAR
    if bar.goal is not None and bar.keeps(ratio, bar.goal):
        return Verdict.GOAL
    return Verdict.BAR if bar.keeps(ratio, bar.bar) else Verdict.MISSED
