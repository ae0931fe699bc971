"""In threads: functions of users that hold their thread up, away from event loops and from the pools of others.

A pool with a bound has calls wait for each other: a tool that runs an agent whose tools wait for the same pool would
wait for ever, and a call would be late before it has begun.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")

_MOST = 1_000
"""Threads; they are made when they are needed."""


class _Threads:
    """The threads of this process."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(_MOST, thread_name_prefix="langgraph-ext call")

    def renew(self) -> None:
        """In a forked child, which has none of its parent's."""
        self.__init__()  # type: ignore[misc]


_THREADS = _Threads()

os.register_at_fork(after_in_child=_THREADS.renew)


async def in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread, in the caller's context. Cancelled, the function goes on.

    Raises:
        RuntimeError: It has raised what would end an event loop (`SystemExit`), or `StopIteration`.
    """
    context = copy_context()

    def act() -> T:
        try:
            return context.run(fn, *args)
        except StopIteration as error:  # no future can hold it
            raise RuntimeError(f"it raised StopIteration: {error}") from error
        except Exception:
            raise
        except BaseException as error:
            raise RuntimeError(f"it raised {type(error).__name__}: {error}") from error

    return await asyncio.get_running_loop().run_in_executor(_THREADS.pool, act)
