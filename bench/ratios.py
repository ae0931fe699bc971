"""Ratios: the only thing that is claimed. Arithmetic without I/O.

The numbers of one round were taken within seconds of each other, so they are divided with each other and with no
others; the claim is the median of these paired ratios, and its spread is the smallest and the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from bench.bars import Bar, Verdict, bar_of, judge
from bench.cases import Measure
from bench.rounds import Series
from bench.savers import PAIRS, Pair

__all__ = ["Paired", "Row", "missed", "paired", "rows", "rows_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Two contestants compared."""

    ratio: float
    """Median of ours divided by the peer's, round by round."""
    low: float
    high: float
    ours: float
    """Median of the absolute numbers: context, not a claim."""
    peer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One ratio and what is asked of it."""

    series: Series
    measure: Measure
    pair: Pair
    paired: Paired
    bar: Bar | None
    verdict: Verdict

    @property
    def title(self) -> str:
        return f"{self.series.title}, {self.measure.name}, {self.pair.form} API"


def paired(ours: Sequence[float], peer: Sequence[float]) -> Paired:
    """Compare two contestants, given one positive number of each for every round.

    Raises:
        ValueError: There are no rounds, not as many of one as of the other, or a number is not positive.
    """
    if not ours or len(ours) != len(peer):
        raise ValueError(
            f"{len(ours)} rounds of ours and {len(peer)} of the peer; each needs as many, and at least one"
        )
    if min(*ours, *peer) <= 0:
        raise ValueError("a measured number is not positive, so there is no ratio")
    ratios = [mine / theirs for mine, theirs in zip(ours, peer, strict=True)]
    return Paired(ratio=median(ratios), low=min(ratios), high=max(ratios), ours=median(ours), peer=median(peer))


def rows_of(series: Series) -> Iterator[Row]:
    """Every measure of a case, for the sync API and for the async API."""
    for measure in series.case.measures:
        for pair in PAIRS:
            result = paired(series.values(pair.ours, measure.name), series.values(pair.peer, measure.name))
            bar = bar_of(series.case.letter, measure.name, pair.form, series.durability)
            verdict = judge(result.ratio, bar)
            yield Row(series=series, measure=measure, pair=pair, paired=result, bar=bar, verdict=verdict)


def rows(series: Iterable[Series]) -> list[Row]:
    """All rows of a run."""
    return [row for each in series for row in rows_of(each)]


def missed(rows: Iterable[Row]) -> list[Row]:
    """The rows whose bar was missed."""
    return [row for row in rows if row.verdict is Verdict.MISSED]
