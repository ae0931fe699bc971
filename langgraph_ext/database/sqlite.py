"""SQLite: one write connection that commits groups, and reader connections that cannot write.

WAL, `synchronous=FULL` (or `NORMAL`, a stated choice), `BEGIN IMMEDIATE`, up to five seconds' wait for another
process's write lock, rollback on any error. Closing is safe because a connection is only ever closed by whoever holds
it alone (closing one that another thread uses crashes Python 3.11).
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from langgraph_ext.database import wal
from langgraph_ext.database.lane import Call
from langgraph_ext.database.migrations import check, migrate
from langgraph_ext.database.tx import Cursor, Tx
from langgraph_ext.errors import LangGraphExtError, StoreError

__all__ = ["Fsync", "Readers", "SqliteEngine", "WriteConnection"]

T = TypeVar("T")
Fsync = Literal["full", "normal"]

BUSY_SECONDS = 5.0
"""How long a write waits for another process's write lock before it gives up with `store_busy`."""

_CODES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: ("store_busy", "another process holds its write lock; try again"),
    sqlite3.SQLITE_LOCKED: ("store_busy", "another connection holds a lock on it; try again"),
    sqlite3.SQLITE_FULL: ("store_full", "no space is left; free some and try again"),
    sqlite3.SQLITE_CORRUPT: (
        "store_corrupt",
        "the file is damaged; restore a backup or recover it with the sqlite3 shell",
    ),
    sqlite3.SQLITE_NOTADB: ("store_corrupt", "the file is not a SQLite database; name another file"),
    sqlite3.SQLITE_READONLY: (
        "store_unwritable",
        "it cannot be written; check the permissions of the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "store_unwritable",
        "it cannot be opened; check that its folder exists and may be written",
    ),
    sqlite3.SQLITE_PERM: ("store_unwritable", "it cannot be opened; check the permissions of the file and its folder"),
    sqlite3.SQLITE_IOERR: ("store_io", "the system reported an I/O error; check the disk"),
}


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """A driver's error as ours; `__cause__` is set by the caller."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    code, advice = _CODES.get(primary, ("store_error", "this is not expected; please report it"))
    return StoreError(
        f"database {path!r}: {error}; {advice}", code=code, retryable=code == "store_busy", details={"path": path}
    )


class WriteConnection:
    """The one connection that writes. Tests replace this class to inject faults; the product never does."""

    def __init__(self, path: str, fsync: Fsync) -> None:
        self.path = path
        self._connection = sqlite3.connect(
            path, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._connection.row_factory = sqlite3.Row
        self._fsync = fsync

    def prepare(self) -> None:
        """Set the connection up. This writes to the file, so it comes after the file was seen to be ours or empty."""
        in_memory = self.path == ":memory:"
        mode = _patiently(lambda: self.execute("PRAGMA journal_mode = WAL").fetchone()[0], self.path)
        if mode != "wal" and not in_memory:
            raise StoreError(
                f"database {self.path!r} cannot use a write-ahead log (journal mode {mode!r}); "
                "put it on a local file system",
                code="store_unwritable",
                details={"path": self.path},
            )
        self.execute(f"PRAGMA synchronous = {'FULL' if self._fsync == 'full' else 'NORMAL'}")
        self.execute(f"PRAGMA fullfsync = {'ON' if self._fsync == 'full' else 'OFF'}")
        self.execute(f"PRAGMA wal_autocheckpoint = {wal.CHECKPOINT_PAGES}")

    def begin(self) -> None:
        """Take the write lock, waiting up to `BUSY_SECONDS` for another process."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            _patiently(partial(self.execute, "BEGIN IMMEDIATE"), self.path)

    def execute(self, sql: str, params: Mapping[str, object] = {}) -> Cursor:
        """Run one statement."""
        return self._connection.execute(sql, params)

    def commit(self) -> None:
        """Commit; under `fsync="full"` it returns once the log is synced."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back, if a transaction is open (SQLite ends it by itself on some errors)."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    @property
    def changes(self) -> int:
        """Rows written since the connection was opened."""
        return self._connection.total_changes

    def close(self) -> None:
        """Close; the last connection to a file folds its log into it."""
        self._connection.close()


class SqliteEngine:
    """Commits the lane's groups. Opened by the first group, so that opening never runs on an event loop."""

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
        try:
            connection = self._open()
            connection.begin()
        except Exception as error:  # noqa: BLE001 - given to the callers
            _settle_all(group, error, self.path)
            return
        try:
            self._run(connection, group)
        except BaseException:
            connection.rollback()
            raise

    def _run(self, connection: WriteConnection, group: list[Call]) -> None:
        tx = Tx(connection.execute, self._queries)
        outcomes: list[tuple[Any, Exception | None]] = []
        for call in group:
            before = connection.changes
            try:
                outcomes.append((call.fn(tx), None))
            except Exception as error:  # noqa: BLE001 - given to the caller
                if connection.changes == before and connection.in_transaction:
                    outcomes.append((None, error))
                    continue
                connection.rollback()
                if len(group) == 1:
                    call.settle(error=_ours(error, self.path))
                    return
                for single in group:
                    self.commit([single])
                return
        try:
            connection.commit()
        except Exception as error:  # noqa: BLE001 - given to the callers
            connection.rollback()
            _settle_all(group, error, self.path)
            return
        except BaseException:
            # Ctrl-C: was it before or after the commit took hold?
            if not connection.in_transaction:
                self._settle(group, outcomes)
            raise
        self._settle(group, outcomes)

    def _settle(self, group: list[Call], outcomes: list[tuple[Any, Exception | None]]) -> None:
        for call, (result, failure) in zip(group, outcomes, strict=True):
            call.settle(result, None if failure is None else _ours(failure, self.path))

    def _open(self) -> WriteConnection:
        if self._connection is None:
            self.path = prepare_file(self.path)
            connection = self._connection_class(self.path, self._fsync)
            try:
                _patiently(partial(check, connection, self.path), self.path)
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


