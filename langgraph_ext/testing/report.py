"""What a crash test found: frozen records, a table to read, and a message that says what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent

from langgraph_ext.render import Column, Fit, Line, Part, escape, table

__all__ = ["CrashFinding", "CrashReport", "lines_of"]

_COLUMNS = (
    Column("BOUNDARY", "label", to_the_right=True),
    Column("POINT"),
    Column("FINDING", "label"),
    Column("KILLED", at_least=6),
    Column("WHAT WAS WRONG"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashFinding:
    """Something that was wrong after one kill."""

    boundary: int
    """Number of the transaction, from 1; 0 for the undisturbed run."""
    point: str
    """`before`, `inside:N` (after N of its statements), `after`; `undisturbed` where nobody was killed."""
    code: str
    """`effect_repeated`, `effect_missing`, `effect_unexpected`, `run_status`, `raised`, `died`, `hangs`, or
    `ledger:CODE` with a code of `RunLedger.verify`."""
    transaction: str
    """What was killed, in words: the events of the transaction, or else its statements; inside, between which two."""
    message: str
    """What was wrong."""
    database: str
    """The file as it was left, with the effect log beside it (`….effects`)."""
    output: str
    """The end of what the processes printed."""

    @property
    def only(self) -> tuple[int, str]:
        """What repeats just this kill: `crash_at_every_commit(…, only=finding.only)`."""
        return self.boundary, self.point


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """What came out when a scenario was killed at its durable boundaries."""

    scenario: str
    """`module:function`."""
    boundaries: int
    """Transactions that the undisturbed run commits."""
    kills: int
    """Processes that were killed at their point."""
    not_reached: int
    """Processes that ended by themselves before they came to their point: the number of commits varies."""
    left_out: int
    """Kills that were not tried, because enough others had findings (`max_broken`)."""
    findings: tuple[CrashFinding, ...]
    """What was wrong, by boundary and point."""
    seconds: float
    """How long it took."""

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def first_broken(self) -> CrashFinding | None:
        """The first finding at the lowest boundary; None if there is none."""
        return self.findings[0] if self.findings else None

    def assert_sound(self) -> None:
        """Raise unless nothing was found.

        Raises:
            AssertionError: With the table, what the first broken run printed, and how to repeat it.
        """
        first = self.first_broken
        if first is None:
            return
        lines = [str(self), ""]
        if first.output.strip():
            lines += ["It printed:", indent(first.output.rstrip(), "    "), ""]
        lines.append(f"Look into it: {first.database} (langgraph-ext events --db {first.database})")
        if first.boundary:
            lines.append(f"Repeat the first one: crash_at_every_commit({self.scenario!r}, …, only={first.only!r})")
        else:
            lines.append("Nobody was killed in it; make the undisturbed run right first.")
        raise AssertionError("\n".join(lines))

    def __str__(self) -> str:
        return "\n".join(map(str, lines_of(self)))

    @property
    def title(self) -> str:
        """The report in a line."""
        parts = [
            _counted(self.boundaries, "boundary", "boundaries"),
            _counted(self.kills, "kill"),
            f"{self.not_reached} not reached" if self.not_reached else "",
            f"{self.left_out} left out" if self.left_out else "",
            "sound" if self.sound else _counted(len(self.findings), "finding"),
        ]
        return f"{self.scenario}: " + ", ".join(filter(None, parts))


def lines_of(report: CrashReport, to: Fit | None = None) -> Iterator[Line]:
    """The report as lines: what it comes to, and a table of the findings."""
    to = to or Fit()
    yield Line((Part(escape(report.title, only_ascii=to.only_ascii), "label"),))
    if report.findings:
        yield from table(_COLUMNS, _rows(report.findings), to)


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _rows(findings: Sequence[CrashFinding]) -> list[tuple[str, ...]]:
    return [(str(each.boundary), each.point, each.code, each.transaction, each.message) for each in findings]
