"""Backup: a copy of a database that others write to meanwhile, made page by page from one snapshot of it.

    copy.db.partial-4711    written, looked through, synced
    copy.db                 there at once, whole, and never in the place of another file

A reader's snapshot is held for as long as it takes, so that writers do not make it begin anew; SQLite's log grows
meanwhile, as what is written behind the snapshot is not folded into the file. Who is killed leaves the partial file
behind, which the next backup to the same name removes.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from langgraph_ext.database.connection import open_reading, translate
from langgraph_ext.database.forks import process_exists
from langgraph_ext.database.migrations import check
from langgraph_ext.errors import InvalidArgument, StoreError

__all__ = ["BackedUp", "OnPages", "back_up"]

OnPages = Callable[[int, int], object]
"""Called with how many pages are copied, and of how many."""

_PAGES = 1000
"""Copied in one step: 4 MB."""

_PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A copy of a database."""

    path: str
    """Absolute."""
    size_bytes: int
    schema_version: int


def back_up(path: str, target: str, *, pages: int = _PAGES, on_progress: OnPages | None = None) -> BackedUp:
    """Copy a database to a new file, which appears when it is complete and was found to be sound.

    Args:
        path: The database's file.
        target: Where to; there must be no such file.
        pages: So many are copied in one step.
        on_progress: Called after each step.

    Raises:
        InvalidArgument: There is such a file.
        StoreError: The database is none of this package's, or damaged; or the copy cannot be written (`store_full`,
            `store_unwritable`).
    """
    full = os.path.abspath(target)
    _refuse_existing(full)
    _remove_left(full)
    with _partial(full) as partial:
        try:
            with closing(open_reading(path)) as source:
                _copy(source, partial, pages, on_progress)
            version = _look_through(partial)
        except sqlite3.Error as error:
            raise translate(error, path) from error
        _sync(partial)
        size_bytes = os.path.getsize(partial)
        _appear(partial, full)
    _sync(str(Path(full).parent))
    return BackedUp(path=full, size_bytes=size_bytes, schema_version=version)


def _refuse_existing(full: str) -> None:
    if os.path.lexists(full):
        raise InvalidArgument(f"backup: there is a file {full!r} already; name a new one", details={"path": full})


@contextmanager
def _partial(full: str) -> Iterator[str]:
    """A new file beside the target, for its owner alone, which is gone afterwards in any case."""
    partial = f"{full}{_PARTIAL}{os.getpid()}"
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise InvalidArgument(
            f"backup: this process is making {full!r} already; wait for that, or name another file",
            details={"path": full},
        ) from None
    except OSError as error:
        raise _unwritable(full, error) from error
    try:
        yield partial
    finally:
        for each in (partial, f"{partial}-wal", f"{partial}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(each)


def _copy(source: sqlite3.Connection, partial: str, pages: int, on_progress: OnPages | None) -> None:
    """Copy one snapshot of the source."""

    def tell(status: int, remaining: int, total: int) -> None:
        if on_progress is not None:
            on_progress(total - remaining, total)

    check(source, partial)
    source.execute("BEGIN")
    source.execute("PRAGMA schema_version").fetchone()  # takes the snapshot
    with closing(sqlite3.connect(partial, isolation_level=None)) as target:
        # Nobody reads it before it is complete, and it is synced then.
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA synchronous = OFF")
        source.backup(target, pages=pages, progress=tell)


def _look_through(partial: str) -> int:
    """See that the copy is sound; returns its schema version."""
    with closing(open_reading(partial)) as connection:
        found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        versions = check(connection, partial)
    if found != ["ok"] or versions is None:
        raise StoreError(
            f"backup: the copy is not sound ({found[0]}), and was not kept; look at the database: langgraph-ext doctor",
            code="store_corrupt",
        )
    return versions[0]


def _appear(partial: str, full: str) -> None:
    """Give the copy its name, unless somebody else has it by now."""
    try:
        os.link(partial, full)
    except FileExistsError:
        _refuse_existing(full)
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise _unwritable(full, error) from error
        # No hard links there: the name is taken first, by an empty file, so that no other one is replaced.
        os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        os.replace(partial, full)


def _sync(path: str) -> None:
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _remove_left(full: str) -> None:
    """Remove what backups to this name left behind whose processes are gone."""
    for left in Path(full).parent.glob(f"{Path(full).name}{_PARTIAL}*"):
        owner = left.name.rpartition(_PARTIAL)[2].partition("-")[0]
        if owner.isdigit() and int(owner) != os.getpid() and not process_exists(int(owner)):
            left.unlink(missing_ok=True)


def _unwritable(full: str, error: OSError) -> StoreError:
    return StoreError(
        f"backup: {full!r} cannot be written: {error.strerror}; check that its folder exists and may be written",
        code="store_full" if error.errno == errno.ENOSPC else "store_unwritable",
        details={"path": full},
    )
