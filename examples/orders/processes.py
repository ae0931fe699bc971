"""Processes: start a worker, wait for it, or kill it in the middle of the fan-out.

The moment of the kill is not a guess about time: the parent follows the work log, and strikes when enough tasks of
the fan-out have ended in it and at least one result is in the database.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A worker's life, seen from the parent."""

    job: str
    pid: int
    started: float
    ended: float
    stop: Stop | None
    """Where it stopped, or None when it was killed."""


def run_worker(files: Files, job: str, *options: str) -> Ended:
    """Run one worker to its end; raises `DemoError` when it fails."""
    started = time.time()
    with _spawn(files, job, *options) as child:
        try:
            out, err = child.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise DemoError(f"worker {job!r} ended with status {child.returncode}:\n{err}")
    return Ended(job=job, pid=child.pid, started=started, ended=time.time(), stop=cast(Stop, json.loads(out)))


def kill_worker(files: Files, job: str, *, after: int) -> Ended:
    """Run one worker and SIGKILL it once `after` tasks of the fan-out have ended and one is saved.

    Raises:
        DemoError: The worker ended by itself before the signal reached it.
    """
    started = time.time()
    with _spawn(files, job) as child:
        try:
            _wait_for_tasks(child, files, after)
        finally:
            child.kill()
        _, err = child.communicate()
    if child.returncode != -signal.SIGKILL:
        raise DemoError(
            f"worker {job!r} was not killed in the fan-out: it ended by itself with status {child.returncode} when "
            f"{_tasks_ended(files.log)} tasks had ended, and the kill was due after {after}\n{err}"
        )
    return Ended(job=job, pid=child.pid, started=started, ended=time.time(), stop=None)


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


def _wait_for_tasks(child: subprocess.Popen[str], files: Files, after: int) -> None:
    """Wait until enough tasks have ended and a result is saved, or the worker is gone."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while child.poll() is None:
        # The database is asked last: a slow disk may take longer to save a result than to log seven of them.
        if _tasks_ended(files.log) >= after and read_saved(files.db).tasks:
            return
        if time.monotonic() > deadline:
            raise DemoError(f"the moment to kill worker {child.pid} did not come in {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.002)


def _tasks_ended(log: Path) -> int:
    return sum(entry.node == FAN_OUT and entry.event is Event.END for entry in read_log(log))


def _spawn(files: Files, job: str, *options: str) -> subprocess.Popen[str]:
    paths = ["--db", str(files.db), "--log", str(files.log), "--report", str(files.report)]
    command = [sys.executable, "-m", "examples.orders.worker", job, *paths, *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
