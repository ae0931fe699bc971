"""In time: the answer of a call that may take so long and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["in_time"]

T = TypeVar("T")

_ROUNDS = 4
"""Of the event loop, in which the end of a call comes to be known."""


async def in_time(invoked: Awaitable[T], seconds: float | None, late: Callable[[], Exception]) -> T:
    """Wait for a call, and tell it to stop when its time is over; a function in a thread goes on.

    Args:
        invoked: The call.
        seconds: How long it may take; None: as long as it likes.
        late: Makes what is raised of one that took longer.

    Raises:
        CancelledError: The caller was told to stop, and the call had not answered yet.
    """
    calling = asyncio.ensure_future(invoked)
    try:
        await asyncio.wait({calling}, timeout=seconds)
        for _ in range(_ROUNDS):  # the loop may have been held up: what has ended by now was not late
            if not calling.done():
                await asyncio.sleep(0)
    except asyncio.CancelledError:
        await _stop(calling)
        if calling.cancelled() or not calling.done() or calling.exception() is not None:
            raise  # else it has answered just then: that is known, whoever is told to stop
    if not calling.done():
        await _stop(calling)
        raise late()
    return calling.result()


async def _stop(calling: asyncio.Future[T]) -> None:
    """Tell a call to stop, and wait until it has; a thread goes on, and nobody hears of it."""
    calling.cancel()
    with suppress(BaseException):
        await asyncio.wait({calling})
    if calling.done() and not calling.cancelled():
        calling.exception()  # asked, so that it is not logged as forgotten
