"""S8: migrations are applied once, whole, in order, by whoever comes first; newer databases are refused or used."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.migrations import Migration, all_migrations, migrate
from langgraph_ext.errors import StoreError
from tests.database import children
from tests.database.children import STEPS, made
from tests.support.faults import KINDS, Child, run

NEWEST = all_migrations()[-1].number
LATER = "INSERT INTO migration VALUES (:number, '9999_later.sql', 'sha256:00', :oldest_reader, 0)"


def tables(path: Path) -> list[str]:
    """The tables of the file, and what is on record, as another program sees them."""
    connection = sqlite3.connect(path)
    names = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    records = (
        connection.execute("SELECT number FROM migration ORDER BY number").fetchall() if "migration" in names else []
    )
    connection.close()
    return [name for name in names if not name.startswith("sqlite")] + [number for (number,) in records]


def alter(path: Path, sql: str, **params: object) -> bytes:
    """Change the file as another program would; its bytes afterwards."""
    connection = sqlite3.connect(path)
    connection.execute(sql, params)
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.fixture
def apply(path: Path) -> Callable[..., None]:
    """Migrate the file with these migrations, as an opening does."""

    def bring(*migrations: Migration) -> None:
        connection = WriteConnection(str(path), "full")
        try:
            connection.prepare()
            migrate(connection, str(path), clock_us=lambda: 77, migrations=migrations)
        finally:
            connection.close()

    return bring


@pytest.fixture
def opened(path: Path) -> Path:
    """A database that was opened and closed by this code."""
    database = open_database(path)
    database.open()
    database.close()
    return path


def test_s8_each_migration_is_applied_once_with_its_record(path: Path, apply: Callable[..., None]) -> None:
    """In the order of their numbers; a second opening finds nothing to do."""
    apply(*STEPS[:1])
    assert ["migration", "one", 1] == tables(path)
    apply(*STEPS)
    apply(*STEPS)

    assert ["migration", "one", "three", "two", 1, 2, 3] == tables(path)
    connection = sqlite3.connect(path)
    assert [(each.number, each.name, each.checksum, each.oldest_reader, 77) for each in STEPS] == connection.execute(
        "SELECT number, name, checksum, oldest_reader, applied_us FROM migration ORDER BY number"
    ).fetchall()
    connection.close()


def test_s8_a_migration_that_fails_half_way_leaves_nothing(path: Path, apply: Callable[..., None]) -> None:
    """Neither its first table nor its record; those before it stay, those after it wait, and it can be tried again."""
    broken = made(2, "CREATE TABLE half (a INTEGER) STRICT;\nCREATE TABLE half (a INTEGER) STRICT;\n")
    with pytest.raises(sqlite3.OperationalError, match="half"):
        apply(STEPS[0], broken, STEPS[2])
    assert ["migration", "one", 1] == tables(path)
    apply(*STEPS)

    assert ["migration", "one", "three", "two", 1, 2, 3] == tables(path)


def test_s8_a_first_migration_that_fails_leaves_an_empty_file(path: Path, apply: Callable[..., None]) -> None:
    """Not even the table of records, so that the file is nobody's and may be opened by anybody."""
    with pytest.raises(sqlite3.OperationalError):
        apply(made(1, "CREATE TABLE one (a INTEGER) STRICT;\nCREATE NONSENSE;\n"))

    assert [] == tables(path)


@pytest.mark.parametrize("kind", KINDS)
def test_s8_a_process_killed_while_migrating_leaves_whole_steps(path: Path, kind: str) -> None:
    """At each point of three migrations: the next process finds some of them whole and applies the others."""
    whole = [[], [1], [1, 2], [1, 2, 3]]
    points = run(children.migrate_and_die, str(path), "", 0).value().count(kind)
    for at in range(1, points + 1):
        file = path.with_name(f"{kind}-{at}.db")
        assert run(children.migrate_and_die, str(file), kind, at).killed
        assert [each for each in tables(file) if isinstance(each, int)] in whole
        run(children.migrate_and_die, str(file), "", 0).value()
        assert ["migration", "one", "three", "two", 1, 2, 3] == tables(file)


