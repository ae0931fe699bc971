"""Processes of a scenario: real ones, each forked from a server that has imported everything and opened nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

__all__ = ["SECONDS", "played"]

SECONDS = 30.0
"""How long a process may take; one that takes longer is killed, and counts as hanging."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["bench.scenarios.acting"])

T = TypeVar("T")


def played(target: Callable[..., T], *calls: tuple[Any, ...]) -> list[T | None]:
    """Call `target(gate, *call)` for every call in a process of its own, and wait for all.

    Args:
        target: A module-level function. Its `gate` returns when every process has called it.
        calls: The arguments of each process.

    Returns:
        What each has returned; None of one that was killed by SIGKILL.

    Raises:
        TimeoutError: A process hangs.
        RuntimeError: One has ended in another way.
    """
    barrier = _CONTEXT.Barrier(len(calls))
    running = []
    with _import_path():
        for call in calls:
            mine, theirs = _CONTEXT.Pipe()
            process = _CONTEXT.Process(target=_child, args=(theirs, barrier, target, call), daemon=True)
            process.start()
            theirs.close()
            running.append((process, mine))
    try:
        return [_answer(process, mine) for process, mine in running]
    finally:
        for process, mine in running:
            mine.close()
            process.kill()
            process.join()
            process.close()


@contextmanager
def _import_path() -> Iterator[None]:
    """The fork server inherits our import path, so that it can import up front what the processes need."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _answer(process: Any, mine: Connection) -> Any:
    if not mine.poll(SECONDS):
        raise TimeoutError(f"process {process.pid} gave no answer in {SECONDS:g} s")
    try:
        return mine.recv()
    except EOFError:
        process.join(SECONDS)
        if process.exitcode == -signal.SIGKILL:
            return None
        raise RuntimeError(f"process {process.pid} ended with exit code {process.exitcode}") from None


def _child(theirs: Connection, barrier: Any, target: Callable[..., Any], call: tuple[Any, ...]) -> None:
    theirs.send(target(lambda: barrier.wait(SECONDS), *call))
