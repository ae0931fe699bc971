"""Report: a run as a page of Markdown, and as JSON with every number that was taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bench.bars import JUDGED_ROUNDS, Bar, Verdict
from bench.machine import MEMORY_FILE_SYSTEMS
from bench.ratios import Row, missed, rows
from bench.rounds import Series
from bench.savers import PRAGMAS

__all__ = ["Run", "as_json", "caveats", "markdown"]

_INTRODUCTION = f"""\
LedgerSaver beside SqliteSaver (sync API) and AsyncSqliteSaver (async API), each as shipped, each on an empty database
file of its own. **Strict: acknowledged means committed and synced.** No saver may answer before its commit is on disk;
the pragmas that decide this were read from the open connections and stand at the end.

Only ratios are claimed. Every round runs every saver once, in rotating order, and the two that are compared one right
after the other. *Ratio* is LedgerSaver divided by its peer: the median of the ratios of the single rounds; *spread* is
the smallest and the largest of these. Times: less is better; supersteps/s: more is better. The absolute medians are
there for context: they change with the disk and with whatever else the machine does.

A *bar* must be kept, a *goal* is what we aim at. A ratio needs at least {JUDGED_ROUNDS} rounds to be judged; a bar is
missed when two separate runs miss it. What each case does is in [bench/cases.py](../bench/cases.py), the bars are in
[bench/bars.py](../bench/bars.py)."""


_AGENTS = """\
`make bench-react` prints how turns of a ReAct agent on the engine stand beside those of LangChain's `create_agent`, on
AsyncSqliteSaver and on LedgerSaver, with `durability="sync"`. A turn is a model that asks for one tool, and that tool;
both answer at once, and are the same objects on all sides. Measured are agent runs of 20 turns: one at a time, 200 at
once on one event loop, the CPU time of both, and what a turn leaves on disk; besides, the commits that the engine makes
in a turn. Ratios are taken as above, the engine's divided by its peer's: of times and bytes less is better, of turns/s
more. `ARGS="--rounds 3 --dir DIR"` takes fewer rounds than 7, or another folder; `--help` lists the rest. Nothing is
judged, and no file is written.

`make bench-chat` does the same for a chat of 200 turns of one thread, through an `AgentNode` on LedgerSaver and with
`create_agent` on AsyncSqliteSaver: of all its turns, of its first and its last ones. `make bench-agents` prints what
agent runs share of their commits. What they do is in [bench/react.py](../bench/react.py),
[bench/chat.py](../bench/chat.py) and [bench/agents.py](../bench/agents.py)."""


_FULLFSYNC = "`fullfsync` matters on macOS only: without it, a sync there may end in the drive's cache."


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the benchmark and what is known about it."""

    date: str
    rounds: int
    smoke: bool
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    pragmas: Mapping[str, Mapping[str, str]]
    """By contestant, as read from the open connection."""
    load: tuple[float, float]
    """Load average over a minute before the run and after it."""
    series: Sequence[Series]

    @property
    def judged(self) -> bool:
        """Whether its verdicts count."""
        return not self.smoke and self.rounds >= JUDGED_ROUNDS


def markdown(run: Run) -> str:
    """The page."""
    found = rows(run.series)
    blocks = ["# Benchmarks", f"Written by `make bench` on {run.date}; do not edit.", *_warnings(run), _INTRODUCTION]
    blocks += ["## Ratios", _summary(found) if run.judged else "Not judged; the verdicts below are for orientation."]
    for title, group in groupby(found, key=lambda row: f"### {row.series.case.letter}. {row.series.case.title}"):
        blocks += [title, _ratios(group)]
    blocks += ["## Agents", _AGENTS]
    blocks += ["## Where and with what", _facts(run), "## Pragmas in force", _pragmas(run), _FULLFSYNC]
    return "\n\n".join(blocks) + "\n"


