"""Real processes for tests, cheap: each is forked from a server that has imported everything and opened nothing."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "tests.support.workers", "tests.support.attached"])


def at_once(target: Callable[..., Any], *calls: tuple[Any, ...], timeout: float = 90.0) -> list[Any]:
    """Run `target(*call)` for every call in a process of its own, let go at one moment; results in order.

    Args:
        target: A module-level function of `tests.support.workers`.
        calls: The arguments of each process.
        timeout: Seconds until a process that has not answered counts as hanging.

    Raises:
        AssertionError: A process hangs, died, or its function raised; the message tells which error it was.
    """
    gate = _CONTEXT.Barrier(len(calls))
    running = []
    for call in calls:
        mine, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_child, args=(theirs, gate, target, call), daemon=True)
        _start(process)
        theirs.close()
        running.append((process, mine))
    try:
        return [_answer(process, mine, timeout) for process, mine in running]
    finally:
        for process, mine in running:
            mine.close()
            process.kill()
            process.join()
            process.close()


def _start(process: Any) -> None:
    """Start a process; the fork server inherits our import path, so that it can import the tests' modules up front."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _answer(process: Any, mine: Connection, timeout: float) -> Any:
    assert mine.poll(timeout), f"process {process.pid} gave no answer in {timeout} s"
    try:
        ok, answer = mine.recv()
    except EOFError:
        process.join(timeout)
        raise AssertionError(f"process {process.pid} died with exit code {process.exitcode}") from None
    assert ok, answer
    return answer


def _child(theirs: Connection, gate: Barrier, target: Callable[..., Any], call: tuple[Any, ...]) -> None:
    gc.freeze()  # what the server has made is looked through by nobody, and stays shared
    try:
        gate.wait(60)
        theirs.send((True, target(*call)))
    except BaseException as error:
        theirs.send((False, f"{type(error).__name__}: {error}"))
        raise
