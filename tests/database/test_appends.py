"""Groups that are one statement: committed as it ends, and the long way is taken when it cannot say who failed."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.database import open_database
from langgraph_ext.database.appends import joined
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.lane import Queued
from langgraph_ext.database.queries import load_queries
from langgraph_ext.database.sqlite import SqliteBackend
from langgraph_ext.saver import puts, task_writes
from langgraph_ext.saver.config import Address
from tests.support.build import checkpoint, cid, config, metadata, running


class Watched(WriteConnection):
    """Notes how groups are run."""

    ran: list[str]

    def begin(self) -> None:
        self.ran.append("begin")
        super().begin()

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        self.ran.append("alone")
        return super().run_alone(sql, params)


class Story:
    """A saver with one stored checkpoint, and calls on the checkpoint after it, queued by hand."""

    def __init__(self, path: Path) -> None:
        self.ran: list[str] = []
        watched = type("Noting", (Watched,), {"ran": self.ran})
        self.path = path
        self.saver = LedgerSaver(open_database(path, connection=watched))
        self.saver.put(config(), checkpoint(cid(0), {"a": 0}, {"a": 1}), metadata(0), {"a": 1})
        self.saver.database.read(lambda tx: None)  # it sees that nobody can encrypt the database any more
        self.ran.clear()

    def call(self, **changed: Any) -> Queued:
        written = task_writes.prepare(
            Address("t", "", cid(0)),
            running(config(id=cid(0))),
            [("a", 1)],
            "task",
            "",
            serde=self.saver.serde,
            dumps=self.saver.serde.dumps_typed,
            sealer=None,
            seen=self.saver.seen,
            bodies=self.saver.bodies,
            epoch=None,
            regular=True,
            stored_us=1,
        )
        assert written.append is not None
        assert written.row is not None
        row = {**written.row, **changed}
        append = written.append._replace(params=row)
        return Queued(partial(task_writes.store, written=written._replace(append=append, row=row)), append)

    def put(self, **changed: Any) -> Queued:
        planned = puts.prepare(
            Address("t", "", cid(0)),
            config(id=cid(0)),
            checkpoint(cid(1), {"a": 1}, {"a": 2}),
            metadata(1),
            {"a": 2},
            refuses=True,
            from_graph=False,
            epoch=None,
            parent=self.saver.recent.find("t", "", cid(0)),
            bodies=self.saver.bodies,
            dumps=self.saver.serde.dumps_typed,
            sealer=None,
            stored_us=1,
        )
        assert isinstance(planned, puts.Below)
        assert planned.append is not None
        row = {**planned.row, **changed}
        append = planned.append._replace(params=row, stored="stored")
        return Queued(partial(puts.store, planned=planned._replace(append=append, row=row, stored="stored")), append)

    def commit(self, *calls: Queued) -> list[Any]:
        backend = self.saver.database._backend
        assert isinstance(backend, SqliteBackend)
        backend.commit(list(calls))
        assert all(call.finished for call in calls)
        return [call.error if call.error is not None else call.result for call in calls]

    def rows(self) -> int:
        with sqlite3.connect(self.path) as connection:
            return int(connection.execute("SELECT count(*) FROM checkpoint_log").fetchone()[0]) - 1


@pytest.fixture
def story(tmp_path: Path) -> Any:
    story = Story(tmp_path / "runs.db")
    yield story
    story.saver.close()


def test_a_call_and_a_put_are_one_statement(story: Story) -> None:
    assert [True, "stored"] == story.commit(story.call(), story.put())
    assert (["alone"], 2) == (story.ran, story.rows())


@pytest.mark.parametrize("which", ["call", "put"])
def test_a_lone_call_is_one_statement(story: Story, which: str) -> None:
    assert ["stored" if which == "put" else True] == story.commit(getattr(story, which)())
    assert (["alone"], 1) == (story.ran, story.rows())


def test_a_put_whose_parent_changed_is_not_stored_and_its_companion_is(story: Story) -> None:
    """Nobody can tell which of the two, so both are told None; the call then finds its row."""
    assert [None, None] == story.commit(story.call(), story.put(parent_places=b"{}"))
    assert (["alone"], 1) == (story.ran, story.rows())


@pytest.mark.parametrize("broken", [{"stored_us": 1 << 70}, {"stored_us": "no number"}, {"body": None}])
def test_data_that_are_refused_fail_their_own_call_alone(story: Story, broken: dict[str, Any]) -> None:
    """What the statement was given is one caller's fault; the other is stored."""
    stored, error = story.commit(story.call(), story.put(**broken))

    assert isinstance(error, Exception)
    assert stored is True
    assert (["alone", "begin"], 1) == (story.ran[:2], story.rows())


