"""Notes: the smallest transactions that write and read, in a table of their own: tests of the lane need no saver.

A note is one row with a text. Writing one twice makes two, so a transaction that ran twice shows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any

from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.database.connection import WriteConnection


def open_notes(path: str | PathLike[str], **options: Any) -> Database:
    """A database that is open and has a table of notes."""
    database = open_database(path, **options)
    database.transact(_create)
    return database


def _create(tx: Tx) -> None:
    tx._execute("CREATE TABLE IF NOT EXISTS note (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)", {})


def add(tx: Tx, *texts: str) -> tuple[str, ...]:
    """Write notes, and return their texts."""
    for text in texts:
        tx._execute("INSERT INTO note (text) VALUES (:text)", {"text": text})
    return texts


def notes(tx: Tx) -> list[str]:
    """Every note, in the order they were written."""
    return [row["text"] for row in tx._execute("SELECT text FROM note ORDER BY number", {}).fetchall()]


def add_in_company(database: Database, *texts: str) -> tuple[str, ...]:
    """`transact(add, …)` for a caller that may wait a moment for somebody to share its commit with."""
    return database.submit(partial(_add, texts=texts), may_linger=True, queued=lambda: None)


def _add(tx: Tx, texts: tuple[str, ...]) -> tuple[str, ...]:
    return add(tx, *texts)


def fail(tx: Tx, error: BaseException, *before: str) -> None:
    """Write some notes and then fail."""
    add(tx, *before)
    raise error


class Gate:
    """A transaction that stops inside until it is let go: until then everybody else queues behind it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, tx: Tx, text: str = "gate") -> tuple[str, ...]:
        written = add(tx, text)
        self.entered.set()
        assert self.open.wait(30), "nobody opened the gate"
        return written


class Slow:
    """A read that looks, waits until it is let go on, and looks again."""

    def __init__(self) -> None:
        self.looked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, tx: Tx) -> tuple[list[str], list[str]]:
        first = notes(tx)
        self.looked.set()
        assert self.go_on.wait(30)
        return first, notes(tx)


class Counting(WriteConnection):
    """Counts the transactions it begins and commits; tests use a subclass of their own (fixture `counting`)."""

    begins = commits = 0

    def begin(self) -> None:
        type(self).begins += 1
        super().begin()

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        type(self).begins += 1
        changed = super().run_alone(sql, params)
        type(self).commits += 1
        return changed

    def commit(self) -> None:
        super().commit()
        type(self).commits += 1


def until(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> None:
    """Wait for a state of affairs; the test fails if it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.0005)


def waiting(database: Database) -> int:
    """Calls that stand in the lane's queue."""
    return len(database._lane._calls)


def until_waiting(database: Database, count: int) -> None:
    """Wait until so many calls stand in the lane's queue."""
    until(lambda: waiting(database) == count, f"{count} calls wait in the lane")


def until_begun(counting: type[Counting]) -> None:
    """Wait until the one call that was made has left the queue and asks for the write lock."""
    until(lambda: counting.begins == 1, "a call begins")


@contextmanager
def nobody_waits_long(seconds: float) -> Iterator[None]:
    """The block must not take longer."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds
