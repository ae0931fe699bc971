"""Appends: transactions that only add a row, and the joining of many such into one SQL statement.

Each step of a transaction gives the interpreter's lock away and has to win it back, among all the threads that run
graphs meanwhile. A group of appends is therefore one statement, which SQLite runs as a transaction of its own. The rows
of one query are the `VALUES` of its `WITH`, so that what it asks of each is compiled once, however many there are:

    INSERT … WITH new (a, b) AS (VALUES (:a, :b)) SELECT …
    INSERT … WITH new (a, b) AS (VALUES (?, ?), (?, ?)), other (…) AS (…) SELECT … UNION ALL SELECT …
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

__all__ = ["Append", "joinable", "joined", "values_of"]

_PARAMETER = re.compile(r":(\w+)")

_FORM = re.compile(
    r"(?P<head>INSERT [^()]*\([^()]*\)) WITH (?P<new>\w+ \([^()]*\)) AS \(VALUES \((?P<row>[^()]*)\)\) "
    r"(?P<select>SELECT .*?);?"
)


class Append(NamedTuple):
    """A transaction function that only adds one row, said as data.

    When a row of a group is not stored, nobody can tell whose: all whose `stored` is something are then answered None,
    as the function answers when it stored nothing, and must be able to find out by themselves.
    """

    query: str
    """Name of a query of the form above; the name behind its `WITH` is its own, and it has parameters nowhere else."""
    params: Mapping[str, Any]
    stored: Any = None
    """What the function returns when the row was stored. None says that the row is always stored."""
    key: Any = None
    """What no two rows may share, if anything: within one statement, rows do not see each other."""


def joinable(appends: Sequence[Append]) -> bool:
    """Whether they can be one statement: no two with one key."""
    keys: set[Any] = set()
    for append in appends:
        if append.key is not None:
            if append.key in keys:
                return False
            keys.add(append.key)
    return True


@lru_cache(maxsize=1024)
def joined(counted: tuple[tuple[str, int], ...]) -> str:
    """One statement that does what so many runs of each SQL do, with `values_of` their parameters, in order.

    All of them insert into the same columns of one table.
    """
    rows, heads, selects = [], set(), []
    for sql, count in counted:
        parts = _parts_of(sql)
        row = f"({', '.join('?' * len(parts.names))})"
        rows.append(f"{parts.new} AS (VALUES {', '.join([row] * count)})")
        heads.add(parts.head)
        selects.append(parts.select)
    (head,) = heads
    return f"{head} WITH {', '.join(rows)} {' UNION ALL '.join(selects)}"


def values_of(sql: str, append: Append) -> Iterable[Any]:
    """The parameters of one append in the joined statement."""
    values: Iterable[Any] = _parts_of(sql).values(append.params)
    return values


class _Parts(NamedTuple):
    new: str
    """What stands behind WITH: a name and its columns."""
    names: tuple[str, ...]
    """Of the parameters, in their order."""
    values: Callable[[Mapping[str, Any]], Any]
    """The parameters, in their order."""
    head: str
    select: str


@lru_cache(maxsize=16)
def _parts_of(sql: str) -> _Parts:
    found = _FORM.fullmatch(" ".join(re.sub(r"--.*", "", sql).split()))
    assert found is not None, f"no query to append with: {sql}"
    names = tuple(_PARAMETER.findall(found["row"]))
    return _Parts(found["new"], names, itemgetter(*names), found["head"], found["select"])
