"""Timeouts: which cancelled bodies LangGraph has cancelled by a timeout policy (rule L49).

To a body its timeout is a cancellation like any other: what tells the difference is known a moment later, or when the
policy's error has been through a RetryPolicy's pause. Two things prove it, both in this process:

- the task ends with a NodeTimeoutError, which its `put_writes` brings;
- the task is tried again: LangGraph does not repeat what somebody has cancelled.

Until then the attempt is on record as cancelled; if the process dies, it stays so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.serde.types import ERROR

from langgraph_ext.saver import host

__all__ = ["Timeouts"]

_MOST = 4096
"""How many tasks are remembered. Of the oldest it will not be known any more."""

Task = tuple[str, str | None, str]
"""`(thread_id, checkpoint_id, task_id)`."""


class Timeouts:
    """Cancelled attempts under timeout policies, by task. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._cancelled: dict[Task, tuple[str, ...]] = {}
        """Ids of attempts."""
        self._over: dict[Task, None] = {}
        """Tasks whose timeout was told of."""

    def cancelled(self, task: Task, attempt_id: str) -> bool:
        """An attempt under a timeout policy was cancelled; whether its task's timeout is known already."""
        with self._mutex:
            if task in self._over:
                return True
            self._cancelled[task] = (*self._cancelled.pop(task, ()), attempt_id)
            _shorten(self._cancelled)
        return False

    def before(self, task: Task, number: int) -> tuple[str, ...]:
        """A try of a task begins: what timed out in earlier ones. A first try is not LangGraph's repetition."""
        if not self._cancelled and not self._over:
            return ()
        with self._mutex:
            self._over.pop(task, None)
            found = self._cancelled.pop(task, ())
        return found if number > 1 else ()

    def ended(self, task: Task, writes: Sequence[tuple[str, Any]]) -> tuple[str, ...]:
        """A task's writes are stored: what has timed out with it."""
        if not any(channel == ERROR and host.is_timeout(value) for channel, value in writes):
            return ()
        with self._mutex:
            self._over[task] = None
            _shorten(self._over)
            return self._cancelled.pop(task, ())


def _shorten(kept: dict[Task, Any]) -> None:
    if len(kept) > _MOST:
        del kept[next(iter(kept))]
