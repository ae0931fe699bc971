"""Appends: transactions that only add a row, and the joining of many such into one SQL statement.

Each step of a transaction gives the interpreter's lock away and has to win it back, among all the threads that run
graphs meanwhile. A group of appends is therefore one statement, which SQLite runs as a transaction of its own:
`INSERT … SELECT …` becomes `INSERT … SELECT … UNION ALL SELECT …`, in the order of the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Append", "joinable", "joined", "values_of"]

_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


class Append(NamedTuple):
    """A transaction function that only adds one row, said as data.

    When a row of a group is not stored, nobody can tell whose: all whose `stored` is something are then answered None,
    as the function answers when it stored nothing, and must be able to find out by themselves.
    """

    query: str
    """Name of an `INSERT … SELECT …` whose parameters all stand behind the SELECT."""
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


@lru_cache(maxsize=256)
def joined(counted: tuple[tuple[str, int], ...]) -> str:
    """One statement that does what so many runs of each SQL do, with `values_of` their parameters.

    All of them insert into the same columns of one table.
    """
    selects: list[str] = []
    heads: set[str] = set()
    before = 0
    for sql, count in counted:
        head, select = re.split(r"\bSELECT\b", _plain(sql), maxsplit=1)
        heads.add(" ".join(head.split()))
        names = _names(sql)
        for _ in range(count):
            selects.append("SELECT" + _numbered(select, names, before))
            before += len(names)
    (head,) = heads
    return f"{head} " + " UNION ALL ".join(selects)


def _numbered(select: str, names: tuple[str, ...], before: int) -> str:
    return _PARAMETER.sub(lambda found: f"?{before + names.index(found[1]) + 1}", select)


def values_of(sql: str, append: Append) -> Iterator[Any]:
    """The parameters of one append in the joined statement."""
    return map(append.params.__getitem__, _names(sql))


@lru_cache(maxsize=16)
def _names(sql: str) -> tuple[str, ...]:
    """The parameters of a query, each once."""
    return tuple(dict.fromkeys(_PARAMETER.findall(_plain(sql))))


def _plain(sql: str) -> str:
    return re.sub(r"--.*", "", sql)
