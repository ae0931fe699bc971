"""Processes: the bank and the workers, each a process of its own; run to its end, or killed at a chosen moment.

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
from typing import Any

__all__ = ["DemoError", "Moment", "Process", "kill_process", "open_bank", "run_process", "run_tree"]

PATIENCE_SECONDS = 90.0

_PROGRAM = """\
import json, runpy, sys
sys.path[:] = json.loads(sys.argv.pop())
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""Runs a module that is found where this process finds its own, whatever the working folder holds."""


class DemoError(Exception):
    """The demo could not show what it is meant to show; the text says why, and a note what a process has said."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill."""

    what: str
    """In words."""
    has_come: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Process:
    """A Python module, to be run."""

    module: str
    arguments: tuple[str, ...]
    """Its job first."""

    @property
    def job(self) -> str:
        """What it is to do."""
        return self.arguments[0]

    def spawned(self, **options: Any) -> subprocess.Popen[str]:
        """It, running; what it prints is UTF-8."""
        python = [sys.executable, "-P", "-X", "utf8", "-c", _PROGRAM]
        command = [*python, self.module, *self.arguments, json.dumps(sys.path)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", **options)


@contextmanager
def open_bank(ledger: Path, *, hold: Collection[int] = ()) -> Iterator[str]:
    """Run a bank that keeps this ledger, and give its URL; it never answers the charges of these numbers.

    Raises:
        DemoError: It did not start.
    """
    options = ("--hold", *map(str, hold)) if hold else ()
    process = Process("langgraph_ext.demo.bank", ("--ledger", str(ledger), *options))
    with process.spawned(stdin=subprocess.PIPE) as bank:
        try:
            assert bank.stdout is not None, "it was asked for"
            port = bank.stdout.readline().strip()
            if not port:
                raise DemoError("the bank did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            bank.kill()


def run_process(process: Process) -> tuple[int, str]:
    """Run a process to its end: its pid, and what it printed.

    Raises:
        DemoError: It failed.
    """
    with process.spawned(stderr=subprocess.PIPE) as child:
        try:
            out, err = child.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoError(f"process {process.job!r} did not end in {PATIENCE_SECONDS:.0f} s") from None
        finally:
            child.kill()
    if child.returncode != 0:
        raise _failed(f"process {process.job!r} ended with status {child.returncode}", err)
    return child.pid, out


def kill_process(process: Process, moment: Moment) -> int:
    """Run a process and SIGKILL it when the moment has come; its pid.

    Raises:
        DemoError: It ended by itself before the signal reached it.
    """
    with process.spawned(stderr=subprocess.PIPE) as child:
        try:
            _wait_for(child, moment)
        finally:
            child.kill()
        _, err = child.communicate()
    if child.returncode != -signal.SIGKILL:
        told = f"it ended by itself with status {child.returncode}"
        raise _failed(f"process {process.job!r} was not killed {moment.what}: {told}", err)
    return child.pid


def run_tree(db: Path, run_id: str) -> str:
    """A run as the command line shows it.

    Raises:
        DemoError: The command failed.
    """
    return run_process(Process("langgraph_ext.cli", ("show", run_id, "--db", str(db))))[1].rstrip()


def _wait_for(child: subprocess.Popen[str], moment: Moment) -> None:
    """Wait until the moment has come, or the process is gone."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while child.poll() is None and not moment.has_come():
        if time.monotonic() > deadline:
            raise DemoError(f"the moment to kill process {child.pid} did not come in {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.002)


def _failed(message: str, err: str) -> DemoError:
    failed = DemoError(message)
    if err.strip():
        failed.add_note(err.strip())
    return failed
