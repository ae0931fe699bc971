"""Loops: which graphs' loops have loaded their thread from this saver, so that what they store comes to it.

A node sees a saver and a checkpoint id also where its own graph hands nothing over: in a subgraph compiled with
`checkpointer=False`. Its loop has not asked for its namespace.

A loop of a subgraph asks with the config of the task that runs it. That is the only time a saver is told that task's
name before it has ended, so it is remembered.
"""

from __future__ import annotations

import threading

from langgraph_ext.ledger.visit_rows import Task

__all__ = ["Loops"]

_MOST = 65_536
"""How many are remembered; those that loaded longest ago are forgotten first."""


class Loops:
    """Thread and namespace of each loop. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._loaded: dict[tuple[str, str], Task | None] = {}

    def loaded(self, thread_id: str, checkpoint_ns: str, task: Task | None = None) -> None:
        """A loop has asked for the newest checkpoint of its namespace.

        Args:
            thread_id: Its thread.
            checkpoint_ns: Its namespace.
            task: The task that runs it, if it is a subgraph's.
        """
        key = thread_id, checkpoint_ns
        with self._mutex:
            before = self._loaded.pop(key, None)
            self._loaded[key] = task or before  # who only reads a subgraph's state stands in no task
            if len(self._loaded) > _MOST:
                del self._loaded[next(iter(self._loaded))]

    def has(self, thread_id: str, checkpoint_ns: str) -> bool:
        """Whether one has."""
        return (thread_id, checkpoint_ns) in self._loaded

    def task_around(self, thread_id: str, checkpoint_ns: str) -> Task | None:
        """The task that runs the subgraph of this namespace; None if none is known."""
        return self._loaded.get((thread_id, checkpoint_ns))
