"""Cancelled: whether a `CancelledError` is somebody's wish, or comes out of code that was called."""

from __future__ import annotations

import asyncio

__all__ = ["is_told_to_stop"]


def is_told_to_stop() -> bool:
    """Whether somebody has cancelled the task that runs here; False: a future that it awaits was cancelled alone."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
