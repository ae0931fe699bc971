"""Cancelled: whether a `CancelledError` is somebody's wish, and what is brought to its end all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["is_end_of_caller", "is_told_to_stop", "to_its_end"]

T = TypeVar("T")


def is_told_to_stop() -> bool:
    """Whether somebody has cancelled the task that runs here; False: a future that it awaits was cancelled alone."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def is_end_of_caller(error: BaseException) -> bool:
    """Whether an error says that whoever called a user's function is to end; else it is what that has raised."""
    return isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and is_told_to_stop())


async def to_its_end(act: Coroutine[Any, Any, T]) -> T:
    """Run what a worker does when it stops to its end, however often it is told to stop meanwhile.

    Raises:
        CancelledError: It was; when that has come to its end.
    """
    task = asyncio.ensure_future(act)
    told: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            told = error
    if told is not None:
        if not task.cancelled():
            task.exception()  # asked, so that it is not logged as forgotten
        raise told
    return task.result()
