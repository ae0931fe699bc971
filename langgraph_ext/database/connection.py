"""The one SQLite connection that writes, and the file behind it.

WAL, `synchronous=FULL` (or `NORMAL`, a stated choice), `BEGIN IMMEDIATE`, up to five seconds' wait for another
process's write lock. A driver's errors become ours in one place, `translate`.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from langgraph_ext.database import wal
from langgraph_ext.database.app_tx import AppTx, Guard, run_guarded
from langgraph_ext.database.tx import Cursor
from langgraph_ext.errors import StoreError

__all__ = [
    "BUSY_SECONDS",
    "IN_MEMORY",
    "QUERY_ONLY",
    "Fsync",
    "WriteConnection",
    "open_reading",
    "patiently",
    "prepare_file",
    "translate",
    "uri_of",
]

T = TypeVar("T")
Fsync = Literal["full", "normal"]

IN_MEMORY = ":memory:"
"""The path of a database that has no file."""

QUERY_ONLY = "PRAGMA query_only = ON"
"""What keeps a connection from writing."""

BUSY_SECONDS = 5.0
"""How long a write waits for another process's write lock before it gives up with `store_busy`."""

_FOLDER = "check that its folder exists and that both may be written"

_CODES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: ("store_busy", "another process holds its write lock; try again"),
    sqlite3.SQLITE_LOCKED: ("store_busy", "another connection holds a lock on it; try again"),
    sqlite3.SQLITE_FULL: ("store_full", "no space is left; free some and try again"),
    sqlite3.SQLITE_CORRUPT: ("store_corrupt", "the file is damaged; restore a backup"),
    sqlite3.SQLITE_NOTADB: ("store_corrupt", "the file is not a SQLite database; name another file"),
    sqlite3.SQLITE_READONLY: ("store_unwritable", _FOLDER),
    sqlite3.SQLITE_CANTOPEN: ("store_unwritable", _FOLDER),
    sqlite3.SQLITE_PERM: ("store_unwritable", _FOLDER),
    sqlite3.SQLITE_IOERR: ("store_io", "the system reported an I/O error; check the disk"),
}


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """A driver's error as ours; whoever raises it sets `__cause__`."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    code, advice = _CODES.get(primary, ("store_error", "this is not expected; please report it"))
    return StoreError(
        f"database {path!r}: {error}; {advice}", code=code, retryable=code == "store_busy", details={"path": path}
    )


class WriteConnection:
    """The connection that writes. Tests replace this class to inject faults; the product never does."""

    def __init__(self, path: str, fsync: Fsync) -> None:
        self.path = path
        self._fsync = fsync
        self._connection = sqlite3.connect(
            path, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._connection.row_factory = sqlite3.Row

    def prepare(self) -> None:
        """Set the connection up. This writes to the file, so it comes after the file was seen to be ours or empty."""
        mode = patiently(lambda: self.execute("PRAGMA journal_mode = WAL").fetchone()[0], self.path)
        if mode != "wal" and self.path != IN_MEMORY:
            raise StoreError(
                f"database {self.path!r} cannot use a write-ahead log (journal mode {mode!r}); "
                "put it on a local file system",
                code="store_unwritable",
                details={"path": self.path},
            )
        # The first look into the log sets it up, and holds it meanwhile; so does whoever closes it as the last.
        patiently(lambda: self.execute("PRAGMA schema_version").fetchone(), self.path)
        self.execute(f"PRAGMA synchronous = {'FULL' if self._fsync == 'full' else 'NORMAL'}")
        self.execute(f"PRAGMA fullfsync = {'ON' if self._fsync == 'full' else 'OFF'}")
        self.execute(f"PRAGMA wal_autocheckpoint = {wal.CHECKPOINT_PAGES}")

    def begin(self) -> None:
        """Take the write lock, waiting up to `BUSY_SECONDS` for another process."""
        self._first("BEGIN IMMEDIATE", ())

    def _first(self, sql: str, params: Sequence[object]) -> Cursor:
        """Run what begins a transaction, waiting while the file is busy; what was left open before is rolled back."""
        if self._connection.in_transaction:
            self.rollback()
        try:
            return self._connection.execute(sql, params)
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        return patiently(partial(self._connection.execute, sql, params), self.path)

    def execute(self, sql: str, params: Mapping[str, object] | Sequence[object] = {}) -> Cursor:
        """Run one statement."""
        return self._connection.execute(sql, params)

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        """Run one statement as a transaction of its own, committed when this returns; the number of rows it changed."""
        return self._first(sql, params).rowcount

    def run_apart(self, fn: Callable[[AppTx], object]) -> None:
        """Run an application's function in the open transaction; see app_tx.py."""
        run_guarded(self, fn)

    def set_guard(self, guard: Guard | None) -> None:
        """Ask `guard` about every statement that is compiled from here on; None asks nobody."""
        self._connection.set_authorizer(guard)

    def commit(self) -> None:
        """Commit; under `fsync="full"` it returns once the log is synced."""
        self._connection.execute("COMMIT")

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


def prepare_file(path: str, *, create: bool = True) -> str:
    """The absolute path of the database, its file created (mode 0600) if there is none.

    An existing file is never opened here: closing a second descriptor would drop SQLite's own locks on it.

    Raises:
        StoreError: The folder is missing or may not be written (`store_unwritable`), there is no space, or there is no
            file and none is to be created (`store_missing`).
    """
    if path == IN_MEMORY:
        return path
    full = os.path.abspath(path)
    if not create and not os.path.exists(full):
        raise StoreError(
            f"database {full!r} is not there, and reading it makes none; check the path",
            code="store_missing",
            details={"path": full},
        )
    try:
        os.close(os.open(os.path.realpath(full), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(
            f"database {full!r} cannot be created: {error.strerror}; "
            f"check that the folder {str(Path(full).parent)!r} exists and may be written",
            code="store_full" if error.errno == errno.ENOSPC else "store_unwritable",
            details={"path": full},
        ) from error
    if Path(full).is_dir():
        raise StoreError(f"database {full!r} is a folder; name a file", code="store_unwritable", details={"path": full})
    if not os.access(full, os.R_OK | os.W_OK):
        # SQLite would open it for reading, and leave a log behind that nobody may write either.
        raise StoreError(
            f"database {full!r} may not be read and written; check its permissions",
            code="store_unwritable",
            details={"path": full},
        )
    return full


def uri_of(path: str) -> str:
    """The file as SQLite may open it: one that is there, and that somebody removed is not made anew.

    (Read-only, it would leave its own files behind; `query_only` keeps a reader from writing.)
    """
    return Path(path).as_uri() + "?mode=rw"


def open_reading(path: str) -> sqlite3.Connection:
    """A connection to an existing file that cannot write, for one thread at a time.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    connection = sqlite3.connect(
        uri_of(path),
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    connection.execute(QUERY_ONLY)
    return connection


def patiently(step: Callable[[], T], path: str) -> T:
    """Run `step` until it is no longer turned away because the file is busy, for `BUSY_SECONDS` at most.

    SQLite's own busy handler would hold Ctrl-C back, and its pauses grow to 100 ms, which starves whoever comes late.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    pause = 0.0005
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
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


def _is_busy(error: sqlite3.Error) -> bool:
    return bool(getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY)
