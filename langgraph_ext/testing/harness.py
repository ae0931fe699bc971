"""The crash harness: a scenario, killed at every durable boundary and gone on with, must end as if nothing had been.

    undisturbed run ──▶ boundaries ──▶ for each: fresh database ─▶ killed there ─▶ gone on with ─▶ compared

Each run is a process of its own on a database of its own, made empty and with all tables before.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.children import Children, Ended, Files
from langgraph_ext.testing.endings import (
    AtMost,
    Ending,
    Problem,
    ending_of,
    problems_of_effects,
    problems_of_end,
    problems_of_run,
)
from langgraph_ext.testing.points import POINTS, Kill, Point
from langgraph_ext.testing.report import CrashFinding, CrashReport
from langgraph_ext.testing.scenario import Loading, find_scenario

__all__ = ["crash_at_every_commit"]


def crash_at_every_commit(
    target: str,
    *,
    db: str | PathLike[str],
    points: Sequence[Point] = POINTS,
    only: tuple[int, str] | None = None,
    at_most: AtMost = 1,
    timeout_seconds: float = 30.0,
    resumes: int = 1,
    max_broken: int = 10,
    path: Sequence[str] | None = None,
) -> CrashReport:
    """Kill a scenario at each of its durable boundaries, go on with it, and report what was not as it should be.

    The scenario is a function `(db_url, effects)`, plain or `async`, that starts its run or, if the database holds it
    already, goes on with it, and returns when the run has ended. It opens its saver on `db_url`, and writes what it
    does to the outside world into `effects`, an `EffectLog`. It is called in processes of its own: once undisturbed;
    then, for each transaction that this commits and each point, on a fresh database in a process that kills itself
    there (SIGKILL), and again in a new process, which must return. Afterwards each effect has happened as often as
    allowed, and none is missing; `RunLedger.verify` finds nothing; the newest run of each thread stands as undisturbed.

    Args:
        target: `"module:function"`; `f"{__name__}:scenario"` for one in the module that calls this, also in a script.
        db: Where the databases are made: this file for the undisturbed run, files beside it for the others. Those with
            findings are kept. A database that was not made by this function is refused.
        points: `"before"`: all statements are done, not committed. `"inside"`: between any two statements. `"after"`:
            committed, and nobody was told.
        only: Repeat one kill: the boundary and point of a finding, such as `(3, "inside:2")` or `(3, "after")`.
        at_most: How often an effect may happen: a number for all, or numbers by key (else once); None: any number.
        timeout_seconds: How long a process may run; one that takes longer is killed, and a finding.
        resumes: In how many processes the scenario may be gone on with until it returns, if it raises or dies.
        max_broken: Stop after so many kills with findings.
        path: Where its module is found, as `sys.path`; by default the caller's.

    Returns:
        The report; `report.assert_sound()` in a test.

    Raises:
        InvalidArgument: The target cannot be loaded, the database is no new SQLite file, or an argument means nothing.
    """
    Loading.end_here()
    if not hasattr(os, "fork"):
        raise InvalidArgument("the crash harness forks processes, which this system cannot; use Linux or macOS")
    started = time.monotonic()
    scenario = find_scenario(target)
    chosen = _Chosen.of(points, only)
    files = Files(_new_file(db))
    if timeout_seconds <= 0 or resumes < 1 or max_broken < 1:
        raise InvalidArgument("timeout_seconds, resumes and max_broken must be greater than 0")
    files.remove()
    limits = _Limits(at_most=at_most, timeout_seconds=timeout_seconds, resumes=resumes, max_broken=max_broken)
    with Children(scenario, path=sys.path if path is None else path, timeout_seconds=timeout_seconds) as children:
        work = _Work(children=children, files=files, limits=limits)
        work.do(chosen)
    return CrashReport(
        scenario=str(scenario),
        boundaries=work.boundaries,
        kills=work.kills,
        not_reached=work.not_reached,
        left_out=work.left_out,
        findings=tuple(work.findings),
        seconds=time.monotonic() - started,
    )


def _new_file(db: str | PathLike[str]) -> Path:
    """The absolute path; a database that lies there is one of ours, and will be made anew."""
    named = fspath(db)
    if named.startswith(("postgresql://", "postgres://")):
        raise InvalidArgument("the crash harness needs a new SQLite file; PostgreSQL is not supported yet")
    named = named.removeprefix("sqlite:///")
    if "://" in named or named.startswith("file:") or named in ("", ":memory:"):
        raise InvalidArgument("the crash harness needs a new SQLite file that survives a killed process; pass a path")
    files = Files(Path(os.path.abspath(named)))
    if not files.database.parent.is_dir():
        raise InvalidArgument(f"the folder {str(files.database.parent)!r} is not there; make it, or name another file")
    if files.database.exists() and not files.effects.exists():
        raise InvalidArgument(f"{str(files.database)!r} is there already, and not from a crash test; name a new file")
    return files.database


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Which kills are wanted."""

    points: Sequence[Point]
    boundary: int | None = None
    statement: int | None = None

    @classmethod
    def of(cls, points: Sequence[Point], only: tuple[int, str] | None) -> _Chosen:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """What is allowed."""

    at_most: AtMost
    timeout_seconds: float
    resumes: int
    max_broken: int


