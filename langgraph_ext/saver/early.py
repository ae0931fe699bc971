"""Early calls: what tasks said before the root checkpoint they were executing was stored.

Under LangGraph's durability `async` a `put_writes` may overtake the `put` of its checkpoint, and under `exit` a
subgraph hands over everything before the root graph does. Only that put says to which run it all belongs.
So what is more than output waits here, and is recorded in the put's transaction. If the process dies in between, the
checkpoint is never stored, and nobody can see what was said at it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from langgraph_ext.ledger.calls import Call

__all__ = ["Early"]

_MOST = 4096
"""Checkpoints that are waited for. The oldest are dropped: their puts failed long ago."""


class Early:
    """The early calls of one saver, by root checkpoint. Safe to use from any thread."""

    def __init__(self) -> None:
        self.any = False
        """Whether there are any: all that a put needs to look at, usually."""
        self._mutex = threading.Lock()
        self._calls: dict[tuple[str, str], dict[Call, bool]] = {}
        """Each with whether a put's transaction has taken it."""

    def add(self, call: Call) -> None:
        """Keep a call until its root checkpoint is stored. The same call again is no other."""
        with self._mutex:
            while len(self._calls) >= _MOST:
                del self._calls[next(iter(self._calls))]
            self._calls.setdefault((call.thread_id, call.root_id), {})[call] = False
            self.any = True

    def take(self, thread_id: str, checkpoint_id: str) -> Collection[Call]:
        """Those that wait for a root checkpoint, for the transaction that stores it; again, if it is repeated."""
        if not self.any:
            return ()
        with self._mutex:
            waiting = self._calls.get((thread_id, checkpoint_id), {})
            waiting.update(dict.fromkeys(waiting, True))
            return tuple(waiting)

    def left(self, thread_id: str, checkpoint_id: str) -> Collection[Call]:
        """Those that came too late for a put that was on its way already."""
        if not self.any:
            return ()
        with self._mutex:
            return tuple(call for call, taken in self._calls.get((thread_id, checkpoint_id), {}).items() if not taken)

    def forget(self, thread_id: str, checkpoint_id: str) -> None:
        """They are recorded."""
        with self._mutex:
            self._calls.pop((thread_id, checkpoint_id), None)
            self.any = bool(self._calls)
