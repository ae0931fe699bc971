"""Processes: start the bank and the workers, wait for a worker, or kill it at a moment of the parent's choice.

The moment of a kill is not a guess about time: the parent follows what the worker and the bank have written, and
strikes when that says so.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from examples.orders.charges import read_charges
from examples.orders.facts import FAN_OUT, read_saved
from examples.orders.worker import Stop
from examples.orders.worklog import Event, read_log

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 90.0


class DemoError(Exception):
    """The demo could not show what it is meant to show; the text says why."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one run, side by side."""

    db: Path

    @property
    def log(self) -> Path:
        """The work log."""
        return self.db.with_suffix(".work.log")

    @property
    def report(self) -> Path:
        """The report of the last node."""
        return self.db.with_suffix(".report.json")

    @property
    def charges(self) -> Path:
        """The bank's ledger."""
        return self.db.with_suffix(".charges.jsonl")


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill."""

    what: str
    """In words."""
    has_come: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A worker's life, seen from the parent."""

    job: str
    pid: int
    started: float
    ended: float
    stop: Stop | None
    """Where it stopped, or None when it was killed."""


@dataclass(frozen=True, slots=True)
class Process:
    """A program of the examples, to be run."""

    module: str
    arguments: tuple[str, ...]
    """Its job first."""

    @property
    def job(self) -> str:
        """What it is to do."""
        return self.arguments[0]

    def spawned(self) -> subprocess.Popen[str]:
        """It, running."""
        command = [sys.executable, "-m", self.module, *self.arguments]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def open_bank(files: Files, *, hold: Collection[int] = ()) -> Iterator[str]:
    """Run a bank beside a run, and give its URL; it never answers the charges of these numbers."""
    options = ["--hold", *map(str, hold)] if hold else []
    command = [sys.executable, "-m", "examples.orders.bank", "--ledger", str(files.charges), *options]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bank:
        try:
            assert bank.stdout is not None, "it was asked for"
            port = bank.stdout.readline().strip()
            if not port:
                raise DemoError("the bank did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            bank.kill()


def run_worker(files: Files, bank: str, job: str, *options: str) -> Ended:
    """Run one worker to its end; raises `DemoError` when it fails."""
    started = time.time()
    pid, out = _run(_worker(files, bank, job, *options))
    return Ended(job=job, pid=pid, started=started, ended=time.time(), stop=cast(Stop, json.loads(out)))


def run_process(process: Process) -> str:
    """Run a process to its end, for what it prints; raises `DemoError` when it fails."""
    return _run(process)[1]


def kill_process(process: Process, moment: Moment) -> int:
    """Run a process and SIGKILL it when the moment has come; its pid.

    Raises:
        DemoError: It ended by itself before the signal reached it.
    """
    with process.spawned() as child:
        try:
            _wait_for(child, moment)
        finally:
            child.kill()
        _, err = child.communicate()
    if child.returncode != -signal.SIGKILL:
        raise DemoError(
            f"worker {process.job!r} was not killed {moment.what}: it ended by itself with status "
            f"{child.returncode}\n{err}"
        )
    return child.pid


def kill_worker(files: Files, bank: str, job: str, *options: str, moment: Moment) -> Ended:
    """Run one worker and SIGKILL it when the moment has come.

    Raises:
        DemoError: The worker ended by itself before the signal reached it.
    """
    started = time.time()
    pid = kill_process(_worker(files, bank, job, *options), moment)
    return Ended(job=job, pid=pid, started=started, ended=time.time(), stop=None)


def in_the_fan_out(files: Files, *, after: int) -> Moment:
    """When so many orders are priced, and the result of one at least is saved."""

    def has_come() -> bool:
        # The database is asked last: a slow disk may take longer to save a result than to log seven of them.
        return _tasks_ended(files.log, FAN_OUT) >= after and bool(read_saved(files.db).tasks)

    return Moment(f"in the fan-out, when {after} of its tasks had ended", has_come)


def behind_a_charge(files: Files) -> Moment:
    """When the bank has charged and holds its answer back, and another charge was answered and recorded."""

    def has_come() -> bool:
        return any(charge.held for charge in read_charges(files.charges)) and _tasks_ended(files.log, "charge") > 0

    return Moment("between a charge and its answer", has_come)


def run_tree(db: Path, run_id: str) -> str:
    """A run as the command line shows it.

    Raises:
        DemoError: The command failed.
    """
    command = [sys.executable, "-m", "langgraph_ext.cli", "show", run_id, "--db", str(db)]
    shown = subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=PATIENCE_SECONDS
    )
    if shown.returncode:
        raise DemoError(f"`show` failed: {shown.stderr}")
    return shown.stdout.rstrip()


def _wait_for(child: subprocess.Popen[str], moment: Moment) -> None:
    """Wait until the moment has come, or the worker is gone."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while child.poll() is None and not moment.has_come():
        if time.monotonic() > deadline:
            raise DemoError(f"the moment to kill worker {child.pid} did not come in {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.002)


def _tasks_ended(log: Path, node: str) -> int:
    return sum(entry.node == node and entry.event is Event.END for entry in read_log(log))


def _run(process: Process) -> tuple[int, str]:
    with process.spawned() as child:
        try:
            out, err = child.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise DemoError(f"worker {process.job!r} ended with status {child.returncode}:\n{err}")
    return child.pid, out


def _worker(files: Files, bank: str, job: str, *options: str) -> Process:
    where = ["--bank", bank, "--db", str(files.db), "--log", str(files.log), "--report", str(files.report)]
    return Process("examples.orders.worker", (job, *where, *options))
