"""S7: what lies on the disk: modes, sizes, and what a full, slow or odd one does to the log."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from langgraph_ext.database import Database, Fsync, open_database, wal
from langgraph_ext.errors import InvalidArgument
from tests.database.notes import add, notes, open_notes


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_s8_a_new_database_is_its_owners_alone(path: Path, umask: int) -> None:
    """0600 whatever the umask, the log and its index included: checkpoints hold what users said."""
    before = os.umask(umask)
    try:
        database = open_notes(path)
        database.transact(add, "a")
    finally:
        os.umask(before)

    assert {0o600} == {mode(file) for file in path.parent.iterdir()}
    assert 3 == len(list(path.parent.iterdir()))
    database.close()


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_s8_an_existing_files_mode_is_its_owners_choice(path: Path) -> None:
    """Whoever opened it to a group keeps it so."""
    open_notes(path).close()
    path.chmod(0o640)
    open_notes(path).close()

    assert 0o640 == mode(path)


@pytest.mark.parametrize("fsync", ["full", "normal"])
def test_s7_the_log_has_its_size_from_the_beginning(path: Path, fsync: Fsync) -> None:
    """Commits overwrite blocks instead of appending them: over thousands of commits the log does not grow by a byte."""
    database = open_notes(path, fsync=fsync)
    log = Path(f"{path}-wal")
    before = log.stat().st_size
    for n in range(3000):
        database.transact(add, f"{n} {'x' * 500}")

    assert wal.CHECKPOINT_PAGES * 4096 < before == log.stat().st_size
    assert 3000 == len(database.read(notes))
    database.close()


def test_s7_a_closed_database_is_one_file(path: Path) -> None:
    """The last to close folds the log into the file, which can then be copied as it is."""
    database = open_notes(path)
    database.transact(add, "a")
    database.read(notes)
    database.close()

    assert [path] == list(path.parent.iterdir())


def test_s7_zeros_behind_the_log_are_no_frames(path: Path, tmp_path: Path) -> None:
    """A copy of file and log taken while both are in use opens elsewhere with everything in it."""
    database = open_notes(path)
    database.transact(add, "a", "b")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    Path(f"{copy}-wal").write_bytes(Path(f"{path}-wal").read_bytes())

    assert ["a", "b"] == open_notes(copy).read(notes)
    database.close()


@pytest.mark.parametrize("fsync", ["full", "normal"])
def test_s7_a_commit_is_synced_as_the_caller_chose(path: Path, fsync: Fsync) -> None:
    """`full` syncs the log at each commit (SQLite's FULL is 2), `normal` (1) at check-points; the log is a WAL."""
    database = open_notes(path, fsync=fsync)
    pragmas = [
        database.transact(lambda tx, name=name: tx._execute(f"PRAGMA {name}", {}).fetchone()[0]) for name in PRAGMAS
    ]

    assert [2 if fsync == "full" else 1, "wal", 1000] == pragmas
    database.close()


PRAGMAS = ["synchronous", "journal_mode", "wal_autocheckpoint"]


def test_s7_any_other_fsync_is_refused(path: Path) -> None:
    with pytest.raises(InvalidArgument, match="fsync"):
        open_database(path, fsync="off")  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["", "postgresql://h/d", "mysql://h/d", "sqlite:runs.db", "file:runs.db?mode=ro"])
def test_s8_a_url_that_names_no_file_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not at the first use, and no file with an odd name appears."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument):
        open_database(url)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("spelling", ["{0}", "sqlite:///{0}", "sub/../runs.db", "sqlite:///runs.db"])
def test_s8_a_file_may_be_spelt_in_several_ways(
    spelling: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absolute or relative, as a path or a URL: it is the same file, and stays so when the folder changes later."""
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    database = open_notes(spelling.format(path))
    monkeypatch.chdir(tmp_path / "sub")
    database.transact(add, "a")

    assert ["a"] == database.read(notes) == open_notes(path).read(notes)
    assert path.samefile(database.name)
    database.close()


def test_s7_a_database_in_memory_works_alike() -> None:
    """`:memory:` makes no file, lives as long as the object, and reads what was written."""
    memory = open_notes(":memory:")
    memory.transact(add, "a")

    assert ["a"] == memory.read(notes)
    assert not Path(":memory:").exists()
    memory.close()


def test_s8_reading_with_the_sqlite3_shell_meanwhile_is_fine(database: Database, path: Path) -> None:
    """Other programs may look while it is in use: they see what is committed and stop nobody."""
    database.transact(add, "a")
    other = sqlite3.connect(path)
    assert [("a",)] == other.execute("SELECT text FROM note").fetchall()
    other.execute("BEGIN")
    other.execute("SELECT * FROM note").fetchall()
    database.transact(add, "b")
    other.close()

    assert ["a", "b"] == database.read(notes)
