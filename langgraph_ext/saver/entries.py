"""Entries: `put_writes` calls that have begun and are not yet in the queue (rule S11).

LangGraph starts a task's `put_writes` and the next checkpoint's `put` at nearly the same time, in two threads. A `put`
waits for the calls of its thread that were entered before it, until they are queued, and queues behind them: a
checkpoint never overtakes the writes that led to it. A call leaves the register when it is queued, or when it failed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from functools import partial

from langgraph_ext.database import Answer, tell

__all__ = ["Entries", "Entry"]


class Entry:
    """One call on its way to the queue. `leave` is to be called when it is queued, and again when it has failed."""

    __slots__ = ("_entries", "_thread_id", "left", "waiters")

    def __init__(self, entries: Entries, thread_id: str) -> None:
        self._entries = entries
        self._thread_id = thread_id
        self.left = False
        self.waiters: list[Callable[[], object]] = []

    def leave(self) -> None:
        """Leave the register, and wake those who wait for it; may be called twice."""
        if self.left:
            return
        with self._entries.mutex:
            self.left = True
            entered = self._entries.entered[self._thread_id]
            entered.discard(self)
            if not entered:
                del self._entries.entered[self._thread_id]
        for waiter in self.waiters:
            waiter()


class Entries:
    """The register, by thread id. Safe to use from any thread and any event loop."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.entered: dict[str, set[Entry]] = {}

    def enter(self, thread_id: str) -> Entry:
        """Register a call, before it encodes."""
        entry = Entry(self, thread_id)
        with self.mutex:
            self.entered.setdefault(thread_id, set()).add(entry)
        return entry

    def ahead(self, thread_id: str) -> Collection[Entry]:
        """The calls of a thread that have entered and not left."""
        if thread_id not in self.entered:
            return ()
        with self.mutex:
            return tuple(self.entered.get(thread_id, ()))

    def wait(self, entries: Collection[Entry]) -> None:
        """Hold this thread until all of them have left. They are encoding in threads of their own: it is short."""
        for entry in entries:
            turn = threading.Lock()
            turn.acquire()
            if self._ask(entry, turn.release):
                turn.acquire()

    async def await_(self, entries: Collection[Entry]) -> None:
        """As `wait`, for a coroutine."""
        loop = asyncio.get_running_loop()
        for entry in entries:
            turn = Answer(loop=loop)
            if self._ask(entry, partial(tell, loop, turn.settle)):
                await turn

    def _ask(self, entry: Entry, waiter: Callable[[], object]) -> bool:
        """Whether `waiter` will be called; False when the entry has left already."""
        with self.mutex:
            if entry.left:
                return False
            entry.waiters.append(waiter)
            return True
