"""Last names: how the messages of histories are known again, kept, so that a chat's next turn reads the new ones alone.

A history only grows, so what was read of it stays right, whoever has added to it meanwhile. Forgetting it costs a read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from weakref import WeakKeyDictionary

from langgraph_ext.database import Database, Tx
from langgraph_ext.engine.contexts import Name, names_of

__all__ = ["LastNames", "last_names"]

_MOST = 100_000
"""So many names are kept for a database: some twenty-five megabytes."""


class LastNames:
    """Names by context, those that were used last. May be used by several threads.

    Args:
        most: How many there are together, at most.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._size = most, 0
        self._names: OrderedDict[str, list[Name]] = OrderedDict()
        self._mutex = threading.Lock()

    def read(self, tx: Tx, context_id: str) -> list[Name]:
        """All names of a context, in their order; of those that are kept, only what is behind them is read.

        Args:
            tx: A transaction that only reads: what it sees is committed.
            context_id: The context.
        """
        with self._mutex:
            known = self._names.get(context_id, [])
        names = [*known, *names_of(tx, context_id, after=known[-1].seq if known else 0)]
        self._keep(context_id, names)
        return names

    def _keep(self, context_id: str, names: list[Name]) -> None:
        """Keep them, if they fit; those that were used longest ago are forgotten for them."""
        with self._mutex:
            self._size -= len(self._names.pop(context_id, ()))
            if len(names) > self._most:
                return
            self._names[context_id] = names
            self._size += len(names)
            while self._size > self._most:
                self._size -= len(self._names.popitem(last=False)[1])


_OF: WeakKeyDictionary[Database, LastNames] = WeakKeyDictionary()
_MUTEX = threading.Lock()


def last_names(database: Database) -> LastNames:
    """The names of a database, for as long as it is in use."""
    with _MUTEX:
        return _OF.setdefault(database, LastNames())
