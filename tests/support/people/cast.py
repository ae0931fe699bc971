"""The cast: two people, and a nursery of workers; each is a process that serves one story after the other."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple, Self

from langgraph_ext.database import open_database
from tests.support.faults import Child, Line
from tests.support.people.clock import PEOPLE, Clock
from tests.support.people.person import Act, Intent, be
from tests.support.people.worker import Work, work

__all__ = ["Cast", "Worked", "make"]

_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.001


class Worked(NamedTuple):
    """What became of a worker."""

    exitcode: int
    said: dict[str, Any]
    """What it said at its end, if it came to that."""

    @property
    def killed(self) -> bool:
        """Whether it killed itself."""
        return self.exitcode == -signal.SIGKILL


class Cast:
    """The processes of stories; ended by `with`."""

    def __init__(self) -> None:
        self._nursery = Child(_nurse)
        self._people = [Child(_live, number) for number in range(len(PEOPLE))]
        assert self._nursery.told(_PATIENCE_SECONDS) == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for child in (self._nursery, *self._people):
            child.end()

    def let_act(self, folder: str, wanted: list[list[Intent]]) -> None:
        """Let the people begin."""
        for child, intents in zip(self._people, wanted, strict=True):
            child.say((folder, intents))

    def acted(self) -> list[Act]:
        """What they have done, when they are done.

        Raises:
            AssertionError: One was told what nobody may be told.
        """
        told = [child.told(_PATIENCE_SECONDS) for child in self._people]
        assert all(isinstance(each, list) for each in told), told
        return [act for each in told for act in each]

    def let_work(self, given: Work) -> Worked:
        """Let a worker work to its end."""
        self._nursery.say(given)
        worked: Worked = self._nursery.told(2 * _PATIENCE_SECONDS)
        return worked


def make(folder: str, empty: Path) -> None:
    """Put an empty database and a clock into a folder."""
    shutil.copy(empty, f"{folder}/runs.db")
    Clock.make(folder)


def _live(person: int, line: Line) -> None:
    """Be a person, in one story after the other."""
    gc.freeze()
    while True:
        folder, wanted = _heard(line)
        line.tell(be(folder, person, wanted))


def _nurse(line: Line) -> None:
    """Fork workers, each with everything imported, looked up and tried out, and nothing open."""
    with tempfile.TemporaryDirectory() as folder:
        _warm(Path(folder))
    assert threading.active_count() == 1, "only this thread is there in what is forked"
    gc.freeze()
    line.tell("ready")
    while True:
        line.tell(_worked(_heard(line)))


def _heard(line: Line) -> Any:
    """What there is to do next; if nothing is, this process ends."""
    try:
        return line.hear()
    except EOFError:
        os._exit(0)


def _warm(folder: Path) -> None:
    empty = open_database(folder / "empty.db", fsync="normal")
    empty.open()
    empty.close()
    for form in ("sync", "async"):
        (folder / form).mkdir()
        make(str(folder / form), folder / "empty.db")
        with Clock.of(str(folder / form)) as clock:
            for number in range(len(PEOPLE)):
                clock.is_done(number)
        work(Work(str(folder / form), 0, 0, form, "sync", 2, True, None))


def _worked(given: Work) -> Worked:
    report = Path(given.folder, f"worker {given.number}")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            report.write_text(json.dumps(work(given)))
            code = 0
        except BaseException:  # noqa: BLE001 - told to the other side
            report.write_text(json.dumps({"raised": traceback.format_exc()}))
        finally:
            os._exit(code)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Worked(-signal.SIGTERM, {"raised": f"it still ran after {_PATIENCE_SECONDS} s"})
        time.sleep(_LOOK_SECONDS)
    said = json.loads(report.read_text()) if report.exists() else {}
    return Worked(os.waitstatus_to_exitcode(ended[1]), said)