def test_s8_processes_that_migrate_at_once_apply_each_step_once(path: Path) -> None:
    """Let go at one moment on an empty file: one applies a step, the others find it, nobody fails."""
    crowd = [Child(children.migrate_when_told, str(path)) for _ in range(6)]
    assert ["ready"] * 6 == [child.told() for child in crowd]
    for child in crowd:
        child.say("go")

    assert [6, 3] == [len([child.wait().value() for child in crowd]), len(STEPS)]
    assert ["migration", "one", "three", "two", 1, 2, 3] == tables(path)


FIRST_USES: dict[str, Callable[[Any], Any]] = {
    "open": lambda database: database.open(),
    "transact": lambda database: database.transact(lambda tx: None),
    "read": lambda database: database.read(lambda tx: None),
    "atransact": lambda database: asyncio.run(database.atransact(lambda tx: None)),
    "aread": lambda database: asyncio.run(database.aread(lambda tx: None)),
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_s8_a_database_of_newer_code_is_refused_untouched(opened: Path, use: str) -> None:
    """A newer `oldest_reader` says that this code could do harm: every way in is refused, not a byte changes."""
    before = alter(opened, LATER, number=NEWEST + 1, oldest_reader=NEWEST + 1)
    database = open_database(opened)
    with pytest.raises(StoreError, match="upgrade langgraph-ext") as caught:
        FIRST_USES[use](database)
    database.close()

    assert ("store_newer", False) == (caught.value.code, caught.value.retryable)
    assert {"oldest_reader": NEWEST + 1, "version": NEWEST} == {
        key: value for key, value in caught.value.details.items() if key != "path"
    }
    assert (before, [opened]) == (opened.read_bytes(), list(opened.parent.iterdir()))


def test_s8_a_database_with_newer_additions_is_used(opened: Path) -> None:
    """During a rolling deploy: a newer worker added a table, older ones go on, and leave its record alone."""
    alter(opened, LATER, number=NEWEST + 1, oldest_reader=NEWEST)
    alter(opened, "CREATE TABLE later (a INTEGER)")
    database = open_database(opened)
    database.open()
    database.close()

    assert [NEWEST + 1, "later"] == [tables(opened)[-1], *(name for name in tables(opened) if name == "later")]


def test_s8_a_migration_applied_with_another_content_is_refused(opened: Path) -> None:
    """A released migration is never edited; a database that says otherwise is not what it seems."""
    before = alter(opened, "UPDATE migration SET checksum = 'sha256:00' WHERE number = 1")
    database = open_database(opened)
    with pytest.raises(StoreError, match="another content") as caught:
        database.open()
    database.close()

    assert "store_corrupt" == caught.value.code
    assert (before, [opened]) == (opened.read_bytes(), list(opened.parent.iterdir()))


def test_s8_a_database_whose_records_are_gone_is_refused(opened: Path) -> None:
    """Tables without a record of their migrations are not ours to touch."""
    before = alter(opened, "DROP TABLE migration")
    database = open_database(opened)
    with pytest.raises(StoreError) as caught:
        database.open()
    database.close()

    assert ("store_foreign", before) == (caught.value.code, opened.read_bytes())


def test_s8_another_programs_table_called_migration_is_refused(path: Path) -> None:
    """A foreign file that happens to have a table of that name: a typed error, not the driver's, and no change."""
    before = alter(path, "CREATE TABLE migration (id INTEGER PRIMARY KEY, name TEXT)")
    database = open_database(path)
    with pytest.raises(StoreError) as caught:
        database.open()
    database.close()

    assert ("store_foreign", before) == (caught.value.code, path.read_bytes())
