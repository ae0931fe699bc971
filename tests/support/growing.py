"""Large values of a database: how many bytes they take, whether their strands are sound; small sizes for tests."""

from __future__ import annotations

import random
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.saver import growing, matching, strands
from langgraph_ext.saver.values import decode_places, grown_in
from langgraph_ext.saver.writes import GROWN, spans_in

_SPAN = 2**32


def made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have values be large, pieces full and parts many at a few bytes, so that little data comes to every branch."""
    monkeypatch.setattr(growing, "LARGE", 24)
    monkeypatch.setattr(growing, "_MOST_PARTS", 5)
    monkeypatch.setattr(growing, "_FEW_PARTS", 3)
    monkeypatch.setattr(growing, "_FEW", 3)
    monkeypatch.setattr(matching, "_ANCHOR", 8)
    monkeypatch.setattr(matching, "_LEAST", 4)
    monkeypatch.setattr(strands, "FULL", 64)
    monkeypatch.setattr(strands, "SMALL", 20)


def _query(path: Path | str, sql: str) -> list[sqlite3.Row]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def bytes_stored(path: Path | str) -> int:
    """Bytes of all that puts and calls hold, but not what a database needs around it."""
    [row] = _query(
        path,
        "SELECT (SELECT sum(length(data) + length(places) + length(body)) FROM checkpoint_log WHERE listed IS NOT NULL)"
        " + coalesce((SELECT sum(length(data) + length(body)) FROM checkpoint_log WHERE task_id IS NOT NULL), 0)"
        " + coalesce((SELECT sum(length(data)) FROM strand_piece), 0) AS size",
    )
    return int(row["size"])


def everything_in(path: Path | str) -> bytes:
    """All blobs of a database, end to end."""
    rows = _query(path, "SELECT data, body FROM checkpoint_log UNION ALL SELECT data, x'' FROM strand_piece")
    return b"".join(row["data"] + row["body"] for row in rows)


def pieces(path: Path | str) -> dict[int, list[tuple[int, int]]]:
    """Where the pieces of each strand begin and stop."""
    found: dict[int, list[tuple[int, int]]] = {row["strand"]: [] for row in _query(path, "SELECT strand FROM strand")}
    for row in _query(path, "SELECT piece, coalesce(size, length(data)) AS size FROM strand_piece ORDER BY piece"):
        start = row["piece"] % _SPAN
        found[row["piece"] // _SPAN].append((start, start + row["size"]))
    return found


def check_strands(path: Path | str, *, trimmed: bool = False) -> None:
    """Pieces belong to strands, do not overlap, are as large as they should be, and hold every value that is stored."""
    found = pieces(path)
    for places in found.values():
        assert places, "a strand without bytes"
        assert all(start < stop <= start + strands.FULL for start, stop in places)
        assert all(before[1] <= after[0] for before, after in pairwise(places))
        if not trimmed:
            unfull = 0
            for start, stop in places:
                unfull = 0 if stop - start == strands.FULL else unfull + 1
                assert unfull <= strands.MOST_UNFULL + 1, "pieces that are not full were not joined"
    numbers = strand_numbers(path)
    for where, spans in spans_stored(path):
        covered = sum(
            min(stop, last) - max(start, first)
            for start, stop in growing.ranges_in(spans)
            for first, last in found[numbers[where]]
            if start < last and first < stop
        )
        wanted = sum(stop - start for start, stop in growing.ranges_in(spans))
        assert covered == wanted, f"bytes of {where} are missing"


def strand_numbers(path: Path | str) -> dict[tuple[str, str, str], int]:
    """The number of each strand, by thread, namespace and channel."""
    rows = _query(path, "SELECT * FROM strand")
    return {(row["thread_id"], row["checkpoint_ns"], row["channel"]): row["strand"] for row in rows}


def spans_stored(path: Path | str) -> list[tuple[tuple[str, str, str], growing.Spans]]:
    """Thread, namespace and channel of each large value, and its spans."""
    found = []
    for row in _query(path, "SELECT * FROM checkpoint_log WHERE listed IS NOT NULL OR task_id IS NOT NULL"):
        if row["listed"] is not None:
            held = [(channel, place[3]) for channel, place in grown_in(decode_places(row["places"])).items()]
        else:
            held = list(spans_in([row])) if GROWN in row["body"] else []
        found += [((row["thread_id"], row["checkpoint_ns"], channel), spans) for channel, spans in held]
    return found


class Counting:
    """A transaction that counts the rows it is given."""

    def __init__(self, tx: Any) -> None:
        self.tx, self.sealer, self.rows = tx, tx.sealer, 0

    def all(self, name: str, /, **params: object) -> list[Any]:
        rows = self.tx.all(name, **params)
        self.rows += len(rows)
        return list(rows)

    def maybe(self, name: str, /, **params: object) -> Any:
        row = self.tx.maybe(name, **params)
        self.rows += row is not None
        return row

    def one(self, name: str, /, **params: object) -> Any:
        self.rows += 1
        return self.tx.one(name, **params)


def said(what: str, size: int) -> str:
    """Text of a length, which no other text is like."""
    return f"{what} {random.Random(what).randbytes(size // 2 + 1).hex()}"[:size]


def pages_used(path: Path | str) -> int:
    """Bytes of the pages that are in use."""
    count, free, size = (_query(path, f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size"))
    return int((count - free) * size)
