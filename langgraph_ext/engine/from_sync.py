"""From sync: how code that awaits nothing runs a coroutine, in a program, a thread or a notebook.

All such coroutines of a process run on one event loop, in a thread of its own: chat models keep connections open, which
belong to the loop that they were made on. The thread lasts as long as the process; nothing waits for it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TypeVar

__all__ = ["from_sync"]

T = TypeVar("T")

_JOIN_SECONDS = 2.0

_INSIDE: ContextVar[bool] = ContextVar("langgraph_ext_from_sync", default=False)
"""Whether the caller runs inside a coroutine of this file, in whichever thread."""


def from_sync(act: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine for a caller that awaits nothing, on an event loop (a notebook) or not.

    Ctrl-C cancels it, and is raised when it has come to its end.
    """
    return _PROCESS.loop().run(act)


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._is_over = False
        self.thread = threading.Thread(target=self._run, name="langgraph-ext drive", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        """Run the loop until it is closed. A task that raises SystemExit takes asyncio's loop with it, and not this."""
        while not self._is_over:
            with suppress(BaseException):
                self.loop.run_forever()

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine there, in its caller's context, and wait for it."""
        context = copy_context()
        tasks: list[asyncio.Task[T]] = []
        done = threading.Event()

        async def acted() -> T:
            _INSIDE.set(True)
            return await act()

        def begin() -> None:
            tasks.append(self.loop.create_task(acted(), context=context))
            tasks[0].add_done_callback(lambda task: done.set())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # interrupted before it was begun
                done.set()

        try:
            self.loop.call_soon_threadsafe(begin)
            done.wait()
        except BaseException:
            self.loop.call_soon_threadsafe(cancel)
            done.wait()
            raise
        return tasks[0].result()

    def close(self) -> None:
        """Stop it; what runs on it is left."""
        self._is_over = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_JOIN_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


class _Process:
    """The loop of this process, once there is one."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._loop: _LoopThread | None = None

    def loop(self) -> _LoopThread | _Passing:
        """It; another one for a call that is made inside such a call, and would wait for itself."""
        if _INSIDE.get():
            return _Passing()
        with self._mutex:
            if self._loop is None:
                self._loop = _LoopThread()
            return self._loop

    def forget(self) -> None:
        """In a forked child: its thread is the parent's, and so may be who holds the mutex."""
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        """At the end of the program."""
        if self._loop is not None:
            self._loop.close()


class _Passing:
    """A loop for one call."""

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """As of a lasting one."""
        loop = _LoopThread()
        try:
            return loop.run(act)
        finally:
            loop.close()


_PROCESS = _Process()

os.register_at_fork(after_in_child=_PROCESS.forget)
atexit.register(_PROCESS.close)
