"""Recent puts: where the values of each thread's last checkpoint lie, so that the next put need not look.

Only a short cut. The statement that inserts compares what is remembered with the newest put stored, and stores nothing
when they differ (another process put, deleted, pruned or replaced one): the long way is taken then.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from langgraph_ext.saver.bodies import Known
from langgraph_ext.saver.fields import Base
from langgraph_ext.saver.values import Places

__all__ = ["NO_RUN", "Recent", "RecentPut"]

_MOST_BYTES = 16 * 1024 * 1024
"""About what is remembered in all; the puts of the least recently used namespaces are forgotten first."""

_MOST_DOUBTED = 4096
"""Threads whose doubts are counted."""

_LEAST_BYTES = 1024
"""About what a put takes at the least."""

_ENTRY_BYTES = 160
"""About what an entry of a base takes."""


NO_RUN = 0
"""No run has this number."""

_NONE = None, 0


class RecentPut(NamedTuple):
    """A put, as the next one of its namespace needs it."""

    checkpoint_id: str
    places: Places
    encoded: bytes
    """The same places, as they are stored."""
    base: Base | None
    """The maps that its fields are stored as a difference from."""
    run: int | None = NO_RUN
    """The run it belongs to, if that is running; None if the ledger has to be asked."""
    drains: str | None = None
    """Why its run is to stop, if somebody asked for that; never remembered."""
    known: Mapping[str, Known] | None = None
    """Its large values, if they are new; remembered apart (bodies.py)."""


class Recent:
    """The last put of each (thread, namespace). Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._puts: dict[tuple[str, str], tuple[RecentPut, int]] = {}
        """Each with its size."""
        self._bytes = 0
        self._doubts: dict[str, int] = {}
        """How often the run of each thread was doubted."""
        self._first_doubt = 0

    def find(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> RecentPut | None:
        """The put of this very checkpoint, if it was the last of its namespace."""
        put, _ = self._puts.get((thread_id, checkpoint_ns), _NONE)
        return put if put is not None and put.checkpoint_id == checkpoint_id else None

    def doubts(self, thread_id: str) -> int:
        """How often a thread's run was doubted: what is prepared now is remembered without doubt if that is so then."""
        return self._doubts.get(thread_id, 0)

    def doubt_run(self, thread_id: str) -> None:
        """Have the ledger asked at a thread's next put: its run may have stopped running."""
        with self._mutex:
            if len(self._doubts) >= _MOST_DOUBTED:
                self._doubts.clear()
                self._first_doubt += 1
            self._doubts[thread_id] = self._doubts.get(thread_id, self._first_doubt) + 1
            put, size = self._puts.get((thread_id, ""), _NONE)
            if put is not None:
                self._puts[thread_id, ""] = put._replace(run=None), size

    def remember(self, thread_id: str, checkpoint_ns: str, put: RecentPut, doubts: int = 0) -> None:
        """Note a put after its commit; `doubts` as they were when it was prepared."""
        key = thread_id, checkpoint_ns
        size = _bytes_of(put)
        with self._mutex:
            if put.run and doubts != self._doubts.get(thread_id, 0):
                put = put._replace(run=None)
            _, forgotten = self._puts.pop(key, _NONE)
            self._puts[key] = put, size
            self._bytes += size - forgotten
            while self._bytes > _MOST_BYTES:
                self._bytes -= self._puts.pop(next(iter(self._puts)))[1]


def _bytes_of(put: RecentPut) -> int:
    entries = len(put.base.channels) + len(put.base.nodes) if put.base else 0
    return _LEAST_BYTES + 4 * len(put.encoded) + _ENTRY_BYTES * entries
