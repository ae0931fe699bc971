"""Doctor: look at a database file from outside, without opening it as ours; nothing is migrated, nothing written.

It reads on a connection of its own that cannot write, and keeps going where `Database` would refuse: what is wrong is a
line of the report.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from langgraph_ext.database.connection import open_reading, translate
from langgraph_ext.database.migrations import all_migrations, check
from langgraph_ext.database.queries import load_queries
from langgraph_ext.database.tx import Tx
from langgraph_ext.errors import StoreError

__all__ = ["Examination", "examine"]

_MOST_FAULTS = 10
"""Faults that SQLite's check names before it gives up."""


@dataclass(slots=True, kw_only=True)
class Examination:
    """What was seen. None where it could not be seen."""

    path: str
    sqlite_version: str
    """Of the SQLite library in this process."""
    size_bytes: int
    log_bytes: int
    """Size of the write-ahead log beside it; 0 where there is none."""
    known_version: int
    """The schema version of this code."""
    schema_version: int | None = None
    oldest_reader: int | None = None
    """The oldest schema version of code that may still use it."""
    journal_mode: str | None = None
    integrity: str | None = None
    """`"ok"`, or the first of what SQLite's quick check found."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What `count` gave."""
    problems: list[str] = field(default_factory=list)
    """What is wrong, a sentence each; empty when all is well."""


def examine(path: str, *, count: Callable[[Tx], Mapping[str, int]]) -> Examination:
    """Look at an existing database file. Its size decides how long that takes: every page is read.

    Args:
        path: The file, absolute.
        count: What to count, as a transaction that only reads; a file that lacks tables of this code is not counted.

    Returns:
        What was seen. What SQLite or our own checks refuse is one of its problems, and no error.
    """
    seen = Examination(
        path=path,
        sqlite_version=sqlite3.sqlite_version,
        size_bytes=_size(path),
        log_bytes=_size(path + "-wal"),
        known_version=all_migrations()[-1].number,
    )
    _look_at_permissions(seen)
    try:
        with closing(open_reading(path)) as connection:
            _look(connection, seen)
            if not seen.problems and (seen.schema_version or 0) >= seen.known_version:
                connection.execute("BEGIN")
                seen.counts = count(Tx(connection.execute, load_queries("sqlite")))
    except StoreError as error:
        seen.problems.append(str(error))
    except sqlite3.Error as error:
        seen.problems.append(str(translate(error, path)))
    return seen


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _look_at_permissions(seen: Examination) -> None:
    for place, what in ((seen.path, "the file"), (str(Path(seen.path).parent), "its folder")):
        if not os.access(place, os.R_OK | os.W_OK):
            seen.problems.append(f"{what} {place!r} may not be read and written; check its permissions")


def _look(connection: sqlite3.Connection, seen: Examination) -> None:
    seen.journal_mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    found = [row[0] for row in connection.execute(f"PRAGMA quick_check({_MOST_FAULTS})")]
    seen.integrity = found[0]
    if found != ["ok"]:
        seen.problems += [f"integrity: {fault}" for fault in found]
    versions = check(connection, seen.path)
    if versions is None:
        seen.problems.append("the file is empty; the first use by a saver makes a database of it")
        return
    seen.schema_version, seen.oldest_reader = versions
    if seen.journal_mode != "wal":
        seen.problems.append(f"journal mode is {seen.journal_mode!r}, not 'wal'; another program has changed it")
