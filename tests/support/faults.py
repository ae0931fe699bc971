"""Faults at the seam: write connections that break at a chosen point, and real processes that die there.

A point is a moment at which a process may end, and the database must be sound whatever happens next:

    between   before a statement of a transaction
    before    all statements done, not committed yet
    after     committed, and nobody told yet

A dry run counts the points of a story; then the story is run once for each of them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from langgraph_ext import LedgerSaver
from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.testing.points import kill_myself
from tests.support import processes

__all__ = ["KINDS", "Child", "Ended", "FaultySaver", "Points", "every", "faulty", "full", "kill_myself", "run"]

KINDS = ("between", "before", "after")


class Points:
    """The points that connections pass, and the one at which something happens.

    Args:
        strike: What happens there: it raises, or it kills the process.
        kind: The kind of the point; None counts points of every kind.
        at: Its number among those, from 1; 0 for a dry run, in which nothing happens.
        armed: Whether points count from the beginning; else from `arm()` on.
    """

    def __init__(
        self, strike: Callable[[], None] | None = None, *, kind: str | None = None, at: int = 0, armed: bool = True
    ) -> None:
        self.passed: list[str] = []
        self.kind = kind
        self._strike, self._at, self._armed = strike, at, armed

    def arm(self) -> None:
        """Count from now on."""
        self._armed = True

    def strike_again(self, strike: Callable[[], None], *, at: int) -> None:
        """Begin to count anew, for another strike."""
        self.passed, self._strike, self._at = [], strike, at

    def reach(self, kind: str) -> None:
        """A connection has come to a point of this kind."""
        if not self._armed:
            return
        self.passed.append(kind)
        met = len(self.passed) if self.kind is None else self.passed.count(self.kind)
        if met == self._at and self._strike is not None and self.kind in (None, kind):
            self._strike()


def faulty(points: Points) -> type[WriteConnection]:
    """A class of write connections that tell `points` where they are and are the real thing otherwise."""

    class FaultyConnection(WriteConnection):
        def execute(self, sql: str, params: Mapping[str, object] = {}) -> Any:
            if self.in_transaction and sql != "COMMIT":
                points.reach("between")
            return super().execute(sql, params)

        def run_alone(self, sql: str, params: Sequence[object]) -> int:
            if points.kind == "between":
                raise OverflowError("a story of points between statements goes the long way")
            points.reach("before")
            changed = super().run_alone(sql, params)
            points.reach("after")
            return changed

        def commit(self) -> None:
            points.reach("before")
            super().commit()
            points.reach("after")

    return FaultyConnection


class FaultySaver(LedgerSaver):
    """A saver over a faulty connection, with a clock that stands still so that rows can be compared."""

    def __init__(self, url: str, points: Points) -> None:
        still = 1_700_000_000_000_000
        super().__init__(open_database(url, connection=faulty(points), clock_us=lambda: still))


def full() -> bool:
    """Whether every point is wanted (`make faults`), or a sample of them (`make test`)."""
    return os.environ.get("LANGGRAPH_EXT_TEST_FULL") == "1"


def every(count: int, *, sample: int) -> list[int]:
    """The numbers from 1 to `count`, or `sample` of them evenly spread, the first and the last among them."""
    if full() or count <= sample:
        return list(range(1, count + 1))
    return sorted({1 + round(n * (count - 1) / (sample - 1)) for n in range(sample)})


# -- processes, forked from a server that has imported everything and opened nothing

_CONTEXT = multiprocessing.get_context("forkserver")
# The server is shared with tests.support.processes, whose import named what that module needs: one list for both.
_CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "tests.support.workers",
        "tests.support.attached",
        "tests.support.faults",
        "tests.database.children",
        "tests.faults.children",
        "tests.support.killed_durable",
        "tests.support.killed_parts",
        "tests.support.own_lease",
        "tests.support.killed_inside",
        "tests.support.killed_ledger",
        "tests.support.killed_spending",
        "tests.support.killed_calls",
        "tests.support.killed_forks",
        "tests.support.leased",
        "tests.support.scripted",
        "tests.support.effects",
        "tests.support.killed_agents",
        "tests.support.deleting",
        "tests.support.killed_retention",
        "tests.support.programs",
        "tests.support.people.cast",
    ]
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (negative: the signal) and what its function returned."""

    exitcode: int
    answer: Any = None

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exitcode == -signal.SIGKILL

    def value(self) -> Any:
        """What its function returned; fails the test if the process ended in any other way."""
        assert self.exitcode == 0, f"the process ended with {self.exitcode}"
        return self.answer


class Child:
    """A process that runs `target(*args)`, a module-level function of a preloaded module."""

    def __init__(self, target: Callable[..., Any], *args: Any) -> None:
        self._mine, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, target, args), daemon=True)
        _start(self._process)
        theirs.close()

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if the process has ended."""
        if self._process.exitcode is None:
            os.kill(self._pid, number)

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def told(self, timeout: float = 30.0) -> Any:
        """The next thing the child says (`tell` is its function's last argument when it wants to say something)."""
        assert self._mine.poll(timeout), f"process {self._pid} said nothing in {timeout} s"
        return self._mine.recv()

    def has_spoken(self, seconds: float) -> bool:
        """Whether it has said something, or ended, within this time."""
        return self._mine.poll(seconds)

    def say(self, message: Any) -> None:
        """Answer the child, which waits for it with `hear()`."""
        self._mine.send(message)

    def wait(self, timeout: float = 30.0) -> Ended:
        """Wait for its end; a function that raises, or a process that hangs, fails the test."""
        answer: Any = (True, None)
        try:
            hangs = not self._mine.poll(timeout)
            if not hangs:
                answer = self._mine.recv()
        except EOFError:  # it died without a word
            hangs = False
        if not hangs:
            self._process.join(timeout)
        exitcode = self._process.exitcode
        self.end()
        assert not hangs, f"the process still ran after {timeout} s"
        ok, value = answer
        assert ok, value
        assert exitcode is not None, f"the process answered and did not end in {timeout} s"
        return Ended(exitcode, value)

    def end(self) -> None:
        """Kill it if it still runs."""
        self._mine.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def run(target: Callable[..., Any], *args: Any, timeout: float = 30.0) -> Ended:
    """Run `target(*args)` in a process of its own and wait for its end."""
    return Child(target, *args).wait(timeout)


class Line:
    """A child's line to its parent; a function that wants one has `line` as its last parameter."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tell(self, message: Any) -> None:
        """Say something that the parent reads with `told()`."""
        self._connection.send(message)

    def hear(self) -> Any:
        """Wait for what the parent says."""
        return self._connection.recv()

    def has_word(self, seconds: float) -> bool:
        """Whether the parent says something within this time."""
        return self._connection.poll(seconds)


def _serve(theirs: Connection, target: Callable[..., Any], args: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wants_line = target.__code__.co_varnames[: target.__code__.co_argcount][-1:] == ("line",)
    try:
        answer = (True, target(*args, Line(theirs)) if wants_line else target(*args))
    except BaseException:  # noqa: BLE001 - told to the parent
        answer = (False, traceback.format_exc())
    theirs.send(answer)


def _start(process: Any) -> None:
    """Start a process; the server inherits our import path, so that it can import the tests' modules up front."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


assert processes is not None  # imported for its effect, see above
