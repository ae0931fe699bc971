"""Holds: what still runs under each lease in this process, so that none is given back before that is over (L12, L14).

Bodies run under a lease, and so do the calls of effects, which may outlast their body: a coroutine that nobody waits
for, a sync body whose invocation was cancelled. As long as one does, the lease is renewed, and nobody else gets the
thread.

A lease that attempts took by themselves is renewed from here; the settlement of the last one gives it back, and if none
comes, since its graph was stopped, it expires. That of an attached invocation is its saver's business (attaching.py).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from langgraph_ext.errors import LeaseError
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.renewal import Renewal

__all__ = ["Holds"]

_LOGGER = logging.getLogger("langgraph_ext")

_Key = tuple[str, int]
"""Thread id and epoch."""


class Holds:
    """What runs under leases. Safe to use from any thread."""

    def __init__(self, renewal: Renewal) -> None:
        self._renewal = renewal
        self._mutex = threading.Lock()
        self._running: dict[_Key, int] = {}
        """How many bodies and calls run."""
        self._own: set[_Key] = set()
        """Leases that attempts took by themselves."""
        self._then: dict[_Key, Callable[[], object]] = {}
        """What is to be done when nothing runs any more."""

    def begin(self, lease: Lease) -> None:
        """A body runs under this lease.

        Raises:
            StoreError: The database is closed (`closed`).
        """
        with self._mutex:
            key = (lease.thread_id, lease.epoch)
            if not lease.whole and key not in self._own:
                self._renewal.add(lease, _log_loss)
                self._own.add(key)
            self._running[key] = self._running.get(key, 0) + 1

    def join(self, thread_id: str, epoch: int) -> None:
        """A call runs, whose body has begun under this lease."""
        with self._mutex:
            self._running[thread_id, epoch] = self._running.get((thread_id, epoch), 0) + 1

    def end(self, thread_id: str, epoch: int) -> None:
        """A body, or a call, has ended."""
        key = (thread_id, epoch)
        with self._mutex:
            left = self._running.get(key, 0) - 1
            if left > 0:
                self._running[key] = left
                return
            self._running.pop(key, None)
            if key in self._own:
                self._own.discard(key)
                self._renewal.remove(thread_id, epoch)
            then = self._then.pop(key, None)
        if then is not None:
            then()

    def when_idle(self, thread_id: str, epoch: int, then: Callable[[], object]) -> None:
        """Do something as soon as nothing runs under a lease: now, or in whichever thread ends the last of it."""
        key = (thread_id, epoch)
        with self._mutex:
            if key in self._running:
                self._then[key] = then
                return
        then()


def _log_loss(error: LeaseError) -> None:
    """Nothing has to be done: whatever the body still acts, or stores, is refused."""
    _LOGGER.warning("a durable node has lost its thread (%s): %s", error.code, error.details)
