"""Loops: which graphs' loops have loaded their thread from this saver, so that what they store comes to it.

A node sees a saver and a checkpoint id also where its own graph hands nothing over: in a subgraph compiled with
`checkpointer=False`. Its loop has not asked for its namespace.
"""

from __future__ import annotations

import threading

__all__ = ["Loops"]

_MOST = 65_536
"""How many are remembered; those that loaded longest ago are forgotten first."""


class Loops:
    """Thread and namespace of each loop. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._loaded: dict[tuple[str, str], None] = {}

    def loaded(self, thread_id: str, checkpoint_ns: str) -> None:
        """A loop has asked for the newest checkpoint of its namespace."""
        key = thread_id, checkpoint_ns
        with self._mutex:
            self._loaded.pop(key, None)
            self._loaded[key] = None
            if len(self._loaded) > _MOST:
                del self._loaded[next(iter(self._loaded))]

    def has(self, thread_id: str, checkpoint_ns: str) -> bool:
        """Whether one has."""
        return (thread_id, checkpoint_ns) in self._loaded