def as_json(run: Run) -> dict[str, Any]:
    """Every number, for whoever wants to calculate something else from them."""
    return {
        "date": run.date,
        "rounds": run.rounds,
        "smoke": run.smoke,
        "machine": dict(run.machine),
        "versions": dict(run.versions),
        "pragmas": {label: dict(read) for label, read in run.pragmas.items()},
        "load": list(run.load),
        "measured": [
            {"case": each.case.letter, "durability": each.durability, "numbers": each.measured} for each in run.series
        ],
        "ratios": [
            {
                "case": row.series.case.letter,
                "durability": row.series.durability,
                "measure": row.measure.name,
                "api": row.pair.form,
                "ratio": row.paired.ratio,
                "low": row.paired.low,
                "high": row.paired.high,
                "bar": row.bar.bar if row.bar else None,
                "goal": row.bar.goal if row.bar else None,
                "verdict": row.verdict.value,
            }
            for row in rows(run.series)
        ],
    }


def caveats(run: Run) -> list[str]:
    """Reasons not to believe the ratios."""
    found = []
    if run.smoke:
        found.append("This was a smoke run: it shows that everything runs, and its numbers mean nothing.")
    elif run.rounds < JUDGED_ROUNDS:
        found.append(f"{run.rounds} rounds are too few to judge a ratio; {JUDGED_ROUNDS} are needed.")
    weaker = [label for label, read in run.pragmas.items() if read["synchronous"] not in ("FULL", "EXTRA")]
    if weaker:
        found.append(f"Not like with like: {', '.join(weaker)} did not sync at every commit.")
    kind = run.machine["file system of the databases"]
    if kind in MEMORY_FILE_SYSTEMS:
        found.append(f"The databases were on {kind}, where a sync costs nothing; name a folder on a disk with `--dir`.")
    return found


def _warnings(run: Run) -> list[str]:
    return [f"> **{caveat}**" for caveat in caveats(run)]


def _summary(found: Sequence[Row]) -> str:
    barred = [row for row in found if row.bar is not None]
    goals = [row for row in barred if row.bar is not None and row.bar.goal is not None]
    reached = sum(row.verdict is Verdict.GOAL for row in goals)
    misses = missed(barred)
    line = f"{len(barred) - len(misses)} of {len(barred)} bars met, {reached} of {len(goals)} goals reached."
    return "\n".join([line, *(["", *(f"- Missed: {row.title}" for row in misses)] if misses else [])])


def _ratios(found: Iterable[Row]) -> str:
    head = ["measure", "durability", "API", "> ratio", "> spread", "> bar", "> goal", "verdict"]
    return _table([*head, "> LedgerSaver", "> peer"], [_cells(row) for row in found])


def _cells(row: Row) -> list[str]:
    result, unit = row.paired, row.measure.unit
    return [
        row.measure.name,
        row.series.durability or "–",
        row.pair.form,
        f"**{result.ratio:.2f}**",
        f"{result.low:.2f} – {result.high:.2f}",
        *_limits(row.bar),
        row.verdict.value,
        _amount(result.ours, unit),
        _amount(result.peer, unit),
    ]


def _limits(bar: Bar | None) -> list[str]:
    if bar is None:
        return ["–", "–"]
    return [f"{bar.sign} {bar.bar:g}", "–" if bar.goal is None else f"{bar.sign} {bar.goal:g}"]


def _amount(value: float, unit: str) -> str:
    """About three digits: more would promise a precision that is not there."""
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{shown}{unit}" if unit.startswith("/") else f"{shown} {unit}"


def _facts(run: Run) -> str:
    facts = {
        **run.machine,
        **run.versions,
        "rounds": str(run.rounds),
        "load average before, after": f"{run.load[0]:.1f}, {run.load[1]:.1f}",
    }
    return _table(["", ""], [[name, value] for name, value in facts.items()])


def _pragmas(run: Run) -> str:
    return _table(["saver", *PRAGMAS], [[label, *(read[n] for n in PRAGMAS)] for label, read in run.pragmas.items()])


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a column whose head begins with `> ` is set to the right."""
    rule = ["---:" if name.startswith("> ") else "---" for name in head]
    lines = [[name.removeprefix("> ") for name in head], rule, *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
