"""Recent puts: where the values of each thread's last checkpoint lie, so that the next put need not look.

Only a short cut. The transaction that uses it compares what is remembered with what is stored, in the statement that
inserts, and takes the long way when they differ (another process deleted, pruned or replaced the parent).
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from langgraph_ext.saver.fields import Base
from langgraph_ext.saver.values import Places

__all__ = ["Recent", "RecentPut"]

_MOST_BYTES = 16 * 1024 * 1024
"""About what is remembered in all; the puts of the least recently used namespaces are forgotten first."""

_LEAST_BYTES = 1024
"""About what a put takes at the least."""


class RecentPut(NamedTuple):
    """A put, as the next one of its namespace needs it."""

    checkpoint_id: str
    places: Places
    encoded: bytes
    """The same places, as they are stored."""
    base: Base | None
    """The maps that its fields are stored as a difference from."""
    weight: int
    """About how many bytes places and base take in memory."""


class Recent:
    """The last put of each (thread, namespace). Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._puts: dict[tuple[str, str], RecentPut] = {}
        self._bytes = 0

    def find(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> RecentPut | None:
        """The put of this very checkpoint, if it was the last of its namespace."""
        put = self._puts.get((thread_id, checkpoint_ns))
        return put if put is not None and put.checkpoint_id == checkpoint_id else None

    def remember(self, thread_id: str, checkpoint_ns: str, put: RecentPut) -> None:
        """Note a put after its commit."""
        with self._mutex:
            known = self._puts.pop((thread_id, checkpoint_ns), None)
            self._puts[thread_id, checkpoint_ns] = put
            self._bytes += put.weight - known.weight if known else put.weight + _LEAST_BYTES
            while self._bytes > _MOST_BYTES:
                forgotten = self._puts.pop(next(iter(self._puts)))
                self._bytes -= forgotten.weight + _LEAST_BYTES
