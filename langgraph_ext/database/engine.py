"""The engine under the lane: commits a group of transactions as one.

Opened by the first group, so that opening never runs on an event loop. Closing is safe because only the lane closes it,
when nobody leads (closing a connection that another thread uses crashes Python 3.11).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langgraph_ext.database import wal
from langgraph_ext.database.connection import Fsync, WriteConnection, patiently, prepare_file, translate
from langgraph_ext.database.lane import Call
from langgraph_ext.database.migrations import check, migrate
from langgraph_ext.database.tx import Tx
from langgraph_ext.errors import LangGraphExtError

__all__ = ["SqliteEngine"]

Outcome = tuple[Any, Exception | None]


class SqliteEngine:
    """One SQLite file and its write connection."""

    def __init__(
        self,
        path: str,
        *,
        queries: Mapping[str, str],
        fsync: Fsync,
        clock_us: Callable[[], int],
        connection: type[WriteConnection] = WriteConnection,
    ) -> None:
        self.path = path
        self._queries = queries
        self._fsync = fsync
        self._clock_us = clock_us
        self._connection_class = connection
        self._connection: WriteConnection | None = None

    @property
    def is_open(self) -> bool:
        """Whether the file is open and migrated."""
        return self._connection is not None

    def commit(self, group: list[Call]) -> None:
        """Run a group as one transaction and settle every call of it.

        A call that fails before it wrote anything fails alone. If one fails half-way, the whole group is rolled back
        and its calls are run again, each in a transaction of its own.
        """
        connection: WriteConnection | None = None
        try:
            connection = self._open()
            connection.begin()
            self._run(connection, group)
        except Exception as error:  # noqa: BLE001 - given to the callers
            _settle_all(group, error, self.path)
        finally:
            # Also after Ctrl-C: whatever is still open is not committed, and its calls are not settled.
            if connection is not None:
                connection.rollback()

    def _run(self, connection: WriteConnection, group: list[Call]) -> None:
        tx = Tx(connection.execute, self._queries)
        outcomes: list[Outcome] = []
        for call in group:
            before = connection.changes
            try:
                outcomes.append((call.fn(tx), None))
            except Exception as error:
                if connection.changes == before and connection.in_transaction:
                    outcomes.append((None, error))
                    continue
                connection.rollback()
                if len(group) == 1:
                    raise
                for single in group:
                    self.commit([single])
                return
        try:
            connection.commit()
        except KeyboardInterrupt:
            if not connection.in_transaction:  # it came after the commit took hold
                self._settle(group, outcomes)
            raise
        self._settle(group, outcomes)

    def _settle(self, group: list[Call], outcomes: list[Outcome]) -> None:
        for call, (result, failure) in zip(group, outcomes, strict=True):
            call.settle(result, None if failure is None else _ours(failure, self.path))

    def _open(self) -> WriteConnection:
        if self._connection is None:
            self.path = prepare_file(self.path)
            connection = self._connection_class(self.path, self._fsync)
            try:
                patiently(partial(check, connection, self.path), self.path)
                connection.prepare()
                migrate(connection, self.path, clock_us=self._clock_us)
                wal.preallocate(connection, self.path)
            except BaseException:
                connection.rollback()
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Close the connection. Only the lane calls this, when nobody leads."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _ours(error: Exception, path: str) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    ours = translate(error, path)
    ours.__cause__ = error
    return ours


def _settle_all(group: list[Call], error: Exception, path: str) -> None:
    """Give each caller an error of its own: one instance raised in several threads would mix their tracebacks."""
    for call in group:
        ours = _ours(error, path)
        if isinstance(ours, LangGraphExtError) and len(group) > 1:
            copy = type(ours)(*ours.args, code=ours.code, retryable=ours.retryable, details=dict(ours.details))
            copy.__cause__ = ours.__cause__
            ours = copy
        call.settle(error=ours)