class Readers:
    """Connections that cannot write, lent to one thread at a time; opened as needed and kept."""

    def __init__(self, path: Callable[[], str], *, queries: Mapping[str, str]) -> None:
        self._path = path
        self._queries = queries
        self._idle: list[sqlite3.Connection] = []
        self._mutex = threading.Lock()
        self._closed = False

    def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn(tx)` on one snapshot of the database."""
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            result = fn(Tx(connection.execute, self._queries))
            connection.execute("COMMIT")
            return result
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise translate(error, self._path()) from error
            raise
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self) -> sqlite3.Connection:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        path = self._path()
        try:
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise translate(error, path) from error
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._mutex:
            if not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()


_IDLE_READERS = 8
"""Reader connections kept open between reads."""


def prepare_file(path: str) -> str:
    """The absolute path of the database, its file created (mode 0600) if there is none.

    An existing file is never opened here: closing a second descriptor would drop SQLite's own locks on it.

    Raises:
        StoreError: The folder is missing or may not be written (`store_unwritable`).
    """
    if path == ":memory:":
        return path
    full = os.path.abspath(path)
    try:
        os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(
            f"database {full!r} cannot be created: {error.strerror}; "
            f"check that the folder {str(Path(full).parent)!r} exists and may be written",
            code="store_full" if error.errno == 28 else "store_unwritable",
            details={"path": full},
        ) from error
    if Path(full).is_dir():
        raise StoreError(f"database {full!r} is a folder; name a file", code="store_unwritable", details={"path": full})
    return full


def _patiently(step: Callable[[], T], path: str) -> T:
    """Run `step` until it is no longer turned away because the file is busy, for `BUSY_SECONDS` at most.

    SQLite's own busy handler would hold Ctrl-C back, and its pauses grow to 100 ms, which starves whoever comes late.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    pause = 0.0005
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"database {path!r} is busy: another process held its write lock for {BUSY_SECONDS:g} s; "
                    "nothing was written, try again",
                    code="store_busy",
                    retryable=True,
                    details={"path": path, "waited_seconds": BUSY_SECONDS},
                ) from error
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, 0.02)


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
