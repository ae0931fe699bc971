"""Migrations: numbered SQL files in one global order, each applied together with its record in one transaction.

A file is `NNNN_noun.sql` in the `sql/migrations` folder of the room that owns the tables. Its header says, besides what
and why, which code can still work with the database afterwards: `-- oldest_reader: N` is the lowest schema version (the
number of the last migration it knows) that may open it. Additive migrations leave it alone, so that older workers keep
running during a rolling deploy; a database whose `oldest_reader` is newer than this code is refused.

What only SQLite is to see stands in `/*sqlite … */`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from langgraph_ext.canonical import digest
from langgraph_ext.database.queries import layer_folders
from langgraph_ext.database.tx import Cursor
from langgraph_ext.errors import StoreError

__all__ = ["Migration", "all_migrations", "check", "migrate", "own_tables", "statements"]

_NAME = re.compile(r"^(?P<number>\d{4})_(?P<noun>\w+)\.sql$")
_OLDEST_READER = re.compile(r"^-- oldest_reader: (?P<number>\d+)$", re.MULTILINE)

_ONLY_SQLITE = re.compile(r"/\*sqlite (.*?)\*/")
"""SQL that only SQLite is to see: for PostgreSQL it is a comment."""

_RECORDS = """\
CREATE TABLE migration (
    number        INTEGER NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    checksum      TEXT    NOT NULL,
    oldest_reader INTEGER NOT NULL,
    applied_us    INTEGER NOT NULL
)"""

_TABLE = re.compile(r"^CREATE TABLE (?P<name>\w+)", re.MULTILINE)

_RECORD = "INSERT INTO migration VALUES (:number, :name, :checksum, :oldest_reader, :applied_us)"

_APPLIED = "SELECT number, name, checksum, oldest_reader FROM migration ORDER BY number"

_OBJECTS = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"

_COLUMNS = "SELECT name FROM pragma_table_info('migration')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str
    oldest_reader: int
    """Lowest schema version of code that may still open the database once this was applied."""

    @property
    def checksum(self) -> str:
        """Digest of the file's text."""
        return digest(self.sql.encode())


class Looker(Protocol):
    """What looking needs of a connection."""

    def execute(self, sql: str, params: Mapping[str, object] = ..., /) -> Cursor: ...


class Writer(Looker, Protocol):
    """What migrating needs besides."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


@cache
def all_migrations() -> tuple[Migration, ...]:
    """Every migration of every room, in their one order.

    Raises:
        ValueError: A file has no proper name or header, or two have one number.
    """
    found: dict[int, Migration] = {}
    for folder in layer_folders():
        place = folder / "migrations"
        for entry in place.iterdir() if place.is_dir() else ():
            match, text = _NAME.match(entry.name), entry.read_text(encoding="utf-8")
            header = _OLDEST_READER.search(text)
            if match is None or header is None:
                raise ValueError(f"migration {entry.name!r} needs the name NNNN_noun.sql and an oldest_reader line")
            number = int(match["number"])
            if number in found:
                raise ValueError(f"migrations {found[number].name!r} and {entry.name!r} have one number")
            found[number] = Migration(number=number, name=entry.name, sql=text, oldest_reader=int(header["number"]))
    return tuple(found[number] for number in sorted(found))


@cache
def own_tables() -> frozenset[str]:
    """The tables of this package, by the names that the migrations give them."""
    made = [_RECORDS, *(migration.sql for migration in all_migrations())]
    return frozenset(found["name"].lower() for script in made for found in _TABLE.finditer(script))


def statements(script: str) -> list[str]:
    """The statements of a script (`executescript` would commit the open transaction first)."""
    parts: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        if not pending.strip() and line.lstrip().startswith("--"):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            parts.append(pending.strip())
            pending = ""
    if pending.strip():
        raise ValueError(f"the script ends inside a statement: {pending.strip()[:60]!r}")
    return [part for part in parts if part != ";"]


def check(connection: Looker, path: str) -> tuple[int, int] | None:
    """See that the file is empty, or a database of ours that this code may open; writes nothing.

    Returns:
        Version and `oldest_reader` of the database; None if the file is empty.

    Raises:
        StoreError: As `migrate`.
    """
    _pending(connection, path, all_migrations())
    if not _names(connection, _OBJECTS):
        return None
    applied = connection.execute(_APPLIED).fetchall()
    return max((row["number"] for row in applied), default=0), max((row["oldest_reader"] for row in applied), default=0)


def migrate(
    connection: Writer,
    path: str,
    *,
    clock_us: Callable[[], int],
    migrations: tuple[Migration, ...] | None = None,
) -> None:
    """Bring the database up to this code, under its write lock; safe from many processes at once.

    Raises:
        StoreError: The file is another application's (`store_foreign`), was written by newer code that older code must
            not touch (`store_newer`), or an applied migration is not the one this code knows (`store_corrupt`).
    """
    known = all_migrations() if migrations is None else migrations
    if not _pending(connection, path, known):
        return
    while True:
        connection.begin()
        try:
            pending = _pending(connection, path, known)
            if not pending:
                connection.rollback()
                return
            _apply(connection, pending[0], applied_us=clock_us())
            connection.commit()
        except BaseException:
            connection.rollback()
            raise


def _apply(connection: Writer, migration: Migration, *, applied_us: int) -> None:
    if not _names(connection, _OBJECTS):
        connection.execute(_RECORDS)
    for statement in statements(migration.sql):
        connection.execute(_ONLY_SQLITE.sub(r"\1", statement))
    record = {
        "number": migration.number,
        "name": migration.name,
        "checksum": migration.checksum,
        "oldest_reader": migration.oldest_reader,
        "applied_us": applied_us,
    }
    connection.execute(_RECORD, record)


def _pending(connection: Looker, path: str, known: tuple[Migration, ...]) -> list[Migration]:
    """The migrations still to apply, after checking those that were."""
    objects = _names(connection, _OBJECTS)
    if objects and not _names(connection, _COLUMNS) >= {"number", "name", "checksum", "oldest_reader"}:
        raise StoreError(_foreign(path, objects), code="store_foreign", details={"path": path})
    applied = {row["number"]: row for row in connection.execute(_APPLIED).fetchall()} if objects else {}
    version = max((migration.number for migration in known), default=0)
    oldest = max((row["oldest_reader"] for row in applied.values()), default=0)
    if oldest > version:
        raise StoreError(
            f"database {path!r} needs code of schema version {oldest} or newer, this is {version}; "
            "upgrade langgraph-ext",
            code="store_newer",
            details={"path": path, "oldest_reader": oldest, "version": version},
        )
    for migration in known:
        row = applied.get(migration.number)
        if row is not None and row["checksum"] != migration.checksum:
            raise StoreError(
                f"database {path!r}: migration {migration.number} was applied as {row['name']!r} with another content "
                f"than {migration.name!r}; use the version of langgraph-ext that made this database",
                code="store_corrupt",
                details={"path": path, "migration": migration.number},
            )
    return [migration for migration in known if migration.number not in applied]


def _names(connection: Looker, query: str) -> set[str]:
    return {row["name"] for row in connection.execute(query).fetchall()}


def _foreign(path: str, objects: set[str]) -> str:
    if {"checkpoints", "writes"} <= objects:
        return (
            f"database {path!r} belongs to another LangGraph saver, whose threads cannot be read here; use a new file"
        )
    return f"database {path!r} belongs to another application (it has {min(objects)!r}); use a new file"
