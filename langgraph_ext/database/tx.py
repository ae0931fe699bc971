"""Tx: what a transaction function may do with the database, and nothing else.

A transaction function is `fn(tx, …)`. It names queries, and its verb says how many rows it expects; it returns plain
values, never cursors, takes a few milliseconds at most, does no network, and takes time and ids as arguments. It may be
run again when its group has to be repeated, so it keeps no state of its own; one that adds rows without a key of their
own asks `tx.repeated`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from langgraph_ext.database.sealing import Sealer

__all__ = ["GREATEST", "Row", "Tx"]

GREATEST = 2**63 - 1
"""The greatest number that a database holds: for a query that limits its rows, no limit."""


class Row(Protocol):
    """One row, by column name or position."""

    def __getitem__(self, key: str | int, /) -> Any: ...
    def keys(self) -> Sequence[str]: ...  # noqa: D102


class Cursor(Protocol):
    """The part of a driver's cursor that `Tx` uses."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Tx:
    """An open transaction. Valid only inside the function it was given to."""

    __slots__ = ("_execute", "_queries", "_run_apart", "repeated", "sealer")

    def __init__(
        self,
        execute: Callable[[str, Mapping[str, object]], Cursor],
        queries: Mapping[str, str],
        *,
        repeated: bool = False,
        run_apart: Callable[[Any], None] | None = None,
    ) -> None:
        self._execute = execute
        self._queries = queries
        self._run_apart = run_apart
        self.sealer: Sealer | None = None
        """What payloads are sealed with (sealed_tx.py); None if the database is plain."""
        self.repeated = repeated
        """Whether this transaction was tried before and nobody knows if it was committed: look, before adding rows."""

    def all(self, name: str, /, **params: object) -> list[Row]:
        """Every row of the named query, in its order."""
        return self._execute(self._queries[name], params).fetchall()

    def maybe(self, name: str, /, **params: object) -> Row | None:
        """The first row of the named query, or None. The query itself limits its rows to one."""
        row: Row | None = self._execute(self._queries[name], params).fetchone()
        return row

    def one(self, name: str, /, **params: object) -> Row:
        """The one row of a query that always has one."""
        row = self.maybe(name, **params)
        assert row is not None, f"query {name!r} found no row"
        return row

    def run(self, name: str, /, **params: object) -> int:
        """Run a statement that returns no rows; the number of rows it changed."""
        return self._execute(self._queries[name], params).rowcount

    def apart(self, fn: Callable[[Any], object]) -> None:
        """Run an application's function `fn(app_tx)` on its own tables in this transaction (app_tx.py).

        What it raises is to end the transaction: what it has written by then stands in it.
        """
        assert self._run_apart is not None, "a transaction that writes has it"
        self._run_apart(fn)
