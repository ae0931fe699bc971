"""Holds: leases that attempts took by themselves, renewed for as long as a body runs under them (rule L14).

The bodies of one step share a lease. The last one that ends lets it be renewed no more; the settlement gives it back,
and if none comes, since its graph was stopped, it expires.
"""

from __future__ import annotations

import logging
import threading

from langgraph_ext.errors import LeaseError
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.renewal import Renewal

__all__ = ["Holds"]

_LOGGER = logging.getLogger("langgraph_ext")


class Holds:
    """The bodies that run under leases of their own. Safe to use from any thread."""

    def __init__(self, renewal: Renewal) -> None:
        self._renewal = renewal
        self._mutex = threading.Lock()
        self._running: dict[tuple[str, int], int] = {}
        """How many bodies run, by thread id and epoch."""

    def begin(self, lease: Lease) -> None:
        """A body runs under this lease.

        Raises:
            StoreError: The database is closed (`closed`).
        """
        with self._mutex:
            key = (lease.thread_id, lease.epoch)
            if key not in self._running:
                self._renewal.add(lease, _log_loss)
            self._running[key] = self._running.get(key, 0) + 1

    def end(self, thread_id: str, epoch: int) -> None:
        """One of its bodies has ended."""
        with self._mutex:
            key = (thread_id, epoch)
            left = self._running.get(key, 0) - 1
            if left > 0:
                self._running[key] = left
            else:
                self._running.pop(key, None)
                self._renewal.remove(thread_id, epoch)


def _log_loss(error: LeaseError) -> None:
    """Nothing has to be done: whatever the body still acts, or stores, is refused."""
    _LOGGER.warning("a durable node has lost its thread (%s): %s", error.code, error.details)
