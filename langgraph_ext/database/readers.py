"""Readers: connections that cannot write, lent to one thread at a time, and the thread that reads for coroutines.

A reader sees one snapshot and holds it only while its function runs. In WAL mode it blocks no writer.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from langgraph_ext.database.connection import open_reading, translate
from langgraph_ext.database.loops import Answer, tell
from langgraph_ext.database.tx import Cursor, Tx
from langgraph_ext.errors import StoreError

__all__ = ["ReaderThread", "Readers", "answer"]

T = TypeVar("T")

_IDLE = 8
"""Reader connections kept open between reads."""


class Readers:
    """Read connections to one file, opened as needed. Each is used, and closed, only by who has borrowed it."""

    def __init__(
        self, path: Callable[[], str], *, tx: Callable[[Callable[[str, Mapping[str, object]], Cursor]], Tx]
    ) -> None:
        self._path = path
        self._tx = tx
        self._idle: list[sqlite3.Connection] = []
        self._mutex = threading.Lock()
        self._closed = False

    def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn(tx)` on one snapshot of the database."""
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            return fn(self._tx(connection.execute))
        except sqlite3.Error as error:
            raise translate(error, self._path()) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self) -> sqlite3.Connection:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        path = self._path()
        try:
            return open_reading(path)
        except sqlite3.Error as error:
            raise translate(error, path) from error

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._mutex:
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


class Job:
    """One read a coroutine waits for, and what is to be done with its rows when the connection is free again."""

    __slots__ = ("fn", "future", "loop", "then")

    def __init__(self, fn: Callable[[Tx], Any], then: Callable[[Any], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.fn = fn
        self.then = then
        self.loop = loop
        self.future = Answer(loop=loop)


class ReaderThread:
    """One thread that reads for coroutines, started by the first of them."""

    def __init__(self, read: Callable[[Callable[[Tx], Any]], Any]) -> None:
        self._read = read
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()
        self._closed = False

    async def run(self, fn: Callable[[Tx], Any], then: Callable[[Any], Any]) -> Any:
        """Run `then(fn(tx))` there; the coroutine waits for its result."""
        job = Job(fn, then, asyncio.get_running_loop())
        with self._mutex:
            if self._closed:
                raise StoreError("the database is closed; open it again to use it", code="closed")
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="reader", daemon=True)
                thread.start()
                self._thread = thread
            self._jobs.put(job)
        return await job.future

    def close(self) -> None:
        """Finish what is queued, then end."""
        with self._mutex:
            self._closed = True
            self._jobs.put(None)
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def let_go(self) -> None:
        """End without waiting."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer(job.loop, job.future, partial(self._do, job))
            del job  # an idle thread must not keep a forgotten database alive
        self._jobs.put(None)  # for another one, should Ctrl-C have come when it was started

    def _do(self, job: Job) -> Any:
        return job.then(self._read(job.fn))


def answer(loop: asyncio.AbstractEventLoop, future: Answer, work: Callable[[], Any]) -> None:
    """Do `work` in this thread and give the coroutine that waits for `future` its result, or its error."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - given to the coroutine; this thread lives on
        tell(loop, future.settle, None, error)
    else:
        tell(loop, future.settle, result, None)
