"""Reencrypting: sealing anew, in small steps, what was sealed with another key, or not at all.

It goes over the tables by the numbers of their rows, all in the same way; so its statements are made of the names of
tables and columns, which sealed_columns.py knows, and stand here and in no .sql file. What checkpoints and tasks'
writes hold is the saver's (saver/reencrypting.py).
"""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from langgraph_ext.database.connection import BUSY_SECONDS, IN_MEMORY, translate, uri_of
from langgraph_ext.database.sealed_columns import TABLES, Form, Named
from langgraph_ext.database.sealed_json import metadata_inner, sealed_words
from langgraph_ext.database.sealed_tx import open_column, seal_column
from langgraph_ext.database.sealing import Sealer
from langgraph_ext.database.tx import Row, Tx

__all__ = [
    "OWN_TABLES",
    "Step",
    "compact",
    "count_rows",
    "is_current",
    "last_rows",
    "refuse_company",
    "reseal_rows",
    "resealed",
]

OWN_TABLES = tuple(name for name in TABLES if name not in ("checkpoint", "event"))
"""Those that are gone over here."""


class Step(NamedTuple):
    """What one transaction has done."""

    seen: int
    """Rows that it has looked at."""
    changed: int
    """Rows that it has sealed anew."""
    last: int | None
    """The number of the last one; None: there were no more."""


def last_rows(tx: Tx) -> dict[str, int]:
    """Of each of `OWN_TABLES` the number of its last row; 0 if it has none."""
    lasts = ", ".join(f"(SELECT coalesce(max(rowid), 0) FROM {table})" for table in OWN_TABLES)  # noqa: S608
    return dict(zip(OWN_TABLES, tx._execute(f"SELECT {lasts}", {}).fetchone(), strict=True))


def reseal_rows(tx: Tx, table: str, after: int, upto: int, *, size: int, converting: bool) -> Step:
    """Seal anew the next rows of a table.

    Args:
        tx: The open transaction.
        table: One of `OWN_TABLES`.
        after: The number of the last row that was looked at.
        upto: The number of the last row to look at.
        size: At most so many.
        converting: Whether what is plain is to be sealed; else it is refused.

    Raises:
        EncryptionError: Something does not open; nothing of this step is stored.
    """
    key, columns = TABLES[table]
    names = ", ".join(dict.fromkeys((*key, *columns)))
    found = (
        f"SELECT rowid AS at, {names} FROM {table} WHERE rowid > :after AND rowid <= :upto ORDER BY rowid LIMIT :size"  # noqa: S608 - names of ours
    )
    put = f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in columns)} WHERE rowid = :at"  # noqa: S608
    rows = tx._execute(found, {"after": after, "upto": upto, "size": size}).fetchall()
    changed = 0
    for row in rows:
        new = _resealed_row(tx, table, key, columns, row, converting)
        if new is not None:
            tx._execute(put, {**new, "at": row["at"]})
            changed += 1
    return Step(len(rows), changed, rows[-1]["at"] if rows else None)


def _resealed_row(
    tx: Tx, table: str, key: tuple[str, ...], columns: Mapping[str, Form], row: Row, converting: bool
) -> dict[str, Any] | None:
    assert tx.sealer is not None, "a database without keys is not encrypted anew"
    old = {name: row[name] for name in columns}
    where = [row[name] for name in key]
    new = {
        name: resealed(tx.sealer, Named(f"{table}.{name}", columns[name], key), where, value, converting)
        for name, value in old.items()
    }
    return new if new != old else None


def resealed(sealer: Sealer, named: Named, where: list[Any], value: Any, converting: bool) -> Any:
    """A column's value, sealed with the key that seals now; itself if it is that already, or null.

    Raises:
        EncryptionError: It does not open, or is plain and nothing is being converted.
    """
    if value is None or (parts := _sealed_in(named.form, where, value)) == []:
        return value
    if all(is_current(sealer, part) for part in parts):
        return value
    if not converting or all(part is not None and sealer.has_sealed(part) for part in parts):
        value = open_column(sealer, named, where, value)
    return seal_column(sealer, named, where, value)


def is_current(sealer: Sealer, sealed: bytes | None) -> bool:
    """Whether something was sealed with the key that seals now."""
    return sealed is not None and sealer.is_current(sealed)


def _sealed_in(form: Form, where: list[Any], value: Any) -> list[bytes | None]:
    """What of a column's value is, or should be, sealed; None for what is plain."""
    if form == "blob":
        return [value]
    if form == "text":
        return [_bytes_of(value)]
    if form == "metadata":
        return [metadata_inner(value)]
    words = sealed_words(where[_EVENT], value)
    return [None if word is None else _bytes_of(word) for word in words]


_EVENT = TABLES["event"].key.index("event")


def _bytes_of(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def count_rows(tx: Tx) -> int:
    """How many rows of these tables there are."""
    counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in OWN_TABLES)  # noqa: S608
    return sum(tx._execute(f"SELECT {counts}", {}).fetchone())


def refuse_company(path: str) -> None:
    """Refuse to go on while anybody else has a database open, also who does nothing with it.

    Its log is written back and taken away for that: SQLite does so for the only connection. What it held is gone.

    Raises:
        StoreError: Somebody else has it open (`store_busy`).
    """
    if path != IN_MEMORY:
        _alone(path)


def compact(path: str) -> None:
    """Write a database's file anew, so that nothing is left in it, or in its log, of what was taken out or changed.

    Raises:
        StoreError: Somebody else has it open (`store_busy`), or there is no space.
    """
    if path != IN_MEMORY:
        _alone(path, "VACUUM")


def _alone(path: str, *statements: str) -> None:
    try:
        with closing(sqlite3.connect(uri_of(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # for the only connection alone
            for statement in statements:
                connection.execute(statement)
            connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise translate(error, path) from error
