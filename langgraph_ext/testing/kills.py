"""Kills: which ones are wanted, and whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.points import POINTS, Kill, Point
from langgraph_ext.testing.progress import CrashProgress, OnProgress
from langgraph_ext.testing.report import CrashFinding

__all__ = ["Chosen", "Turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which kills are wanted."""

    points: Sequence[Point]
    boundary: int | None = None
    statement: int | None = None

    @classmethod
    def of(cls, points: Sequence[Point], only: tuple[int, str] | None) -> Chosen:
        """Those that the caller of the harness names.

        Raises:
            InvalidArgument: It names none.
        """
        if isinstance(points, str) or not points or not set(points) <= set(POINTS):
            raise InvalidArgument(f"points is {points!r}; it must be some of {POINTS!r}")
        if only is None:
            return cls(points=[point for point in POINTS if point in points])
        boundary, named = only
        point, _, number = named.partition(":")
        found = [each for each in POINTS if each == point]
        if not found or boundary < 1 or (number and not (point == "inside" and number.isdecimal())):
            raise InvalidArgument(f"only is {only!r}; it must be such as (3, 'before') or (3, 'inside:2')")
        return cls(points=found, boundary=boundary, statement=int(number) if number else None)

    def kills(self, sizes: Sequence[int]) -> Iterator[Kill]:
        """The kills of a run whose transactions have so many statements."""
        for boundary in range(1, len(sizes) + 1) if self.boundary is None else [self.boundary]:
            for point in self.points:
                if point != "inside":
                    yield Kill(boundary=boundary, point=point)
                    continue
                size = sizes[boundary - 1] if boundary <= len(sizes) else 0
                for statement in range(1, size) if self.statement is None else [self.statement]:
                    yield Kill(boundary=boundary, point=point, statement=statement)


class Turns:
    """Gives kills out to workers, until enough of them have findings; takes the findings in. Threads may share it.

    Args:
        kills: In their order.
        max_broken: How many with findings are enough.
        on_progress: Told before the first, and behind each; by one thread at a time.
    """

    def __init__(self, kills: Sequence[Kill], max_broken: int, on_progress: OnProgress | None) -> None:
        self._kills = kills
        self._max_broken = max_broken
        self._on_progress = on_progress
        self._lock = Lock()
        self._given = 0
        self._stopped = False
        self._findings: dict[int, list[CrashFinding]] = {}
        self._started = time.monotonic()
        self._tell()

    @property
    def findings(self) -> list[CrashFinding]:
        """Those taken in, in the order of the kills."""
        return [finding for number in sorted(self._findings) for finding in self._findings[number]]

    @property
    def left_out(self) -> int:
        """How many kills nobody was given."""
        return len(self._kills) - self._given

    def next(self) -> tuple[int, Kill] | None:
        """The next kill and its number; None if there is none, or no more are wanted."""
        with self._lock:
            if self._stopped or self._broken() >= self._max_broken or self._given == len(self._kills):
                return None
            self._given += 1
            return self._given - 1, self._kills[self._given - 1]

    def tried(self, number: int, findings: list[CrashFinding]) -> None:
        """The kill of this number was tried, and this was found."""
        with self._lock:
            self._findings[number] = findings
            self._tell()

    def stop(self) -> None:
        """Give no more out."""
        self._stopped = True

    def _broken(self) -> int:
        return sum(map(bool, self._findings.values()))

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(
                CrashProgress(
                    done=len(self._findings),
                    planned=len(self._kills),
                    broken=self._broken(),
                    seconds=time.monotonic() - self._started,
                )
            )
