"""Lives: in which life of its thread each invocation has begun (rule S9).

A thread that is deleted and begins anew has another life, and what still comes from one before is refused. What is
stored tells most of that by itself (ledger/tombstones.py), but not whether a checkpoint that nobody has stored yet is
one of the thread's new life: under durability `async` what a task writes may come before its checkpoint, and under
`exit` what a subgraph stores comes before all of the root graph's. So each invocation remembers the life that its loop
found when it loaded the thread, and what it writes names it.

An invocation is known by an object that it and all graphs in it share. Its caller may give the same one to several;
then the last one that began counts.
"""

from __future__ import annotations

import threading

from langchain_core.runnables import RunnableConfig

from langgraph_ext.saver import host

__all__ = ["Lives"]

_MOST = 65_536
"""How many are remembered; those that began longest ago are forgotten first."""


class Lives:
    """The life of each invocation's thread. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._lives: dict[tuple[int, str], tuple[object, int]] = {}
        """Each with the object of the invocation's, which is kept so that its id comes to no other."""

    def loaded(self, config: RunnableConfig, thread_id: str, checkpoint_ns: str, life: int) -> None:
        """A graph's loop has loaded its thread in this life; one of a subgraph is in its root graph's."""
        control = host.control_in(config)
        if control is None:
            return
        key = id(control), thread_id
        with self._mutex:
            if checkpoint_ns and key in self._lives:
                return
            self._lives.pop(key, None)
            self._lives[key] = control, life
            if len(self._lives) > _MOST:
                del self._lives[next(iter(self._lives))]

    def of(self, config: RunnableConfig, thread_id: str) -> int | None:
        """The life that what comes with this config belongs to; None if that is not known."""
        found = self._lives.get((id(host.control_in(config)), thread_id))
        return None if found is None else found[1]
