"""Fixtures of the contract tests: a ledger whose rows a test writes by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from langgraph_ext import RunLedger
from langgraph_ext.database import Database, open_database
from tests.support.driver import Form
from tests.support.reader import Reader
from tests.support.rows import Rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database lies."""
    return tmp_path / "runs.db"


@pytest.fixture
def database(path: Path, prepared: Callable[[Path], Path]) -> Iterator[Database]:
    """A new database."""
    made = open_database(prepared(path))
    yield made
    made.close()


@pytest.fixture
def rows(tmp_path: Path, prepared: Callable[[Path], Path]) -> Iterator[Rows]:
    """An empty database, and a connection that writes rows to it."""
    made = Rows(prepared(tmp_path / "runs.db"))
    yield made
    made.close()


@pytest.fixture
def reader(rows: Rows, form: Form, loop: asyncio.AbstractEventLoop) -> Iterator[Reader]:
    """A ledger on that database, in both forms."""
    with RunLedger(rows.path) as ledger:
        yield Reader(ledger, form, loop)
