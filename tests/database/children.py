"""What the database tests let other processes do."""

from __future__ import annotations

import asyncio
import dis
import gc
import os
import random
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from langgraph_ext.database import Database
from langgraph_ext.errors import StoreError
from tests.database.notes import add, add_in_company, notes, open_notes
from tests.support.faults import Line


def commit_under_fire(path: str, form: str, count: int) -> dict[str, Any]:
    """Commit pairs of notes in the main thread while Ctrl-C falls like rain, and in another thread beside it.

    Returns:
        How many calls were acknowledged and interrupted, and which acknowledged pairs are missing or halves.
    """
    database = open_notes(path)
    acknowledged: list[str] = []
    interrupted = number = 0
    over = threading.Event()
    jobs = [(_commit_beside, (database, count)), (_rain, (over,))]
    beside = [threading.Thread(target=job, args=args, daemon=True) for job, args in jobs]
    signal.signal(signal.SIGINT, _interrupt_a_commit)
    for thread in beside:
        thread.start()
    while len(acknowledged) < count:
        number += 1
        try:
            _commit_pair(database, form, f"main {number}")
            acknowledged.append(f"main {number}")
        except KeyboardInterrupt:
            interrupted += 1
    over.set()
    for thread in beside:
        thread.join()
    stored = Counter(database.read(notes))
    database.close()
    pairs = {text.removesuffix(" b").removesuffix(" a") for text in stored}
    return {
        "lost": [name for name in acknowledged if stored[f"{name} a"] == 0],
        "halves": [name for name in pairs if (stored[f"{name} a"], stored[f"{name} b"]) != (1, 1)],
        "interrupted": interrupted > 0,
        "main": len(acknowledged),
        "other": sum(name.startswith("other") for name in pairs),
    }


def _rain(over: threading.Event) -> None:
    """Ctrl-C at moments that differ each time, until it is over."""
    moments = random.Random(7)
    while not over.wait(moments.uniform(0.00005, 0.002)):
        os.kill(os.getpid(), signal.SIGINT)


def _interrupt_a_commit(_number: int, frame: Any) -> None:
    """Raise where Ctrl-C hits a commit, its clean-up included, and not where it hits the test around it."""
    while frame is not None:
        if frame.f_code is _commit_pair.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


def _commit_pair(database: Database, form: str, name: str) -> None:
    if form == "async":
        asyncio.run(database.atransact(add, f"{name} a", f"{name} b"))
    elif form == "company":
        add_in_company(database, f"{name} a", f"{name} b")
    else:
        database.transact(add, f"{name} a", f"{name} b")


def _commit_beside(database: Database, count: int) -> None:
    for number in range(count):
        database.transact(add, f"other {number} a", f"other {number} b")


def interrupt_everywhere(path: str, form: str) -> dict[str, list[str]]:
    """Interrupt a commit at each place where CPython looks for signals, one place a commit; look what that did.

    Returns:
        The places after which another thread could no longer commit, pairs that are halves, and acknowledged ones lost.
    """
    report: dict[str, list[str]] = {"stuck": [], "halves": [], "lost": []}
    database, at, where = open_notes(f"{path}.0"), 0, ""
    while where is not None:
        at += 1
        acknowledged = False
        try:
            where = _commit_interrupted(database, form, f"main {at}", at=at)
            acknowledged = True
        except KeyboardInterrupt as error:
            where = str(error)
        if not _another_thread_commits(database, f"other {at}"):
            report["stuck"].append(str(where))
            database = open_notes(f"{path}.{at}")  # the old one is beyond use
            continue
        stored = Counter(database.read(notes))
        report["lost"] += [str(where)] if acknowledged and not stored[f"main {at} a"] else []
        report["halves"] += [str(where)] if stored[f"main {at} a"] != stored[f"main {at} b"] else []
    return report


def _commit_interrupted(database: Database, form: str, name: str, *, at: int) -> str | None:
    """Commit a pair; returns None if the commit had no such place, else where an interruption was swallowed."""
    looks = {dis.opmap[name] for name in ("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME") if name in dis.opmap}
    before: dict[Any, int] = {}
    seen, struck = 0, ""

    def trace(frame: Any, event: str, _arg: Any) -> Any:
        nonlocal seen, struck
        if "langgraph_ext" not in frame.f_code.co_filename or struck:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            looked, before[frame] = before.get(frame) in looks, frame.f_code.co_code[frame.f_lasti]
            seen += looked
            if seen == at and looked:
                struck = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                raise KeyboardInterrupt(struck)
        return trace

    sys.settrace(trace)
    try:
        _commit_pair(database, form, name)
    finally:
        sys.settrace(None)
        before.clear()
    return struck or None


def _another_thread_commits(database: Database, name: str) -> bool:
    """Whether another thread can commit, in a reasonable time."""
    done: list[Any] = []

    def commit() -> None:
        with suppress(StoreError):
            done.append(database.transact(add, f"{name} a", f"{name} b"))

    thread = threading.Thread(target=commit, daemon=True)
    thread.start()
    thread.join(2.0)
    return bool(done)
