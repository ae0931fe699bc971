"""The work of a crash test: two undisturbed runs, and one for each kill, each in processes and files of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from langgraph_ext.testing.children import Children, Ended, Files
from langgraph_ext.testing.endings import Ending, Ignored, Varying, ending_of, varying_in
from langgraph_ext.testing.kills import Chosen, Turns
from langgraph_ext.testing.points import Kill
from langgraph_ext.testing.problems import AtMost, Problem, problems_of_end, problems_of_ending
from langgraph_ext.testing.progress import OnProgress
from langgraph_ext.testing.report import CrashFinding

__all__ = ["Limits", "Undisturbed", "Work"]

NOTHING_TOLD = "a transaction of which the ledger tells nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is allowed, and what is not compared."""

    at_most: AtMost
    timeout_seconds: float
    resumes: int
    max_broken: int
    ignored: Ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """What the runs have to be like."""

    ending: Ending
    varying: Varying
    empty: bytes
    told: Sequence[str]
    """What each boundary is, in words."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The runs of one scenario, and what came out so far."""

    workers: Sequence[Children]
    files: Files
    limits: Limits
    on_progress: OnProgress | None = None
    boundaries: int = 0
    struck: list[bool] = field(default_factory=list)
    """Of each kill that was tried, whether its process came to its point."""
    left_out: int = 0
    findings: list[CrashFinding] = field(default_factory=list)
    ended: Mapping[str, str] = field(default_factory=dict)
    varying: tuple[str, ...] = ()

    def do(self, chosen: Chosen) -> None:
        """Run it undisturbed, twice, and, if that is right, once with each kill."""
        self.workers[0].prepare(self.files)
        empty = self.files.database.read_bytes()
        ended, ending = self._undisturbed(self.files, empty, None)
        self.boundaries, self.ended = len(ended.committed), ending.statuses
        if self.findings:
            return
        if not self.boundaries:
            self._find(
                "no_boundaries", "the scenario committed nothing to db_url, the database that it is given", ended
            )
            return
        _, other = self._undisturbed(self.files.again, empty, ending)
        if self.findings:
            return
        self.files.again.remove()
        varying = varying_in(ending, other)
        self.varying = varying.in_words()
        kills = list(chosen.kills(ended.committed))
        self._kill(kills, Undisturbed(ending=ending, varying=varying, empty=empty, told=ended.told))
        if not any(self.struck) and not self.findings:
            self._find("nothing_killed", _why_nobody(kills, self.boundaries), ended)

    def _undisturbed(self, files: Files, empty: bytes, before: Ending | None) -> tuple[Ended, Ending]:
        """A run that nobody kills; of a second one, values may differ from the one before, and nothing else."""
        files.remove()
        files.database.write_bytes(empty)
        files.effects.touch(0o600)
        ended = self.workers[0].run(files)
        ending = ending_of(files, self.workers[0], self.limits.ignored)
        problems = list(problems_of_end(ended, self.limits.timeout_seconds))
        before = before or ending
        problems += problems_of_ending(ending, before, varying_in(before, ending), self.limits.at_most)
        self.findings += _findings(problems, None, "", files, ended)
        return ended, ending

    def _find(self, code: str, message: str, ended: Ended) -> None:
        self.findings += _findings([(code, message)], None, "", self.files, ended)

    def _kill(self, kills: Sequence[Kill], undisturbed: Undisturbed) -> None:
        """Try each kill, by whichever worker has nothing else to do."""
        turns = Turns(kills, self.limits.max_broken, self.on_progress)

        def work(children: Children) -> None:
            while (turn := turns.next()) is not None:
                number, kill = turn
                turns.tried(number, self._tried(children, kill, undisturbed))

        try:
            if len(self.workers) == 1:
                work(self.workers[0])
            else:
                self._side_by_side(work)
        finally:
            turns.stop()
        self.left_out = turns.left_out
        self.findings += turns.findings

    def _side_by_side(self, work: Callable[[Children], None]) -> None:
        with ThreadPoolExecutor(len(self.workers)) as pool:
            try:
                for done in as_completed([pool.submit(work, children) for children in self.workers]):
                    done.result()
            except BaseException:
                for children in self.workers:
                    children.stop()
                raise

    def _tried(self, children: Children, kill: Kill, undisturbed: Undisturbed) -> list[CrashFinding]:
        """Run it with this kill, go on with it, and look: what is not as it was undisturbed."""
        files = self.files.at(kill)
        files.remove()
        files.database.write_bytes(undisturbed.empty)
        files.effects.touch(0o600)
        ended = killed = children.run(files, kill)
        self.struck.append(killed.struck)
        if killed.struck:
            ended = self._gone_on(children, files)
        problems: list[Problem] = list(problems_of_end(ended, self.limits.timeout_seconds))
        if not problems:
            found = ending_of(files, children, self.limits.ignored)
            problems += problems_of_ending(found, undisturbed.ending, undisturbed.varying, self.limits.at_most)
        if not problems:
            files.remove()
        return _findings(problems, kill, _in_words(kill, killed, undisturbed.told), files, ended)

    def _gone_on(self, children: Children, files: Files) -> Ended:
        """Call the scenario again until it returns, or hangs, or was called often enough."""
        for _ in range(self.limits.resumes - 1):
            ended = children.run(files)
            if ended.returned or ended.hangs:
                return ended
        return children.run(files)


def _findings(
    problems: Sequence[Problem], kill: Kill | None, words: str, files: Files, ended: Ended
) -> list[CrashFinding]:
    return [
        CrashFinding(
            boundary=0 if kill is None else kill.boundary,
            point="undisturbed" if kill is None else str(kill),
            code=code,
            transaction=words,
            message=message,
            database=str(files.database),
            output=ended.output,
        )
        for code, message in problems
    ]


def _in_words(kill: Kill, killed: Ended, told: Sequence[str]) -> str:
    """What was killed there. Of a transaction that had not got far, what it is in the undisturbed run says more."""
    if not killed.struck:
        return "not reached"
    words = killed.killed_at
    if kill.point == "inside":
        undisturbed = told[kill.boundary - 1] if kill.boundary <= len(told) else ""
        return f"within {words or undisturbed or NOTHING_TOLD}"
    return words or NOTHING_TOLD


def _why_nobody(kills: Sequence[Kill], boundaries: int) -> str:
    asked = f"no process came to {kills[0].boundary}:{kills[0]}" if kills else "there is no such point"
    return f"nobody was killed, so nothing was tested: {asked}; the undisturbed run has {boundaries} boundaries"
