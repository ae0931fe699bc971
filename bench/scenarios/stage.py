"""Stage: a case of one side, played in a folder of its own by process after process; and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.scenarios.acting import Act, Seen, act
from bench.scenarios.cases import Case, Place
from bench.scenarios.processes import played
from bench.scenarios.sides import Form, Side
from langgraph_ext.testing import calls_of

__all__ = ["Found", "Stage", "counted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a side has come to in a scenario."""

    told: str
    """In words."""
    counts: Mapping[str, int]
    """In numbers, by name."""
    sound: bool
    """Whether it is as `AgentNode` promises."""


class Stage:
    """One thread of one side.

    Args:
        side: Whose agent it is.
        case: What it is asked.
        folder: Is made.
        form: How its graph is invoked.
    """

    def __init__(self, side: Side, case: Case, folder: Path, form: Form) -> None:
        folder.mkdir()
        self.side, self.case, self.form = side, case, form
        self.place = Place(folder)

    def play(self, wanted: Act) -> Seen | None:
        """Have a new process do something; None if it was killed."""
        return self.play_at_once(wanted)[0]

    def play_at_once(self, *wanted: Act) -> list[Seen | None]:
        """As `play`, of several processes that are let go at one moment."""
        return played(act, *((self.side, self.case, self.place, self.form, each) for each in wanted))

    def killed(self, wanted: Act) -> None:
        """Have a new process do something, in the middle of which it is killed."""
        assert self.play(wanted) is None, f"{self.side.label}: nothing was killed"

    def seen(self, wanted: Act) -> Seen:
        """Have a new process do something and live."""
        found = self.play(wanted)
        assert found is not None, f"{self.side.label}: the process was killed"
        return found

    @property
    def times(self) -> list[int]:
        """How often each order was paid."""
        return [self.place.effects.count(order) for order in self.case.orders]

    @property
    def repeated(self) -> int:
        """How many payments there were besides the first of each order."""
        return sum(max(0, times - 1) for times in self.times)

    @property
    def lost(self) -> int:
        """How many orders were never paid."""
        return self.times.count(0)

    @property
    def strange(self) -> int:
        """How many payments there were of what nobody ordered."""
        counts = self.place.effects.counts()
        return sum(times for order, times in counts.items() if order not in self.case.orders)

    @property
    def dispatches(self) -> int:
        """How often the model was called, in all processes."""
        return len(calls_of(self.place.model_log))


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 effect`, `2 effects`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
