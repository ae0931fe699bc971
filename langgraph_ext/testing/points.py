"""Points: where a process may die, seen from its write connections.

    before   all statements of a transaction are done, and it is not committed
    inside   between two statements of a transaction
    after    it is committed, and nobody was told

A transaction of one statement that commits by itself has no inside. Transactions are numbered from 1 in the order of
their commits; the database's write lock lets no two be open at once. Only connections to the watched file count.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from langgraph_ext.database import Fsync, Tx, lane, open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.queries import load_queries
from langgraph_ext.testing.words import in_words

__all__ = ["POINTS", "Kill", "Point", "Watch", "kill_myself", "replace_connections"]

Point = Literal["before", "inside", "after"]

POINTS: tuple[Point, ...] = ("before", "inside", "after")


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
        strike: What happens there, given what the transaction is, in words.
    """

    def __init__(self, path: str, kill: Kill | None, strike: Callable[[str], None]) -> None:
        self.path = os.path.realpath(path)
        self.committed: list[int] = []
        """How many statements each transaction had that was committed."""
        self.told: list[str] = []
        """What each of them was, in words; of a process that is to be killed, nothing."""
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
        self._statements.append(self._names.get(sql, ""))
        done = len(self._statements) - 1
        return done > 0 and self._is_at("inside", len(self.committed) + 1, done)

    def before_commit(self) -> bool:
        """As `next_statement`, when all are done, or the only one is about to run that commits by itself."""
        return self._is_at("before", len(self.committed) + 1)

    def after_commit(self) -> bool:
        """As `next_statement`, when it is committed."""
        self.committed.append(len(self._statements))
        return self._is_at("after", len(self.committed))

    @property
    def asks(self) -> bool:
        """Whether it wants to know what each transaction was."""
        return self._kill is None

    @property
    def statements(self) -> list[str]:
        """The names of those of this transaction."""
        return self._statements

    def strike(self, told: str) -> None:
        """Strike, and say what the transaction is."""
        self._strike(told)

    def _is_at(self, point: Point, boundary: int, statement: int | None = None) -> bool:
        return self._kill == Kill(boundary=boundary, point=point, statement=statement)


def kill_myself() -> None:
    """End this process by SIGKILL, as a crash does: no handler, no `finally`, no flush."""
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
        self._committed()
        return changed

    def commit(self) -> None:
        if self._is_watched and self.watch.before_commit():
            self._strike()
        super().commit()
        if self._is_watched:
            self._committed()

    def _note_begin(self) -> None:
        self.watch.begin()
        self._begun_behind = self._connection.execute(self.watch.queries["log_last"]).fetchone()[0] or 0

    def _committed(self) -> None:
        if self.watch.after_commit():
            self._strike()
        if self.watch.asks:
            self.watch.told.append(self._told())

    def _strike(self) -> None:
        told = ""
        try:
            told = self._told()
        finally:  # half a transaction may be more than the ledger can read
            self.watch.strike(told)

    def _told(self) -> str:
        """What the transaction is, as this connection sees it, committed or not."""
        tx = Tx(self._connection.execute, self.watch.queries)
        return in_words(tx, self._begun_behind, self.watch.statements)


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
