"""Backups: a sound copy of one moment, made while others write, that appears whole and replaces nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.database import backup, open_database
from langgraph_ext.errors import InvalidArgument, StoreError
from tests.support.apps import line, says, tried
from tests.support.build import checkpoint, cid, config, metadata, whole
from tests.support.driver import Form


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with a run."""
    with LedgerSaver(tmp_path / "runs.db") as saver:
        tried(line(saver, a=says("a")))
    return tmp_path / "runs.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[RunLedger]:
    with RunLedger(path) as ledger:
        yield ledger


@pytest.fixture
def back_up(ledger: RunLedger, form: Form) -> Callable[..., Any]:
    """In both forms."""

    def call(*args: Any, **options: Any) -> Any:
        return asyncio.run(ledger.abackup(*args, **options)) if form == "async" else ledger.backup(*args, **options)

    return call


def test_a_backup_holds_what_the_database_held(path: Path, back_up: Callable[..., Any]) -> None:
    copy = path.parent / "copy.db"
    made = back_up(copy)

    assert (str(copy), copy.stat().st_size) == (made.path, made.size_bytes)
    assert 0o600 == stat.S_IMODE(copy.stat().st_mode)
    assert ["copy.db", "runs.db"] == sorted(each.name for each in path.parent.iterdir() if each.suffix == ".db")
    with sqlite3.connect(path) as before, sqlite3.connect(copy) as after:
        assert list(before.iterdump()) == list(after.iterdump())
    with LedgerSaver(copy) as saver:
        tried(line(saver, a=says("b")))
        assert (["a", "b"], []) == (
            [word for word in line(saver, a=says("b")).get_state(whole()).values["log"] if word != "in"],
            saver.ledger.verify(),
        )


def test_a_backup_is_one_moment_while_others_write(path: Path, ledger: RunLedger) -> None:
    """Writers are not held up, and what they commit meanwhile is not in it: neither in part nor in whole."""
    copy, stop, written = path.parent / "copy.db", threading.Event(), []

    def write() -> None:
        with LedgerSaver(path) as saver:
            while not stop.is_set():
                id = cid(len(written) + 1)
                saver.put(config("busy", id=written[-1] if written else None), checkpoint(id, {}, {}), metadata(), {})
                written.append(id)

    writer = threading.Thread(target=write)
    writer.start()
    steps: list[tuple[int, int]] = []

    def step(done: int, of: int) -> None:
        count = len(written)
        while len(written) < count + 3:  # somebody writes between any two steps
            stop.wait(0.001)
        steps.append((done, of))

    try:
        backup.back_up(str(path), str(copy), pages=8, on_progress=step)
    finally:
        stop.set()
        writer.join()
    with LedgerSaver(copy) as saver:
        found = [each.checkpoint["id"] for each in saver.list(whole("busy"))][::-1]
        assert [] == saver.ledger.verify()

    assert len(steps) > 5
    assert steps == sorted(steps)
    assert (1, steps[-1][1]) == (len({of for _, of in steps}), steps[-1][0])
    assert found == written[: len(found)]
    assert len(found) < len(written) - 10


def test_a_file_is_never_replaced(path: Path, back_up: Callable[..., Any]) -> None:
    """Not even by the second of two backups, and not the database itself."""
    taken = path.parent / "taken"
    taken.write_text("mine")
    for target in (taken, path):
        with pytest.raises(InvalidArgument, match="already"):
            back_up(target)
    back_up(path.parent / "copy.db")
    with pytest.raises(InvalidArgument, match="already"):
        back_up(path.parent / "copy.db")

    assert "mine" == taken.read_text()
    assert [] == [*path.parent.glob("*.partial-*")]


def test_a_file_that_comes_meanwhile_is_not_replaced(path: Path) -> None:
    copy = path.parent / "copy.db"
    with pytest.raises(InvalidArgument, match="already"):
        backup.back_up(str(path), str(copy), on_progress=lambda done, of: copy.write_text("mine"))

    assert ("mine", []) == (copy.read_text(), [*path.parent.glob("*.partial-*")])


def test_where_there_are_no_hard_links_nothing_is_replaced_either(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    copy = path.parent / "copy.db"
    backup.back_up(str(path), str(copy))
    with pytest.raises(InvalidArgument, match="already"):
        backup.back_up(str(path), str(copy))

    assert path.stat().st_size == copy.stat().st_size


def test_a_backup_that_cannot_be_written_says_so(path: Path, back_up: Callable[..., Any]) -> None:
    with pytest.raises(StoreError, match="store_unwritable"):
        back_up(path.parent / "no folder" / "copy.db")


def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    """What is not sound does not appear as a copy."""
    path = tmp_path / "runs.db"
    with LedgerSaver(path) as saver:
        for n in range(200):
            saver.put(config(id=cid(n) if n else None), checkpoint(cid(n + 1), {"a": "x" * 500}), metadata(), {"a": 1})
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = os.urandom(8192)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="store_corrupt"):
        backup.back_up(str(path), str(tmp_path / "copy.db"))

    assert ["runs.db"] == sorted(each.name for each in tmp_path.iterdir())


def test_another_programs_database_is_not_backed_up(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE a (b)")
    with pytest.raises(StoreError, match="store_foreign"):
        backup.back_up(str(tmp_path / "other.db"), str(tmp_path / "copy.db"))

    assert ["other.db"] == [each.name for each in tmp_path.iterdir()]


def test_a_database_in_memory_has_no_file(form: Form) -> None:
    database = open_database(":memory:")

    def call() -> None:
        asyncio.run(database.abackup("copy.db")) if form == "async" else database.backup("copy.db")

    with pytest.raises(InvalidArgument, match="memory"):
        call()
    database.close()


def test_what_a_killed_backup_left_is_removed_and_what_a_live_one_makes_is_not(path: Path) -> None:
    """By the next one to the same name."""
    names = "copy.db.partial-999999999", f"copy.db.partial-{os.getppid()}", "x.db.partial-999999999"
    dead, alive, other = (path.parent / name for name in names)
    for each in (dead, alive, other):
        each.write_text("")
    backup.back_up(str(path), str(path.parent / "copy.db"))

    assert (False, True, True) == (dead.exists(), alive.exists(), other.exists())
