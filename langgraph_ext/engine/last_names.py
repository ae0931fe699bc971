"""Last names: how the messages of histories are known again, kept, so that a chat's next turn reads the new ones alone.

A history only grows, so what was read of it stays right, whoever has added to it meanwhile. Forgetting it costs a read.
"""

from __future__ import annotations

from langgraph_ext.database import Tx
from langgraph_ext.engine.contexts import Name, names_of
from langgraph_ext.engine.kept import Kept, by_database

__all__ = ["LastNames", "last_names"]

_MOST = 100_000
"""So many names are kept for a database: some 35 MB."""


class LastNames:
    """Names by context, those that were used last. May be used by several threads.

    Args:
        most: How many there are together, at most.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._names = Kept[list[Name]](most)

    def read(self, tx: Tx, context_id: str) -> list[Name]:
        """All names of a context, in their order; of those that are kept, only what is behind them is read.

        Args:
            tx: A transaction that only reads: what it sees is committed.
            context_id: The context.
        """
        known = self._names.find(context_id) or []
        names = [*known, *names_of(tx, context_id, after=known[-1].seq if known else 0)]
        self._names.keep(context_id, names, len(names))
        return names


last_names = by_database(LastNames)
"""The names of a database."""
