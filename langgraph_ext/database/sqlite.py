"""SQLite under the lane: commits a group of transactions as one, and lends readers.

Opened by the first group, so that opening never runs on an event loop. Closing is safe because only the lane closes the
write connection, when nobody leads, and a reader is closed by who has borrowed it (closing a connection that another
thread uses crashes Python 3.11).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from operator import attrgetter
from typing import Any

from langgraph_ext.database import wal
from langgraph_ext.database.appends import Append, joinable, joined, values_of
from langgraph_ext.database.connection import IN_MEMORY, Fsync, WriteConnection, patiently, prepare_file, translate
from langgraph_ext.database.lane import Queued
from langgraph_ext.database.marks import Keys, check_keys, is_plain_for_good
from langgraph_ext.database.migrations import check, migrate
from langgraph_ext.database.readers import Readers
from langgraph_ext.database.sealed_tx import SealedTx
from langgraph_ext.database.sealing import Sealer, locked
from langgraph_ext.database.tx import Cursor, Tx

__all__ = ["SqliteBackend"]

_QUERY = attrgetter("query")

Outcome = tuple[Any, BaseException | None]

_JOINED = 256
"""Most calls in one statement: each takes up to 17 of its parameters, of which SQLite allows 32,766."""

_REFUSED = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    TypeError,
    ValueError,
)
"""Errors about the values that a statement was given: nothing was stored."""


class SqliteBackend:
    """One SQLite file and its write connection."""

    def __init__(
        self,
        path: str,
        *,
        queries: Callable[[], Mapping[str, str]],
        fsync: Fsync,
        clock_us: Callable[[], int],
        connection: type[WriteConnection] = WriteConnection,
        create: bool = True,
        sealer: Sealer | None = None,
        keys: Keys = "exactly",
    ) -> None:
        self.path = path
        self._create = create
        self._queries = queries
        self._fsync = fsync
        self._clock_us = clock_us
        self._connection_class = connection
        self._connection: WriteConnection | None = None
        self.sealer = sealer
        """What payloads are sealed with; None if the database is plain."""
        self._keys = keys
        self._looks_for_marks = False
        """Whether it is plain and was empty: somebody else may encrypt it while it is open here. Until it holds
        something, each group, and each read, looks first."""
        self._readers = Readers(lambda: self.path, tx=self._tx)

    @property
    def name(self) -> str:
        """The file's path as it was given, absolute once it is open."""
        return self.path

    @property
    def reads_apart(self) -> bool:
        """A database in memory has one connection, which reads and writes."""
        return self.path != IN_MEMORY

    @property
    def is_open(self) -> bool:
        """Whether the file is open and migrated."""
        return self._connection is not None

    def commit(self, group: list[Queued]) -> None:
        """Run a group as one transaction and settle every call of it.

        A group of appends is one statement. In any other, a call that fails before it wrote anything fails alone; if it
        fails half-way, the whole group is rolled back and its calls are run again, each in a transaction of its own.
        """
        connection: WriteConnection | None = None
        try:
            connection = self._connection or self._open()
            if self.sealer is not None and self.sealer.locked and any(call.fn for call in group):
                raise locked()
            looks = self._looks_for_marks
            if not looks and self._run_at_once(connection, group):
                return
            if any(call.fn for call in group):
                connection.begin()
                if looks:
                    self._look_for_marks(Tx(connection.execute, self._queries()))
                self._run(connection, group)
            else:
                self._settle(group, [(None, None)] * len(group))
        except Exception as error:  # noqa: BLE001 - given to the callers
            _settle_all(group, error, self.path)
        finally:
            # Also after Ctrl-C: whatever is still open is not committed, and its calls are not settled.
            if connection is not None:
                connection.rollback()

    def _run_at_once(self, connection: WriteConnection, group: list[Queued]) -> bool:
        """Run a group of appends as one statement; False if it is none, or the data are refused."""
        appends = [call.append for call in group if call.append is not None and not call.attempted]
        count = len(group)
        if len(appends) < count or count > _JOINED or not joinable(appends):
            return False
        statement, values = self._joined(appends)
        for call in group:
            call.attempted = True
        try:
            stored = connection.run_alone(statement, values)
        except _REFUSED:
            for call in group:
                call.attempted = False  # nothing was stored; one by one, each gets an error of its own
            return False
        except sqlite3.Error:
            if count > 1 and not connection.in_transaction:
                return False  # a full disk may have room for some of them
            raise
        for call in group:
            assert call.append is not None, "so the group was found to be"
            call.settle(call.append.stored if stored == count else None)
        return True

    def _joined(self, appends: list[Append]) -> tuple[str, list[Any]]:
        """One statement for a group, and its parameters. Those of one query stand together, so that few differ."""
        queries = self._queries()
        appends.sort(key=_QUERY)
        counted: list[tuple[str, int]] = []
        values: list[Any] = []
        last, count = appends[0].query, 0
        for append in appends:
            if append.query != last:
                counted.append((queries[last], count))
                last, count = append.query, 0
            count += 1
            values += values_of(queries[last], append)
        counted.append((queries[last], count))
        return joined(tuple(counted)), values

    def _run(self, connection: WriteConnection, group: list[Queued]) -> None:
        outcomes: list[Outcome] = []
        for part in _parts(group):
            before = connection.changes
            try:
                outcomes += self._outcomes(connection, part)
            except BaseException as error:
                if _is_ctrl_c(error):
                    raise
                if connection.changes == before and connection.in_transaction and len(part) == 1:
                    outcomes.append((None, error))
                    continue
                connection.rollback()
                self._one_by_one(group, error)
                return
        for call in group:
            call.attempted = True
        ended: BaseException | None = None
        try:
            connection.commit()
        except BaseException as error:
            ended = error
            raise
        finally:
            if ended is None or (_is_ctrl_c(ended) and not connection.in_transaction):
                self._settle(group, outcomes)

    def _outcomes(self, connection: WriteConnection, part: list[Queued]) -> list[Outcome]:
        """Run a part of a group in the open transaction: one call, or appends that are one statement."""
        if len(part) > 1:
            appends = [call.append for call in part if call.append is not None]
            stored = connection.execute(*self._joined(list(appends))).rowcount
            return [(append.stored if stored == len(part) else None, None) for append in appends]
        (call,) = part
        tx = self._tx(connection.execute, repeated=call.attempted, run_apart=connection.run_apart)
        return [(call.fn(tx) if call.fn else None, None)]

    def _one_by_one(self, group: list[Queued], error: BaseException) -> None:
        """One of them failed after it had written: only alone do they not share its fate."""
        if len(group) == 1:
            group[0].settle(error=_ours(error, self.path))
        else:
            for single in group:
                self.commit([single])

    def _settle(self, group: list[Queued], outcomes: list[Outcome]) -> None:
        for call, (result, failure) in zip(group, outcomes, strict=True):
            call.settle(result, None if failure is None else _ours(failure, self.path))

    def _open(self) -> WriteConnection:
        self.path = prepare_file(self.path, create=self._create)
        connection = self._connection_class(self.path, self._fsync)
        try:
            patiently(partial(check, connection, self.path), self.path)
            connection.prepare()
            migrate(connection, self.path, clock_us=self._clock_us)
            self._check_keys(connection)
            wal.preallocate(connection, self.path)
        except BaseException:
            connection.rollback()
            connection.close()
            raise
        self._connection = connection
        return connection

    def _check_keys(self, connection: WriteConnection) -> None:
        """Refuse keys that are not this database's, and their lack; an empty one is encrypted if keys were given."""
        now_us = self._clock_us()
        tx = Tx(connection.execute, self._queries())
        may_write = self.sealer is not None
        if may_write:
            connection.begin()
        else:
            connection.execute("BEGIN")  # one snapshot
        if not check_keys(tx, self.sealer, self.path, keys=self._keys, now_us=now_us):
            self.sealer = None  # there is nothing to be locked
            if self.path != IN_MEMORY:
                self._look_for_marks(tx)
        if may_write:
            connection.commit()
        else:
            connection.rollback()

    def _look_for_marks(self, tx: Tx) -> None:
        """Refuse a database that others have encrypted; once it holds something plain, nobody can any more."""
        self._looks_for_marks = not is_plain_for_good(tx, self.path)

    def _tx(
        self,
        execute: Callable[[str, Mapping[str, object]], Cursor],
        *,
        repeated: bool = False,
        run_apart: Callable[[Any], None] | None = None,
    ) -> Tx:
        queries, sealer = self._queries(), self.sealer
        if sealer is None:
            return Tx(execute, queries, repeated=repeated, run_apart=run_apart)
        return SealedTx(execute, queries, sealer=sealer, repeated=repeated, run_apart=run_apart)

    def read(self, fn: Callable[[Tx], Any]) -> Any:
        """Run `fn(tx)` on one snapshot, on a connection that cannot write."""
        return self._readers.read(partial(self._unencrypted, fn) if self._looks_for_marks else fn)

    def _unencrypted(self, fn: Callable[[Tx], Any], tx: Tx) -> Any:
        self._look_for_marks(tx)
        return fn(tx)

    def close(self) -> None:
        """Close the write connection, and the readers as they come back."""
        self._readers.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _parts(group: list[Queued]) -> Iterator[list[Queued]]:
    """A group in its order: appends that stand together, as many as one statement takes, and other calls one by one."""
    part: list[Queued] = []
    keys: set[Any] = set()
    for call in group:
        append = None if call.attempted else call.append
        if part and (append is None or append.key in keys or len(part) == _JOINED):
            yield part
            part, keys = [], set()
        if append is None:
            yield [call]
            continue
        part.append(call)
        if append.key is not None:
            keys.add(append.key)
    if part:
        yield part


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether it came from outside: it then belongs to the leader, and not to the transaction it happened to hit."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def _ours(error: BaseException, path: str) -> BaseException:
    if not isinstance(error, sqlite3.Error):
        return error
    ours = translate(error, path)
    ours.__cause__ = error
    return ours


def _settle_all(group: list[Queued], error: Exception, path: str) -> None:
    """Give each caller an error of its own: one instance raised in several threads would mix their tracebacks."""
    for call in group:
        ours = _ours(error, path)
        if len(group) > 1:
            cause, ours = ours.__cause__, copy(ours)
            ours.__cause__ = cause
        call.settle(error=ours)
