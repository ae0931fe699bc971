"""What the database tests let other processes do."""

from __future__ import annotations

import asyncio
import dis
import gc
import os
import random
import select
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph_ext.database import Database, open_database
from langgraph_ext.database.migrations import Migration, migrate
from langgraph_ext.errors import StoreError
from tests.database.notes import add, add_in_company, fail, notes, open_notes, until
from tests.support.faults import Line, Points, faulty, kill_myself


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


def close_under_load(path: str, round: int) -> dict[str, Any]:
    """Eight writing threads, two reading ones and two loops meet a `close`; how each ended, and what is missing."""
    database = open_notes(path)
    crowd = [Worker(database, number) for number in range(12)]
    until(lambda: all(worker.acknowledged or worker.reads for worker in crowd), "everybody works")
    time.sleep(random.Random(round).uniform(0, 0.02))  # no two rounds close at the same place
    database.close()
    for worker in crowd:
        worker.thread.join(20)
    again = open_notes(path)
    stored = set(again.read(notes))
    again.close()
    lost = [text for worker in crowd for text in worker.acknowledged if text not in stored]
    return {"ends": [worker.end for worker in crowd], "lost": lost, "sound": is_sound(path)}


class Worker:
    """A thread that writes (numbers 0 to 7), reads (8 and 9) or does both on a loop until it is refused."""

    def __init__(self, database: Database, number: int) -> None:
        self.database, self.number = database, number
        self.acknowledged: list[str] = []
        self.reads = 0
        self.end = "still running"
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        """Go on until an error of ours says otherwise."""
        job = self.write if self.number < 8 else self.read if self.number < 10 else self.do_both
        try:
            for n in range(1_000_000):
                job(f"{self.number} {n}")
        except StoreError as error:
            self.end = error.code

    def write(self, text: str) -> None:
        self.acknowledged += self.database.transact(add, text)

    def read(self, _text: str) -> None:
        self.reads += bool(self.database.read(notes))

    def do_both(self, text: str) -> None:
        asyncio.run(self._do_both(text))

    async def _do_both(self, text: str) -> None:
        writes = [self.database.atransact(add, f"{text} {each}") for each in range(5)]
        answers = await asyncio.gather(self.database.aread(notes), *writes, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        self.acknowledged += [text for written in answers[1:] for text in written]  # type: ignore[union-attr]


def is_sound(path: str) -> bool:
    """Whether SQLite finds no fault in the file."""
    connection = sqlite3.connect(path)
    try:
        return [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


def leave_without_closing(path: str) -> None:
    """Use both doors and go."""
    database = open_notes(path)
    database.transact(add, "sync")
    asyncio.run(database.atransact(add, "async"))
    asyncio.run(database.aread(notes))
    global _kept  # noqa: PLW0603
    _kept = database


_kept: Any = None


def use_after_fork(path: str, call: str) -> dict[str, Any]:
    """Open, fork, and let the child call; what the child was told, and what the parent then stores."""
    database = open_notes(path)
    database.transact(add, "before")
    asyncio.run(database.aread(notes))
    calls = {
        "transact": lambda: database.transact(add, "child"),
        "read": lambda: database.read(notes),
        "atransact": lambda: asyncio.run(database.atransact(add, "child")),
        "aread": lambda: asyncio.run(database.aread(notes)),
    }
    code, _, message = _in_fork(lambda: _refusal(calls[call])).partition(" ")
    database.transact(add, "after")
    stored = database.read(notes)
    database.close()
    return {"code": code, "message": message, "parent": stored}


def open_after_fork(path: str) -> list[str]:
    """Open, fork, and let the child open its own."""
    database = open_notes(path)
    database.transact(add, "before")
    assert "done" == _in_fork(lambda: _write_one(path, "child"))
    database.transact(add, "after")
    return database.read(notes)


def fork_before_use(path: str) -> list[str]:
    """Name a database, fork, and use the same object in the child and in the parent."""
    open_notes(path).close()
    database = open_database(path)
    assert "('child',)" == _in_fork(lambda: str(database.transact(add, "child")))
    database.transact(add, "parent")
    return database.read(notes)


def end_after_fork(path: str) -> dict[str, Any]:
    """Fork a child that closes what it inherited, collects it and ends, while the parent commits."""
    database = open_notes(path)
    database.read(notes)
    child = os.fork()
    if child == 0:
        database.close()
        del database
        gc.collect()
        os._exit(0)
    for n in range(200):
        database.transact(add, str(n))
    _, status = os.waitpid(child, 0)
    stored = len(database.read(notes))
    database.close()
    return {"child": status, "stored": stored, "integrity": "ok" if is_sound(path) else "not sound"}


def fork_under_load(path: str) -> list[str]:
    """Fork twenty times while four threads commit; the code each child gets for a call of its own."""
    database, over = open_notes(path), threading.Event()

    def work(name: str) -> None:
        while not over.is_set():
            database.transact(add, name)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "abcd"]
    for thread in threads:
        thread.start()
    answers = [_in_fork(lambda: _refusal(lambda: database.transact(add, "child"))) for _ in range(20)]
    over.set()
    for thread in threads:
        thread.join()
    database.close()
    return [answer.partition(" ")[0] for answer in answers]


def _refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except StoreError as error:
        return f"{error.code} {error}"
    return "accepted"


def _write_one(path: str, text: str) -> str:
    database = open_notes(path)
    database.transact(add, text)
    database.close()
    return "done"


def _in_fork(job: Callable[[], str]) -> str:
    """Run `job` in a forked child; what it returns, or "hangs" after a few seconds."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sending, job().encode())
        finally:
            os._exit(0)
    os.close(sending)
    answered, _, _ = select.select([receiving], [], [], 5)
    if not answered:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    answer = os.read(receiving, 65536).decode() if answered else "hangs"
    os.close(receiving)
    return answer


def made(number: int, sql: str, *, oldest_reader: int = 0) -> Migration:
    """A migration that no room owns."""
    return Migration(number=number, name=f"{number:04}_step.sql", sql=sql, oldest_reader=oldest_reader)


STEPS = (
    made(1, "CREATE TABLE one (a INTEGER) STRICT;\nINSERT INTO one VALUES (1);\n"),
    made(2, "CREATE TABLE two (a INTEGER) STRICT;\nUPDATE one SET a = a + 1;\n", oldest_reader=1),
    made(3, "CREATE TABLE three (a INTEGER) STRICT;\nINSERT INTO three SELECT a FROM one;\n", oldest_reader=1),
)
"""Three migrations, each of which would do harm if it were applied twice or by halves."""


def migrate_and_die(path: str, kind: str, at: int) -> list[str]:
    """Apply STEPS to a file, and be killed at the given point; the points passed if there was none."""
    points = Points(kill_myself, kind=kind, at=at)
    connection = faulty(points)(path, "full")
    connection.prepare()
    migrate(connection, path, clock_us=lambda: 1, migrations=STEPS)
    connection.close()
    return points.passed


def migrate_when_told(path: str, line: Line) -> None:
    """Apply STEPS to a file, at the moment the parent says."""
    line.tell("ready")
    line.hear()
    migrate_and_die(path, "", 0)


def raise_inside(path: str, form: str, error: str) -> dict[str, Any]:
    """A transaction raises what is no `Exception`: the answer its caller gets, and what becomes of the next calls."""
    database = open_notes(path)
    kinds = {"SystemExit": SystemExit, "GeneratorExit": GeneratorExit, "CancelledError": asyncio.CancelledError}

    async def ask(fn: Any, *args: Any) -> Any:
        try:
            async with asyncio.timeout(2):
                return await database.atransact(fn, *args)
        except TimeoutError:
            return "no answer"
        except BaseException as raised:  # noqa: BLE001 - that is what this is about
            return type(raised).__name__

    def ask_sync(fn: Any, *args: Any) -> Any:
        try:
            return database.transact(fn, *args)
        except BaseException as raised:  # noqa: BLE001 - that is what this is about
            return type(raised).__name__

    wrong = (fail, kinds[error]("inside"), "half")
    answer = ask_sync(*wrong) if form == "sync" else asyncio.run(ask(*wrong))
    after = [ask_sync(add, "sync"), asyncio.run(ask(add, "async"))]
    return {"answer": answer, "next": [text for each in after for text in each], "stored": database.read(notes)}
