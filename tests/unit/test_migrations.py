"""Migrations as files: how a script is split, what a header must say, one order for all rooms."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from langgraph_ext.database import migrations
from langgraph_ext.database.migrations import Migration, all_migrations, statements

HEADER = "-- {name}\n--\n-- Adds     a table.\n-- oldest_reader: {oldest}\n"
WORDS = ["-- Adds ", "-- Why ", "-- Locks ", "-- Safe ", "-- Undo ", "-- oldest_reader: "]


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two rooms with folders for migrations; files written there are what `all_migrations` finds."""
    for room in ("low", "high"):
        (tmp_path / room / "migrations").mkdir(parents=True)
    (tmp_path / "none").mkdir()
    monkeypatch.setattr(migrations, "layer_folders", lambda: [tmp_path / room for room in ("low", "high", "none")])
    return tmp_path


def write(place: Path, name: str, *, oldest: object = 0, sql: str = "CREATE TABLE t (a INTEGER);\n") -> None:
    (place / "migrations" / name).write_text(HEADER.format(name=name, oldest=oldest) + sql)


def found() -> tuple[Migration, ...]:
    """As `all_migrations`, without its cache."""
    return all_migrations.__wrapped__()


SCRIPTS = {
    "several": ("CREATE TABLE a (x);\nCREATE TABLE b (x);\n", ["CREATE TABLE a (x);", "CREATE TABLE b (x);"]),
    "over lines": ("CREATE TABLE a (\n  x,\n  y\n);\n", ["CREATE TABLE a (\n  x,\n  y\n);"]),
    "comments between": ("-- one\nSELECT 1;\n\n  -- two; not a statement\nSELECT 2;\n", ["SELECT 1;", "SELECT 2;"]),
    "a comment inside": ("CREATE TABLE a (\n  x -- a;\n);\n", ["CREATE TABLE a (\n  x -- a;\n);"]),
    "a semicolon in text": (
        "INSERT INTO a VALUES ('x;\ny');\nSELECT 1;",
        ["INSERT INTO a VALUES ('x;\ny');", "SELECT 1;"],
    ),
    "a trigger": (
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;\nSELECT 1;\n",
        ["CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;", "SELECT 1;"],
    ),
    "a comment at the end": ("SELECT 1; -- done\n-- really\n", ["SELECT 1;"]),
    "nothing": ("-- only a comment\n\n", []),
    "empty statements": (";\n;\nSELECT 1;\n;\n", ["SELECT 1;"]),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_a_script_is_split_into_its_statements(case: str) -> None:
    """Each can be run by itself inside the open transaction; semicolons in text, triggers, comments divide nothing."""
    script, expected = SCRIPTS[case]

    assert expected == [part.partition(" --")[0] if case.endswith("end") else part for part in statements(script)]


def test_a_script_that_ends_inside_a_statement_is_refused() -> None:
    """A forgotten semicolon would otherwise drop the last statement without a word."""
    with pytest.raises(ValueError, match="CREATE TABLE b"):
        statements("CREATE TABLE a (x);\nCREATE TABLE b (x)\n")


def test_migrations_of_all_rooms_have_one_order(rooms: Path) -> None:
    """The number decides, whichever room a file lies in, whatever its noun."""
    write(rooms / "high", "0001_zebra.sql")
    write(rooms / "low", "0003_ant.sql", oldest=2)
    write(rooms / "low", "0002_bee.sql")

    assert [(1, "0001_zebra.sql", 0), (2, "0002_bee.sql", 0), (3, "0003_ant.sql", 2)] == [
        (each.number, each.name, each.oldest_reader) for each in found()
    ]


def test_two_migrations_may_not_have_one_number(rooms: Path) -> None:
    """Neither in one room nor in two, and the error names both."""
    write(rooms / "low", "0001_ant.sql")
    write(rooms / "high", "0001_bee.sql")
    with pytest.raises(ValueError, match=r"0001_ant.*0001_bee"):
        found()


@pytest.mark.parametrize("name", ["1_ant.sql", "0001-ant.sql", "ant.sql", "0001_ant.txt", "00010_ant.sql", "0001_.sql"])
def test_a_migration_with_another_kind_of_name_is_refused(rooms: Path, name: str) -> None:
    """A file that would silently not be applied is an error."""
    write(rooms / "low", name)
    with pytest.raises(ValueError, match=name.split(".", maxsplit=1)[0]):
        found()


@pytest.mark.parametrize("oldest", ["", "two", "-1", "1.5"])
def test_a_migration_must_say_who_can_read_the_database_afterwards(rooms: Path, oldest: str) -> None:
    write(rooms / "low", "0001_ant.sql", oldest=oldest)
    with pytest.raises(ValueError, match="oldest_reader"):
        found()


def test_a_checksum_changes_with_every_byte(rooms: Path) -> None:
    made = [Migration(number=1, name="0001_a.sql", sql=sql, oldest_reader=0).checksum for sql in ("a", "a ", "b", "a")]

    assert (made[0], 3) == (made[3], len(set(made)))
    assert made[0].startswith("sha256:")


@pytest.mark.parametrize("migration", all_migrations(), ids=lambda each: each.name)
def test_a_released_migration_says_what_it_does(migration: Migration) -> None:
    """What it adds, why, what it locks, whether older code goes on, how to undo it, who can read it: before any DDL."""
    header = migration.sql[: migration.sql.index(statements(migration.sql)[0])]

    assert header.startswith(f"-- {migration.name.removesuffix('.sql').replace('_', ' ', 1)}\n")
    assert [] == [word for word in WORDS if word not in header]


def test_released_migrations_are_numbered_without_a_gap() -> None:
    """A gap is a file that was forgotten; no migration asks for a reader newer than itself."""
    assert list(range(1, len(all_migrations()) + 1)) == [each.number for each in all_migrations()]
    assert [] == [each.name for each in all_migrations() if each.oldest_reader > each.number]


@pytest.mark.parametrize("migration", all_migrations(), ids=lambda each: each.name)
def test_every_table_checks_its_types(migration: Migration) -> None:
    """STRICT, so that SQLite refuses what PostgreSQL would."""
    tables = [part for part in statements(migration.sql) if part.upper().startswith("CREATE TABLE")]

    assert [] == [part[:60] for part in tables if not part.upper().rstrip(";").rstrip().endswith(("STRICT", "ROWID"))]
    assert all(sqlite3.complete_statement(part) for part in tables)
