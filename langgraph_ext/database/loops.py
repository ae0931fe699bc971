"""Answers across threads: how a worker thread tells an event loop that what a coroutine waits for is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["on_a_loop", "settle_future", "tell"]


def on_a_loop() -> bool:
    """Whether this thread is running an event loop, which must not be blocked."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def tell(loop: asyncio.AbstractEventLoop, fn: Callable[..., object], *args: Any) -> None:
    """Run `fn(*args)` on the loop, from any thread. On a loop that is closed nobody waits, and nothing happens."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(fn, *args)


def settle_future(future: asyncio.Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    """Give a future its result or its error, on its loop; one that was cancelled keeps its cancellation."""
    if future.done():
        return
    if isinstance(error, StopIteration):  # the one that a future refuses
        unusual = RuntimeError(f"a transaction raised {error!r}")
        unusual.__cause__ = error
        error = unusual
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
