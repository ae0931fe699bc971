"""Row cache: what a commit has read of the rows that it locks, until it writes to them.

Every change looks at its agent run, and at its root, to see that something may begin: in one transaction they are read
once, and again after each write to them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from langgraph_ext.database import Row, Tx

__all__ = ["RowCache"]

_KEYS = {
    "agent_run_get": "agent_run_id",
    "agent_task_get": "agent_task_id",
    "agent_operation_get": "operation_id",
}
"""Queries of one row, and their key."""

_TABLES = {name: name.removesuffix("get") for name in _KEYS}
"""The beginning of the names of all statements that write to the table of each."""


@cache
def _read_by(statement: str) -> tuple[str, ...]:
    """The queries whose rows a statement writes to."""
    return tuple(query for query, table in _TABLES.items() if statement.startswith(table))


class RowCache(Tx):
    """A transaction that reads each of these rows once between two writes to it."""

    __slots__ = ("_rows", "_tx")

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._rows: dict[str, dict[object, Row | None]] = {name: {} for name in _KEYS}
        self.repeated = tx.repeated
        self.sealer = tx.sealer

    def all(self, name: str, /, **params: object) -> list[Row]:
        """As `Tx.all`."""
        return self._tx.all(name, **params)

    def maybe(self, name: str, /, **params: object) -> Row | None:
        """As `Tx.maybe`."""
        known = self._rows.get(name)
        if known is None:
            return self._tx.maybe(name, **params)
        key = params[_KEYS[name]]
        if key not in known:
            known[key] = self._tx.maybe(name, **params)
        return known[key]

    def run(self, name: str, /, **params: object) -> int:
        """As `Tx.run`."""
        for query in _read_by(name):
            self._forget(query, params.get(_KEYS[query]))
        return self._tx.run(name, **params)

    def _forget(self, query: str, key: object) -> None:
        """A row is written to; without a key, it may be any."""
        if key is None:
            self._rows[query].clear()
        else:
            self._rows[query].pop(key, None)

    def apart(self, fn: Callable[[Any], object]) -> None:
        """As `Tx.apart`."""
        self._tx.apart(fn)
