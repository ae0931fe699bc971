"""Rounds: every round runs every contestant once on every case, in an order that rotates.

The two contestants of a pair run one right after the other, so that a slow moment of the machine falls on both. Over
four rounds each pair runs first twice, and of each pair each contestant runs first twice.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from langgraph.types import Durability

from bench.cases import Case
from bench.savers import PAIRS, Contestant, Pair
from bench.sizes import Size

__all__ = ["Series", "in_order", "run_rounds"]


@dataclass(slots=True)
class Series:
    """What a case gave with one durability."""

    case: Case
    durability: Durability | None
    measured: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """By contestant: one set of numbers for each round, in the order of the rounds."""

    @property
    def title(self) -> str:
        return self.case.letter if self.durability is None else f"{self.case.letter} {self.durability}"

    def values(self, contestant: Contestant, measure: str) -> list[float]:
        """One number for each round."""
        return [numbers[measure] for numbers in self.measured[contestant.label]]


def in_order(pairs: Sequence[Pair], number: int) -> list[Contestant]:
    """The contestants in the order of round `number`, counted from 0."""
    turn = number % len(pairs)
    peer_first = number // len(pairs) % 2 == 0
    return [
        contestant
        for pair in (*pairs[turn:], *pairs[:turn])
        for contestant in ((pair.peer, pair.ours) if peer_first else (pair.ours, pair.peer))
    ]


def run_rounds(
    series: Iterable[Series], *, rounds: int, size: Size, root: Path, progress: Callable[[str], None]
) -> None:
    """Run everything, and append the numbers to the series."""
    series = list(series)
    for number in range(rounds):
        for place, each in enumerate(series, start=number * len(series) + 1):
            took = [f"{who.label} {_measure(each, who, size, root):.1f} s" for who in in_order(PAIRS, number)]
            progress(f"[{place}/{rounds * len(series)}] round {number + 1}, {each.title}: {', '.join(took)}")


def _measure(series: Series, contestant: Contestant, size: Size, root: Path) -> float:
    gc.collect()
    os.sync()  # what others left to be written is not paid for by the syncs of this one
    begun = perf_counter()
    with TemporaryDirectory(dir=root, prefix="bench-") as folder:
        numbers = series.case.run(contestant, Path(folder), series.durability, size)
    expected = [measure.name for measure in series.case.measures]
    assert list(numbers) == expected, f"case {series.case.letter} gave {list(numbers)}, not {expected}"
    series.measured.setdefault(contestant.label, []).append(numbers)
    return perf_counter() - begun
