"""PostgreSQL's spelling of the SQL in our files: what little differs, in one place.

Queries and migrations are written once, in SQLite's spelling of the common subset. Everything that PostgreSQL spells
otherwise throughout is rewritten when a file is loaded; a query that differs in more than spelling gets a block of its
own (`-- name: … (postgres)`, see queries.py).
"""

from __future__ import annotations

import re

__all__ = ["for_postgres"]

_RULES = (
    (re.compile(r"\bINTEGER PRIMARY KEY\b"), "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bBLOB\b"), "BYTEA"),
    # Ids are compared by code point, whatever the database's collation says.
    (re.compile(r"\bTEXT\b"), 'TEXT COLLATE "C"'),
    (re.compile(r"\)\s*(?:STRICT|WITHOUT ROWID)(?:,\s*(?:STRICT|WITHOUT ROWID))?"), ")"),
    (re.compile(r"\binstr\((\w+), (:\w+)\)"), r"position(\2 IN \1)"),
    (re.compile(r"(?<![:\w]):(\w+)"), r"%(\1)s"),
)


def for_postgres(sql: str) -> str:
    """The same statement as PostgreSQL and psycopg want it: types, collation, table options, `%(name)s` parameters."""
    for pattern, spelling in _RULES:
        sql = pattern.sub(spelling, sql)
    return sql
