"""Processes: the workers of the batch, each run to its end, or killed at a moment of the parent's choice."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from examples.orders.facts import FAN_OUT, read_saved
from examples.orders.worker import Stop
from examples.orders.worklog import Event, read_log
from langgraph_ext.demo.charges import read_charges
from langgraph_ext.demo.processes import Moment, Process, kill_process, run_process


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A worker's life, seen from the parent."""

    job: str
    pid: int
    started: float
    ended: float
    stop: Stop | None
    """Where it stopped, or None when it was killed."""


def run_worker(files: Files, bank: str, job: str, *options: str) -> Ended:
    """Run one worker to its end; raises `DemoError` when it fails."""
    started = time.time()
    pid, out = run_process(_worker(files, bank, job, *options))
    return Ended(job=job, pid=pid, started=started, ended=time.time(), stop=cast(Stop, json.loads(out)))


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


def _tasks_ended(log: Path, node: str) -> int:
    return sum(entry.node == node and entry.event is Event.END for entry in read_log(log))


def _worker(files: Files, bank: str, job: str, *options: str) -> Process:
    where = ["--bank", bank, "--db", str(files.db), "--log", str(files.log), "--report", str(files.report)]
    return Process("examples.orders.worker", (job, *where, *options))
