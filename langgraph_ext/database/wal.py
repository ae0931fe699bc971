"""The write-ahead log's file: given its size once, so that a commit overwrites blocks instead of appending them.

Syncing an overwritten block costs about two thirds of syncing an appended one, which changes the file's size. SQLite
writes the log from its beginning again after every checkpoint and never shrinks it, so it only has to reach its size
once. Zeros behind the log's end are no frames: recovery stops at the first frame whose salt does not match the header.
"""

from __future__ import annotations

import os
from typing import Protocol

from langgraph_ext.errors import StoreError

__all__ = ["CHECKPOINT_PAGES", "preallocate"]

CHECKPOINT_PAGES = 1000
"""Pages in the log at which a commit folds them into the database (SQLite's own default)."""

_SIZE = CHECKPOINT_PAGES * (4096 + 24) + 256 * 1024
"""Bytes of log for that many pages, each with its header, and a little more for the group that reaches the mark."""


class Locker(Protocol):
    """What `preallocate` needs of a write connection."""

    def begin(self) -> None: ...
    def rollback(self) -> None: ...


def preallocate(connection: Locker, path: str) -> None:
    """Fill the log's file with zeros up to its working size. Only the holder of the write lock may write there."""
    log = path + "-wal"
    if path == ":memory:" or _size(log) >= _SIZE:
        return
    connection.begin()
    try:
        file = _open(log, path)
        try:
            _fill(file, end=os.lseek(file, 0, os.SEEK_END))
        finally:
            os.close(file)
    finally:
        connection.rollback()


def _open(log: str, path: str) -> int:
    try:
        return os.open(log, os.O_WRONLY)
    except PermissionError as error:
        raise StoreError(
            f"database {path!r}: its log {log!r} may not be written; check the permissions of both and of their folder",
            code="store_unwritable",
            details={"path": path},
        ) from error


def _fill(file: int, *, end: int) -> None:
    if end >= _SIZE:
        return
    try:
        os.write(file, bytes(_SIZE - end))
        os.fsync(file)
    except OSError:
        os.ftruncate(file, end)  # no room: the log then grows as it always did


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return _SIZE  # no log yet, nothing to fill
