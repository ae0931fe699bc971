"""Files that are damaged, foreign, or may not be written: a typed error with the path, and not a byte changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import StoreError
from tests.faults import disks
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Driver
from tests.support.faults import run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed database of ours with thirty checkpoints and their writes."""
    made = tmp_path / "runs.db"
    with LedgerSaver(made) as saver:
        for n in range(30):
            disks.put(saver, n, size=5_000)
    return made


def overwrite(path: Path, at: int, size: int) -> None:
    """What a broken disk or another program may do to a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes((7 * n) % 251 for n in range(size)))


def root_page(path: Path, name: str) -> tuple[int, int]:
    """Where the first page of a table or index lies in the file, and its size."""
    connection = sqlite3.connect(path)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    return (page - 1) * size, size


DAMAGE: dict[str, Callable[[Path], None]] = {
    "its first bytes": lambda path: overwrite(path, 0, 16),
    "its whole header": lambda path: overwrite(path, 0, 100),
    "its first page": lambda path: overwrite(path, 0, 4096),
    "all but its header": lambda path: overwrite(path, 100, path.stat().st_size - 100),
    "the end cut off": lambda path: path.write_bytes(path.read_bytes()[: 4096 + 2048]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_s7_a_damaged_file_is_store_corrupt_untouched(path: Path, forms: Callable[[Any], Driver], damage: str) -> None:
    """Every way in says so and names the file; nothing is written that could make it worse."""
    DAMAGE[damage](path)
    before = path.read_bytes()
    for use in (
        lambda store: store.save(cid(40), {"a": 1}),
        lambda store: store.get_tuple(config()),
        lambda store: store.list(config()),
    ):
        with LedgerSaver(path) as saver, pytest.raises(StoreError, match=str(path)) as caught:
            use(forms(saver))
        assert ("store_corrupt", False) == (caught.value.code, caught.value.retryable)

    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


@pytest.mark.parametrize("part", ["checkpoint_log", "checkpoint_log_place"])
def test_s7_a_damaged_page_is_store_corrupt_where_it_is_needed(
    path: Path, forms: Callable[[Any], Driver], part: str
) -> None:
    """The file opens; calls that need the page fail with a typed error, in both forms; if all do, nothing changes."""
    overwrite(path, *root_page(path, part))
    before = path.read_bytes()
    with LedgerSaver(path) as saver:
        store, codes = forms(saver), []
        for use in (
            lambda: store.save(cid(40), {"a": 1}, parent=cid(29)),
            lambda: store.put_writes(config(id=cid(29)), [("a", 1)], "new"),
            lambda: store.get_tuple(config(id=cid(29))),
            lambda: store.delete_thread("t"),
        ):
            try:
                use()
            except StoreError as error:
                codes.append(error.code)

    assert {"store_corrupt"} == set(codes)
    assert before == path.read_bytes() or part != "checkpoint_log"  # with one index gone, some calls still work


FOREIGN: dict[str, Callable[[Path], Any]] = {
    "text": lambda path: path.write_bytes(b"id,name\n1,x\n" * 999),
    "a picture": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40),
    "two bytes": lambda path: path.write_bytes(b"x\n"),
    "another program's database": lambda path: _execute(path, "CREATE TABLE invoice (id INTEGER PRIMARY KEY)"),
    "a database of views only": lambda path: _execute(path, "CREATE VIEW v AS SELECT 1"),
    "a database in use as a log": lambda path: _execute(path, "PRAGMA journal_mode = WAL", "CREATE TABLE invoice (id)"),
    "an empty SqliteSaver": lambda path: _sqlite_saver(path, 0),
    "a SqliteSaver's threads": lambda path: _sqlite_saver(path, 3),
}


def _execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def _sqlite_saver(path: Path, count: int) -> None:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        for n in range(count):
            saver.put(config(), checkpoint(cid(n)), metadata(n), {})


@pytest.mark.parametrize("kind", FOREIGN)
def test_s8_a_foreign_file_is_refused_untouched(tmp_path: Path, forms: Callable[[Any], Driver], kind: str) -> None:
    """A mistyped path turns nobody's file into ours; the error says which file, and whose it seems to be."""
    path = tmp_path / "foreign.db"
    FOREIGN[kind](path)
    before = path.read_bytes()
    with LedgerSaver(path) as saver, pytest.raises(StoreError, match=str(path)) as caught:
        forms(saver).save(cid(1))

    database = "database" in kind or "SqliteSaver" in kind
    assert ("store_foreign" if database else "store_corrupt") == caught.value.code
    assert ("another LangGraph saver" in str(caught.value)) == ("SqliteSaver" in kind)
    assert (before, [path]) == (path.read_bytes(), list(tmp_path.iterdir()))


NO_FILES: dict[str, Callable[[Path], Path]] = {
    "a folder that is missing": lambda folder: folder / "no" / "such" / "runs.db",
    "a folder": lambda folder: folder,
    "a file taken for a folder": lambda folder: (folder / "file").write_text("x") and folder / "file" / "runs.db",
    "a name that is too long": lambda folder: folder / ("x" * 300),
    "a link to nowhere": lambda folder: (folder / "link").symlink_to(folder / "no" / "runs.db") or folder / "link",
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_s8_a_path_where_no_file_can_be_is_store_unwritable(
    tmp_path: Path, forms: Callable[[Any], Driver], kind: str
) -> None:
    """With the path, what to look at, and nothing made anywhere."""
    path = NO_FILES[kind](tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with LedgerSaver(path) as saver, pytest.raises(StoreError) as caught:
        forms(saver).save(cid(1))

    assert ("store_unwritable", False) == (caught.value.code, caught.value.retryable)
    assert str(path) in str(caught.value)
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.parametrize("place", disks.PLACES)
def test_s8_what_may_not_be_written_is_store_unwritable(tmp_path: Path, place: str) -> None:
    """Folders and files without the permission: refused at the first use whichever it is, nothing changed, and once the
    permission is given it works."""
    report = run(disks.use_forbidden, str(tmp_path), place).value()
    if isinstance(report, str):
        pytest.skip(report)

    assert [("store_unwritable", True, False)] * 3 == report["errors"]
    assert (True, "stored") == (report["unchanged"], report["later"])


def test_s7_an_error_never_holds_what_was_to_be_stored(path: Path) -> None:
    """Whatever goes wrong with the file: values, metadata and names stay out of messages and details."""
    overwrite(path, *root_page(path, "checkpoint_log_place"))
    with LedgerSaver(path) as saver, pytest.raises(StoreError) as caught:
        saver.put(config(), checkpoint(cid(40), {"a": "secret"}), metadata(note="secret"), {"a": 1})

    assert "secret" not in f"{caught.value} {caught.value.details} {caught.value.__cause__}"
