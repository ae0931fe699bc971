"""Fixtures of the database tests: a database that counts its commits, and other connections that get in its way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database
from tests.database.notes import Counting, Gate, open_notes, until_waiting


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's database is, or will be."""
    return tmp_path / "runs.db"


@pytest.fixture
def counting() -> type[Counting]:
    """A write connection that counts its commits."""
    return type("Counted", (Counting,), {})


@pytest.fixture
def database(path: Path, counting: type[Counting], prepared: Callable[[Path], Path]) -> Iterator[Database]:
    """A database that is open and has a table of notes, and has counted nothing yet."""
    made = open_notes(prepared(path), connection=counting)
    counting.begins = counting.commits = 0
    yield made
    made.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that call the database."""
    with ThreadPoolExecutor(max_workers=64) as made:
        yield made


@pytest.fixture
def locked(path: Path) -> Callable[[], Any]:
    """`with locked():` somebody else holds the file's write lock."""

    @contextmanager
    def hold() -> Iterator[None]:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    return hold


@pytest.fixture
def gated(database: Database, pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """`with gated():` a transaction stands inside the lane and everybody queues; it writes the note "gate"."""

    @contextmanager
    def stand() -> Iterator[None]:
        gate = Gate()
        standing = pool.submit(database.transact, gate)
        assert gate.entered.wait(20)
        until_waiting(database, 0)
        try:
            yield
        finally:
            gate.open.set()
        assert ("gate",) == standing.result(20)

    return stand
