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

from langgraph_ext.database import Fsync, Tx, lane, open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.queries import load_queries
from langgraph_ext.ledger import order
from langgraph_ext.ledger.events import scan
from langgraph_ext.ledger.node_paths import NodePaths

__all__ = ["POINTS", "Kill", "Point", "Watch", "kill_myself", "replace_connections"]

Point = Literal["before", "inside", "after"]

POINTS: tuple[Point, ...] = ("before", "inside", "after")

_EVENTS = 20
"""Most events of a transaction that are told."""

_TABLE = re.compile(r"\b(?:INTO|UPDATE|FROM)\s+(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill: at which point of which transaction."""

    boundary: int
    """The transaction's number, from 1."""
    point: Point
    statement: int | None = None
    """Inside: after so many of its statements."""

    def __str__(self) -> str:
        return self.point if self.statement is None else f"{self.point}:{self.statement}"


class Watch:
    """Counts the transactions that are committed to one file, and says when it is time to strike.

    Args:
        path: The file.
        kill: Where to strike; None counts only.
        strike: What happens there, given the names of the transaction's statements, and what it tells the ledger.
    """

    def __init__(self, path: str, kill: Kill | None, strike: Callable[[list[str], str], None]) -> None:
        self.path = os.path.realpath(path)
        self.committed: list[int] = []
        """How many statements each transaction had that was committed."""
        self.queries = load_queries("sqlite")
        self._kill = kill
        self._strike = strike
        self._statements: list[str] = []
        self._names = {sql: name for name, sql in self.queries.items()}

    def begin(self) -> None:
        """A transaction has begun."""
        self._statements = []

    def next_statement(self, sql: str) -> bool:
        """A statement of it is about to run. Whether to strike now."""
        self._statements.append(self._names.get(sql) or _in_words(sql))
        done = len(self._statements) - 1
        return done > 0 and self._is_at("inside", len(self.committed) + 1, done)

    def before_commit(self) -> bool:
        """As `next_statement`, when all are done, or the only one is about to run that commits by itself."""
        return self._is_at("before", len(self.committed) + 1)

    def after_commit(self) -> bool:
        """As `next_statement`, when it is committed."""
        self.committed.append(len(self._statements))
        return self._is_at("after", len(self.committed))

    def strike(self, told: str) -> None:
        """Strike, and say what the transaction tells the ledger."""
        self._strike(self._statements, told)

    def _is_at(self, point: Point, boundary: int, statement: int | None = None) -> bool:
        return self._kill == Kill(boundary=boundary, point=point, statement=statement)


def kill_myself() -> None:
    """SIGKILL: no handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


class _WatchedConnection(WriteConnection):
    """The real thing, that tells its process's watch where it is."""

    watch: ClassVar[Watch]

    def __init__(self, path: str, fsync: Fsync) -> None:
        super().__init__(path, fsync)
        self._is_watched = os.path.realpath(path) == self.watch.path
        self._begun_behind = 0
        """The last row of the log when the transaction began."""

    def begin(self) -> None:
        super().begin()
        if self._is_watched:
            self._note_begin()

    def execute(self, sql: str, params: Mapping[str, object] | Sequence[object] = {}) -> Any:
        if self._is_watched and self.in_transaction and self.watch.next_statement(sql):
            self._strike()
        return super().execute(sql, params)

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        if not self._is_watched:
            return super().run_alone(sql, params)
        self._note_begin()
        self.watch.next_statement(sql)
        if self.watch.before_commit():
            super().begin()  # so that it is done, and not committed
            self._connection.execute(sql, params)
            self._strike()
        changed = super().run_alone(sql, params)
        if self.watch.after_commit():
            self._strike()
        return changed

    def commit(self) -> None:
        if self._is_watched and self.watch.before_commit():
            self._strike()
        super().commit()
        if self._is_watched and self.watch.after_commit():
            self._strike()

    def _note_begin(self) -> None:
        self.watch.begin()
        self._begun_behind = self._connection.execute(self.watch.queries["log_last"]).fetchone()[0] or 0

    def _strike(self) -> None:
        told = ""
        try:
            told = self._told()
        finally:  # half a transaction may be more than the ledger can read
            self.watch.strike(told)

    def _told(self) -> str:
        """The events of the transaction, as this connection sees them, committed or not."""
        tx = Tx(self._connection.execute, self.watch.queries)
        shown = scan(tx, NodePaths(tx), order.behind(self._begun_behind), _EVENTS).events
        return ", ".join(f"{event.name} {event.node_path}" if event.node_path else event.name for event in shown)


def replace_connections(watch: Watch) -> None:
    """Let every database that this process opens from now on tell `watch` where it is, and commit each call by itself.

    The class of the write connection is an argument of `open_database`, with a default; this replaces the default.
    Which calls share a commit depends on who comes first, and would differ from run to run; alone, each has its own
    boundary, and every state that a shared commit leaves is among those. For a process that runs one scenario and ends;
    see docs/decisions/0013-where-the-harness-strikes.md.
    """
    assert lane._GROUP > 1, "a lane groups calls up to a number of this name"
    lane._GROUP = 1
    _WatchedConnection.watch = watch
    defaults: dict[str, Any] = open_database.__kwdefaults__ or {}
    assert defaults.get("connection") is WriteConnection, "open_database takes the class of the write connection"
    defaults["connection"] = _WatchedConnection


def _in_words(sql: str) -> str:
    """What a statement without a name does: rows joined into one insert have none."""
    table = _TABLE.search(sql)
    rows = sql.count(" UNION ALL ") + 1
    return f"{sql.split(None, 1)[0]} {table[1] if table else '?'}" + (f" ({rows} rows)" if rows > 1 else "")
