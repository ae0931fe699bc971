"""S8: opening a database is safe from many places at once, and refuses what is not ours."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import StoreError
from tests.support.backends import SqliteBackend
from tests.support.build import VERSIONS, checkpoint, cid, config, metadata
from tests.support.crowd import together
from tests.support.driver import Driver
from tests.support.processes import at_once
from tests.support.workers import fill_slots, put_one, read_all, write_a_thread

FORMS = ["sync", "async"]


def test_scenario_14_six_processes_open_an_empty_database_at_once(backend: SqliteBackend, store: Driver) -> None:
    """None of them fails, whoever makes the tables, and each finds what it put."""
    numbers = range(6)
    answers = at_once(put_one, *((backend.url(), n, FORMS[n % 2]) for n in numbers))

    assert [cid(n) for n in numbers] == answers == sorted(store.ids(None))
    assert [VERSIONS["str"](n) for n in numbers] == [
        store.read(thread=f"t{n}").checkpoint["channel_versions"]["n"] for n in numbers
    ]


def test_s8_threads_open_an_empty_database_at_once(backend: SqliteBackend) -> None:
    """Twelve savers in twelve threads, sync and async, on one file that does not exist yet."""
    jobs = [lambda n=n: put_one(backend.url(), n, FORMS[n % 2]) for n in range(12)]

    assert [cid(n) for n in range(12)] == together(*jobs)
    assert 12 == len(list(backend.open().list(None)))


def test_s8_one_saver_is_opened_by_many_threads_at_once(backend: SqliteBackend) -> None:
    """The first use opens the file; when there are many first uses, it is opened once and all of them work."""
    saver = backend.open()

    def put(n: int) -> Any:
        return saver.put(config("t"), checkpoint(cid(n), {"n": n}), metadata(n), {"n": 1})

    assert [config(id=cid(n)) for n in range(16)] == together(*(lambda n=n: put(n) for n in range(16)))
    assert [cid(n) for n in range(15, -1, -1)] == [item.checkpoint["id"] for item in saver.list(config())]


def test_s8_several_processes_write_one_file(backend: SqliteBackend, store: Driver) -> None:
    """Four programs run threads of their own at once: nothing is lost, mixed up or refused."""
    store.save(cid(1), thread="mine")
    calls = [(backend.url(), f"t{n}", 15, FORMS[n % 2]) for n in range(4)]
    assert [15] * 4 == at_once(write_a_thread, *calls)

    for n in range(4):
        assert [(cid(step), step, 2) for step in range(14, -1, -1)] == read_all(backend.url(), f"t{n}")
        assert [None, *(cid(step) for step in range(14))] == [
            item.parent_config and item.parent_config["configurable"]["checkpoint_id"]
            for item in store.list(config(f"t{n}"))
        ][::-1]
    assert [cid(1)] == store.ids(config("mine"))


def test_s8_several_processes_write_one_checkpoint(backend: SqliteBackend, store: Driver) -> None:
    """Who is first takes the regular slot, who is last the special one: never two, never none."""
    store.save(cid(1))
    at_once(fill_slots, *((backend.url(), name, 10) for name in "xyz"))
    found = store.writes()

    expected = [(f"task {n}", channel) for n in range(10) for channel in ("__error__", "a")]
    assert expected == [(task, channel) for task, channel, _ in found]
    assert {f"{name} {n}" for name in "xyz" for n in range(10)} >= {value for _, _, value in found}


def test_s8_what_one_process_put_another_one_reads_at_once(backend: SqliteBackend, store: Driver) -> None:
    """There is no cache between an acknowledged write and a reader elsewhere."""
    for n in range(3):
        store.save(cid(n), {"n": n}, {"n": n})
        assert [[(cid(i), i, 0) for i in range(n, -1, -1)]] == at_once(read_all, (backend.url(), "t"))


def test_s8_opening_again_changes_nothing(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """An up-to-date database is only read: opening and closing it leaves the file byte for byte the same."""
    with backend.open() as saver:
        forms(saver).save(cid(1), {"a": 1})
    before = Path(backend.url()).read_bytes()
    with backend.open() as saver:
        assert {"a": 1} == forms(saver).read().checkpoint["channel_values"]

    assert before == Path(backend.url()).read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_s8_a_new_file_is_the_owners_alone(backend: SqliteBackend, store: Driver) -> None:
    """State may hold secrets: others on the machine may not read the database or its log."""
    store.save(cid(1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in backend.folder.iterdir()}

    assert set(modes.values()) == {0o600}, modes


@pytest.fixture(params=["text", "random bytes", "a short file", "another program's database", "SqliteSaver's database"])
def stranger(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that is no database of ours."""
    path = tmp_path / "stranger.db"
    if request.param.endswith("database"):
        table = "checkpoints (thread_id TEXT, checkpoint BLOB)" if "Saver" in request.param else "invoice (id INTEGER)"
        connection = sqlite3.connect(path)
        connection.execute(f"CREATE TABLE {table}")
        connection.commit()
        connection.close()
    else:
        content = {"text": b"id,name\n1,x\n" * 999, "random bytes": bytes(range(256)) * 64, "a short file": b"SQLite"}
        path.write_bytes(content[request.param])
    return path


def test_s8_a_file_that_is_not_ours_is_refused_untouched(stranger: Path, forms: Callable[[Any], Driver]) -> None:
    """A mistyped path must not make another program's file ours: a typed error names it, not a byte changes."""
    before = stranger.read_bytes()
    with LedgerSaver(stranger) as saver, pytest.raises(StoreError, match="stranger") as caught:
        forms(saver).save(cid(1))

    assert caught.value.code in ("store_foreign", "store_corrupt")
    assert (False, before) == (caught.value.retryable, stranger.read_bytes())


def test_s8_an_empty_file_is_a_new_database(tmp_path: Path, forms: Callable[[Any], Driver]) -> None:
    """`tempfile` and `touch` make empty files: nothing is lost by beginning a database in one."""
    path = tmp_path / "empty.db"
    path.touch()
    with LedgerSaver(path) as saver:
        forms(saver).save(cid(1))
        assert [cid(1)] == forms(saver).ids(config())


def test_s8_a_folder_that_does_not_exist_is_named(tmp_path: Path, forms: Callable[[Any], Driver]) -> None:
    """A clear error, with the path and a code, and nothing is made."""
    with LedgerSaver(tmp_path / "no" / "such" / "runs.db") as saver, pytest.raises(StoreError, match="such") as caught:
        forms(saver).save(cid(1))

    assert ("store_unwritable", []) == (caught.value.code, list(tmp_path.iterdir()))


def test_s8_after_a_refused_opening_the_saver_can_be_used(tmp_path: Path, forms: Callable[[Any], Driver]) -> None:
    """The next call tries again: once the folder is there, it works."""
    with LedgerSaver(tmp_path / "later" / "runs.db") as saver:
        with pytest.raises(StoreError):
            forms(saver).get_tuple(config())
        (tmp_path / "later").mkdir()
        forms(saver).save(cid(1))

        assert [cid(1)] == forms(saver).ids(config())
