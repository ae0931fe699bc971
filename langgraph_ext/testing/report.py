"""What a crash test found: frozen records, a table to read, and a message that says what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from langgraph_ext.ledger import RunStatus
from langgraph_ext.render import Column, Fit, Line, Part, escape, table

__all__ = ["CrashFinding", "CrashReport", "lines_of"]

_COLUMNS = (
    Column("BOUNDARY", "label", to_the_right=True),
    Column("POINT"),
    Column("FINDING", "label"),
    Column("KILLED", at_least=6),
    Column("WHAT WAS WRONG"),
)


_PRINTED = 40
"""Most lines of what a run printed that a message holds."""

_VARYING = 5
"""Most parts of what is not compared that are named."""

_ABOUT_THE_TEST = ("no_boundaries", "nothing_killed")
"""Findings of an undisturbed run that was right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashFinding:
    """Something that was wrong after one kill."""

    boundary: int
    """Number of the transaction, from 1; 0 for the undisturbed run."""
    point: str
    """`before`, `inside:N` (after N of its statements), `after`; `undisturbed` where nobody was killed."""
    code: str
    """`effect_repeated`, `effect_missing`, `effect_unexpected`, `effect_differs`, `effect_in_doubt`, `run_status`,
    `state_differs`, `raised`, `died`, `hangs`, `no_boundaries`, `nothing_killed`, or `ledger:CODE` with a code of
    `RunLedger.verify`."""
    transaction: str
    """What was killed, in words: the events of the transaction, and the checkpoints that it stores."""
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
    ended: Mapping[str, str]
    """Of each thread, how its newest run stands at the end of the undisturbed run: `succeeded`, `paused`, …"""
    varying: tuple[str, ...]
    """What differs between two undisturbed runs and was not compared, in words."""
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
        __tracebackhide__ = True  # pytest shows the caller's line, and the message
        first = self.first_broken
        if first is not None:
            raise AssertionError("\n".join([str(self), "", *_more_of(first, self.scenario)]))

    def __str__(self) -> str:
        return "\n".join(map(str, lines_of(self)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know of the test itself, a line each."""
        left = [(thread_id, status) for thread_id, status in self.ended.items() if status != RunStatus.SUCCEEDED]
        notes = [f"undisturbed, the run of thread {thread_id!r} ends as {status}" for thread_id, status in left]
        if self.varying:
            more = [f"{len(self.varying) - _VARYING} more"] if len(self.varying) > _VARYING else []
            said = ", ".join([*self.varying[:_VARYING], *more])
            notes.append(f"not compared, as it differs between two undisturbed runs: {said}")
        return tuple(notes)

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


def _more_of(first: CrashFinding, scenario: str) -> Iterator[str]:
    """What the first broken run printed, and what to do next."""
    *before, last = first.output.rstrip().splitlines() or [""]
    printed = [*before[-_PRINTED:], last]
    if first.output.strip():
        yield (
            "It printed:"
            if len(before) <= _PRINTED
            else f"It printed (the end; all of it is in {first.database}.output):"
        )
        yield indent("\n".join(printed), "    ")
        yield ""
    yield f"Look into it: {first.database} (langgraph-ext events --db {first.database})"
    if first.boundary:
        yield f"Repeat the first one: crash_at_every_commit({scenario!r}, …, only={first.only!r})"
    elif first.code not in _ABOUT_THE_TEST:
        yield "Nobody was killed in it; make the undisturbed run right first."


def lines_of(report: CrashReport, to: Fit | None = None) -> Iterator[Line]:
    """The report as lines: what it comes to, and a table of the findings."""
    to = to or Fit()
    yield Line((Part(escape(report.title, only_ascii=to.only_ascii), "label"),))
    for note in report.notes:
        yield Line((Part(escape(note, only_ascii=to.only_ascii), "note"),))
    if report.findings:
        yield from table(_COLUMNS, _rows(report.findings), to)


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _rows(findings: Sequence[CrashFinding]) -> list[tuple[str, ...]]:
    return [(str(each.boundary), each.point, each.code, each.transaction, each.message) for each in findings]
