"""AppTx: an open transaction as an application's function sees it: its own tables, and no way out.

What it runs becomes part of a transaction that is not its own. So while it runs, SQLite's authorizer refuses, when a
statement is compiled, what would end the transaction (`BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`), what reaches beyond
it (`ATTACH`, `PRAGMA`, temporary tables, which could hide ours) and every write to the tables of this package; also out
of a trigger. Reading them is allowed.
"""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_ext.database.migrations import own_tables
from langgraph_ext.database.tx import Cursor
from langgraph_ext.errors import InvalidArgument

__all__ = ["AppTx", "Guard", "Rows", "run_guarded"]

_ENDS = frozenset((sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT))
_BEYOND = frozenset((sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA))
_TEMPORARY = frozenset(
    (
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
    )
)
_FIRST_NAMES_TABLE = frozenset(
    (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE)
)
_SECOND_NAMES_TABLE = frozenset(
    (
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_TRIGGER,
    )
)

Params = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a statement came to, as a cursor of `sqlite3` or psycopg tells it; read in full, so it may be kept."""

    columns: tuple[str, ...]
    """Names of the columns of a query; empty for a statement that returns no rows."""
    rowcount: int
    """Rows that an INSERT, UPDATE or DELETE changed; -1 for a query."""
    lastrowid: int | None
    """The rowid of the last row that this transaction's connection inserted."""
    _rows: Iterator[tuple[Any, ...]]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows that were not fetched yet."""
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None behind the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that were not fetched yet."""
        return list(self._rows)


class Guard:
    """SQLite's authorizer for an application's statements; remembers why it refused one."""

    def __init__(self) -> None:
        self.why: str | None = None

    def __call__(self, action: int, first: str | None, second: str | None, _: str | None, __: str | None, /) -> int:
        """Decide on one action of a statement that is being compiled."""
        why = _why_not(action, first, second)
        if why is None:
            return sqlite3.SQLITE_OK
        self.why = self.why or why
        return sqlite3.SQLITE_DENY


def _why_not(action: int, first: str | None, second: str | None) -> str | None:
    if action in _ENDS:
        return "the transaction ends with the settlement; to undo it, raise"
    if action in _BEYOND:
        return "it reaches beyond this transaction"
    if action in _TEMPORARY:
        return "a temporary table would stay with the connection; use one of your own in the file"
    table = first if action in _FIRST_NAMES_TABLE else second if action in _SECOND_NAMES_TABLE else None
    if table is not None and table.lower() in own_tables():
        return f"table {table!r} is langgraph-ext's own, which may be read only"
    return None


class Connection(Protocol):
    """What is needed of the connection whose transaction is lent."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, params: Params = ..., /) -> Cursor: ...
    def set_guard(self, guard: Guard | None, /) -> None: ...


class AppTx:
    """The transaction of a settlement, for an application's own tables in the same database.

    Valid only inside the function it was given to.
    """

    __slots__ = ("_connection", "_guard")

    def __init__(self, connection: Connection, guard: Guard) -> None:
        self._connection: Connection | None = connection
        self._guard = guard

    def execute(self, sql: str, params: Params = ()) -> Rows:
        """Run one statement.

        Args:
            sql: One statement of SQLite's, with `?` or `:name` for parameters.
            params: A sequence for `?`, a mapping for `:name`.

        Raises:
            InvalidArgument: The statement would end the transaction, reach beyond it, or write to a table of this
                package's.
            sqlite3.Error: The driver's, such as `sqlite3.IntegrityError`.
            RuntimeError: The function has returned, or the transaction was rolled back.
        """
        connection = self._connection
        if connection is None:
            raise RuntimeError("tx.execute was called after the function had returned; its transaction is over")
        _check_open(connection)
        self._guard.why = None
        try:
            cursor: Any = connection.execute(sql, params)
            rows = [tuple(row) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            if self._guard.why is not None:
                raise InvalidArgument(f"tx.execute: {_head(sql)} is refused: {self._guard.why}") from error
            raise
        _check_open(connection)
        described = cursor.description or ()
        return Rows(
            columns=tuple(column[0] for column in described),
            rowcount=cursor.rowcount,
            lastrowid=cursor.lastrowid,
            _rows=iter(rows),
        )

    def end(self) -> None:
        """The function has returned."""
        self._connection = None


def run_guarded(connection: Connection, fn: Callable[[AppTx], object]) -> None:
    """Run an application's function in a connection's open transaction.

    Raises:
        InvalidArgument: It returned something to await: nobody would.
        RuntimeError: One of its statements has rolled the transaction back (`ON CONFLICT ROLLBACK`).
    """
    guard = Guard()
    tx = AppTx(connection, guard)
    connection.set_guard(guard)
    try:
        answer = fn(tx)
    finally:
        tx.end()
        connection.set_guard(None)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidArgument("inside: the function is async; a transaction waits for nobody, give a plain function")
    _check_open(connection)


def _check_open(connection: Connection) -> None:
    if not connection.in_transaction:
        raise RuntimeError("the settlement's transaction was rolled back by a statement; nothing of it is stored")


def _head(sql: str) -> str:
    """The beginning of a statement, without what it may hold of values."""
    return repr(" ".join(sql.split()[:2]))