@dataclass(slots=True, kw_only=True)
class _Work:
    """The runs of one scenario, and what came out so far."""

    children: Children
    files: Files
    limits: _Limits
    boundaries: int = 0
    kills: int = 0
    not_reached: int = 0
    left_out: int = 0
    findings: list[CrashFinding] = field(default_factory=list)

    def do(self, chosen: _Chosen) -> None:
        """Run it undisturbed, and, if that is right, once with each kill."""
        self.children.prepare(self.files)
        self.files.effects.touch(0o600)
        empty = self.files.database.read_bytes()
        ended = self.children.run(self.files)
        problems = list(problems_of_end(ended, self.limits.timeout_seconds))
        undisturbed = ending_of(self.files)
        problems += problems_of_effects(undisturbed, undisturbed, self.limits.at_most)
        problems += problems_of_run(undisturbed, undisturbed)
        self.boundaries = len(ended.committed)
        self._find(problems, boundary=0, point="undisturbed", transaction="", files=self.files, ended=ended)
        if problems:
            return
        kills = list(chosen.kills(ended.committed))
        broken = 0
        for number, kill in enumerate(kills):
            if broken == self.limits.max_broken:
                self.left_out = len(kills) - number
                return
            broken += not self._survives(kill, undisturbed, empty)

    def _survives(self, kill: Kill, undisturbed: Ending, empty: bytes) -> bool:
        """Run it with this kill, go on with it, and look; whether all is as it was undisturbed."""
        files = self.files.at(kill)
        files.remove()
        files.database.write_bytes(empty)
        files.effects.touch(0o600)
        ended = killed = self.children.run(files, kill)
        if killed.struck:
            self.kills += 1
            ended = self._gone_on(files)
        else:
            self.not_reached += 1
        problems: list[Problem] = list(problems_of_end(ended, self.limits.timeout_seconds))
        if not problems:
            found = ending_of(files)
            problems += problems_of_effects(found, undisturbed, self.limits.at_most)
            problems += problems_of_run(found, undisturbed)
        words = _in_words(kill, killed)
        self._find(problems, boundary=kill.boundary, point=str(kill), transaction=words, files=files, ended=ended)
        if not problems:
            files.remove()
        return not problems

    def _gone_on(self, files: Files) -> Ended:
        """Call the scenario again until it returns, or hangs, or was called often enough."""
        for _ in range(self.limits.resumes - 1):
            ended = self.children.run(files)
            if ended.returned or ended.hangs:
                return ended
        return self.children.run(files)

    def _find(
        self,
        problems: Sequence[Problem],
        *,
        boundary: int,
        point: str,
        transaction: str,
        files: Files,
        ended: Ended,
    ) -> None:
        for code, message in problems:
            self.findings.append(
                CrashFinding(
                    boundary=boundary,
                    point=point,
                    code=code,
                    transaction=transaction,
                    message=message,
                    database=str(files.database),
                    output=ended.output,
                )
            )


def _in_words(kill: Kill, killed: Ended) -> str:
    """What was killed there."""
    if not killed.struck:
        return "not reached"
    if kill.point == "inside":
        return (killed.told and f"{killed.told}: ") + "between {} and {}".format(*killed.statements[-2:])
    return killed.told or "no event: " + ", ".join(dict.fromkeys(killed.statements))
