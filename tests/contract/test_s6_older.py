"""S6: a plain database of before there was encryption is encrypted; code of that time is refused it then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.migrations import all_migrations, migrate
from langgraph_ext.errors import StoreError
from langgraph_ext.saver import encrypt_database
from tests.support.apps import asks, line, says, tried
from tests.support.ciphers import KEYS
from tests.support.driver import Driver
from tests.support.sealed import MARK, bytes_of, everything, fill

BEFORE = tuple(migration for migration in all_migrations() if migration.number <= 20)
"""What that code knows."""


@pytest.fixture
def older(path: Path) -> Path:
    """A plain database as it was then; its rows have not changed, so the migration is undone as its header says."""
    with LedgerSaver(path) as saver:
        fill(Driver(saver, "sync", None), ("u",))  # type: ignore[arg-type]
        tried(line(saver, a=says(MARK * 300), asks=asks({"q": MARK})), (MARK,))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE encryption_key")
        connection.execute("ALTER TABLE strand_piece DROP COLUMN size")
        connection.execute("DELETE FROM migration WHERE number > 20")
        connection.commit()
    open_then(path)
    return path


def open_then(path: Path) -> None:
    """What the code of that time does first."""
    with closing(WriteConnection(str(path), "full")) as connection:
        migrate(connection, str(path), clock_us=lambda: 1, migrations=BEFORE)


@pytest.mark.parametrize("opened_plain", [True, False])
def test_s6_a_plain_database_of_before_is_encrypted(older: Path, opened_plain: bool) -> None:
    """Whether this code has opened it plain meanwhile, or sees it for the first time."""
    if opened_plain:
        with LedgerSaver(older) as saver:
            before = everything(saver)
            assert [] == saver.ledger.verify()
        open_then(older)
    assert encrypt_database(older, KEYS).changed
    assert MARK.encode() not in bytes_of(older)
    with LedgerSaver(older, encryption=KEYS) as saver:
        if opened_plain:
            assert before == everything(saver)
        assert [] == saver.ledger.verify()
        assert [{"q": MARK}] == [each.value for each in saver.ledger.interrupts(pending=True)]
        fill(Driver(saver, "sync", None), ("v",))  # type: ignore[arg-type]
    with pytest.raises(StoreError) as refused:
        open_then(older)
    assert ("store_newer", 21, 20) == (
        refused.value.code,
        refused.value.details["oldest_reader"],
        refused.value.details["version"],
    )
