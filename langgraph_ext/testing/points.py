"""Points: where a process may die, seen from its write connections.

    before   all statements of a transaction are done, and it is not committed
    inside   between two statements of a transaction
    after    it is committed, and nobody was told

A transaction of one statement that commits by itself has no inside. Transactions are numbered from 1 in the order of
their commits; the database's write lock lets no two be open at once. Only connections to the watched file count.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.queries import load_queries

__all__ = ["POINTS", "Place", "Point", "Watch", "kill_myself", "replace_connections"]

Point = Literal["before", "inside", "after"]

POINTS: tuple[Point, ...] = ("before", "inside", "after")

_VERB = re.compile(r"\b(INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM|FROM)\s+(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One point of one transaction."""

    boundary: int
    """The transaction's number, from 1."""
    point: Point
    statement: int | None = None
    """Inside: after so many of its statements."""

    def __str__(self) -> str:
        return self.point if self.statement is None else f"{self.point}:{self.statement}"


class Watch:
    """Counts the transactions that are committed to one file, and strikes at one point.

    Args:
        path: The file.
        place: Where to strike; None counts only.
        strike: What happens there, given the names of the transaction's statements so far.
    """

    def __init__(self, path: str, place: Place | None, strike: Callable[[list[str]], None]) -> None:
        self.path = os.path.realpath(path)
        self.committed: list[dict[str, Any]] = []
        """What was committed: the names of the statements, and the last row of the log behind them."""
        self._place = place
        self._strike = strike
        self._statements: list[str] = []
        queries = load_queries("sqlite")
        self.last_row = queries["log_last"]
        """The query for the last row of the log."""
        self._names = {sql: name for name, sql in queries.items()}

    @property
    def counts_only(self) -> bool:
        """Whether nothing will happen, so that there is time to look around."""
        return self._place is None

    def begin(self) -> None:
        """A transaction has begun."""
        self._statements = []

    def next_statement(self, sql: str) -> None:
        """A statement of it is about to run."""
        if self._statements:
            self._reach("inside", len(self._statements))
        self._statements.append(self._names.get(sql) or _in_words(sql))

    def before_commit(self) -> None:
        """All its statements are done; or it is one statement that commits by itself, and about to run."""
        self._reach("before", None)

    def after_commit(self, last_row: int | None) -> None:
        """It is committed."""
        self.committed.append({"statements": self._statements, "last_row": last_row})
        self._reach("after", None, number=len(self.committed))

    def _reach(self, point: Point, statement: int | None, *, number: int | None = None) -> None:
        number = number or len(self.committed) + 1
        if self._place == Place(boundary=number, point=point, statement=statement):
            self._strike(self._statements)


def kill_myself() -> None:
    """SIGKILL: no handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


class _WatchedConnection(WriteConnection):
    """The real thing, that tells its process's watch where it is."""

    watch: ClassVar[Watch]

    def begin(self) -> None:
        super().begin()
        if self._is_watched:
            self.watch.begin()

    def execute(self, sql: str, params: Mapping[str, object] | Sequence[object] = {}) -> Any:
        if self._is_watched and self.in_transaction:
            self.watch.next_statement(sql)
        return super().execute(sql, params)

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        if not self._is_watched:
            return super().run_alone(sql, params)
        self.watch.begin()
        self.watch.next_statement(sql)
        self.watch.before_commit()
        changed = super().run_alone(sql, params)
        self.watch.after_commit(self._last_row())
        return changed

    def commit(self) -> None:
        if not self._is_watched:
            super().commit()
            return
        self.watch.before_commit()
        super().commit()
        self.watch.after_commit(self._last_row())

    @property
    def _is_watched(self) -> bool:
        return os.path.realpath(self.path) == self.watch.path

    def _last_row(self) -> int | None:
        if not self.watch.counts_only:
            return None
        row: int | None = self._connection.execute(self.watch.last_row).fetchone()[0]
        return row


def replace_connections(watch: Watch) -> None:
    """Let every database that this process opens from now on tell `watch` where it is.

    The class of the write connection is an argument of `open_database`, with a default; this replaces the default (see
    docs/decisions/0012-where-the-harness-strikes.md). For a process that runs one scenario and ends.
    """
    _WatchedConnection.watch = watch
    defaults: dict[str, Any] = open_database.__kwdefaults__ or {}
    assert defaults.get("connection") is WriteConnection, "open_database takes the class of the write connection"
    defaults["connection"] = _WatchedConnection


def _in_words(sql: str) -> str:
    """What a statement without a name does: rows joined into one insert have none."""
    found = _VERB.search(sql)
    if found is None:
        return " ".join(sql.split())[:60]
    rows = sql.count(" UNION ALL ") + 1
    return f"{found[1]} {found[2]}" + (f" ({rows} rows)" if rows > 1 else "")
