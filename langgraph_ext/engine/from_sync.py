"""From sync: how code that awaits nothing runs a coroutine, in a program, a thread or a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, TypeVar

from langgraph_ext.database import on_a_loop, tell

__all__ = ["from_sync"]

T = TypeVar("T")


def from_sync(act: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine for a caller that awaits nothing; on an event loop (a notebook), in a thread of its own.

    Ctrl-C cancels it there as well, and is raised when it has come to its end.
    """
    running: list[tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = []
    stopped: list[bool] = []

    async def acted() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task.cancel))
        if stopped:  # before it could be told
            raise asyncio.CancelledError
        return await act()

    if not on_a_loop():
        return asyncio.run(acted())
    found: list[Any] = []
    done = threading.Event()  # and not `join`: interrupted once, it takes the thread for ended

    def work() -> None:
        try:
            found.append((asyncio.run(acted()), None))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            found.append((None, error))
        finally:
            done.set()

    thread = threading.Thread(target=copy_context().run, args=(work,), name="langgraph-ext drive", daemon=True)
    thread.start()
    try:
        done.wait()
    except BaseException:
        stopped.append(True)
        for loop, cancel in running:
            tell(loop, cancel)
        done.wait()
        raise
    result, error = found[0]
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