def test_calls_and_puts_in_any_number_are_one_statement_in_their_order(story: Story) -> None:
    calls = [story.call(task_id=str(number)) for number in range(40)]
    assert [True] * 20 + ["stored"] + [True] * 20 == story.commit(*calls[:20], story.put(), *calls[20:])

    assert (["alone"], 41) == (story.ran, story.rows())
    with sqlite3.connect(story.path) as connection:
        order = [row[0] for row in connection.execute("SELECT task_id FROM checkpoint_log ORDER BY seq")]
    assert [None, *map(str, range(40)), None] == order  # the calls in their order, and the puts behind them


def test_other_groups_go_the_long_way(story: Story) -> None:
    """Two puts under one id, which would not see each other; more than a statement should hold; other calls."""
    assert ["stored", None] == story.commit(story.put(), story.put())
    story.commit(*(story.call(task_id=str(number)) for number in range(257)))
    story.commit(story.call(task_id="5"), Queued(lambda tx: None))

    assert (["begin"] * 3, 1 + 257 + 1) == (story.ran, story.rows())


def test_a_call_that_may_be_stored_already_is_looked_for(story: Story) -> None:
    """After an end that nobody knows, the same call is not a second row."""
    again = story.call()
    story.commit(again)
    again.finished = False
    story.commit(again)

    assert (["alone", "begin"], 1) == (story.ran, story.rows())


def test_a_full_disk_fails_the_call_that_does_not_fit(story: Story) -> None:
    """One by one, as calls that are no appends."""
    pages = story.saver.database.transact(lambda tx: tx._execute("PRAGMA page_count", {}).fetchone()[0])
    story.saver.database.transact(lambda tx: tx._execute(f"PRAGMA max_page_count = {pages + 8}", {}).fetchone())
    story.ran.clear()
    small, large, last = story.call(task_id="1"), story.call(task_id="2", data=bytes(300_000)), story.call(task_id="3")
    outcomes = story.commit(small, large, last)

    assert [True, "store_full", True] == [getattr(each, "code", each) for each in outcomes]
    assert 2 == story.rows()


async def test_an_interrupted_wake_up_is_made_up_for(story: Story) -> None:
    """Ctrl-C between queueing a call and waking the writer thread: the next coroutine's call takes it along."""
    lane = story.saver.database._lane

    class Interrupted:
        def put(self, woken: bool) -> None:
            lane._wake = wake
            raise KeyboardInterrupt

        def get(self) -> bool:
            return wake.get()

    wake, lane._wake = lane._wake, Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        await story.saver.aput_writes(config(id=cid(0)), [("a", 1)], "one")
    await asyncio.wait_for(story.saver.aput_writes(config(id=cid(0)), [("a", 2)], "two"), 20)

    assert 2 == story.rows()


async def test_a_writer_thread_that_does_not_start_is_started_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LedgerSaver(tmp_path / "new.db") as saver:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", _no_thread)
            with pytest.raises(RuntimeError, match="new thread"):
                await saver.aput_writes(config(id=cid(0)), [("a", 1)], "one")
        await asyncio.wait_for(saver.aput_writes(config(id=cid(0)), [("a", 2)], "two"), 20)


def _no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_is_asked_of_a_row_is_said_once_however_many_rows_there_are() -> None:
    """SQLite compiles a statement whenever its text is new, and the number of rows is nearly always another one."""
    queries = load_queries("sqlite")

    statement = joined(((queries["call_append"], 3), (queries["put_append"], 2)))

    assert statement.count("ORDER BY") == queries["put_append"].count("ORDER BY") == 1
    assert statement.count("?") == 3 * 13 + 2 * 17
    assert statement.startswith("INSERT INTO checkpoint_log (")  # sqlite3 counts the rows of what begins so
