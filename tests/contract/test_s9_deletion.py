"""S9: what is deleted stays deleted. Late writers are refused, whoever they are, and a thread may begin anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.errors import ConflictError
from tests.support import deleting, faults
from tests.support.backends import SqliteBackend
from tests.support.build import cid, config, metadata, running, whole
from tests.support.driver import Driver


def rows(backend: SqliteBackend) -> int:
    """How many there are, of every kind, in every table."""
    with sqlite3.connect(backend.url()) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


@pytest.fixture
def deleted(store: Driver) -> Driver:
    """A thread of three checkpoints and a subgraph, deleted, and another one."""
    for n in range(1, 4):
        store.save(cid(n), {"a": n}, {"a": n}, parent=cid(n - 1) if n > 1 else None)
    store.save(cid(4), {"b": 1}, ns="sub", meta=metadata(parents={"": cid(3)}))
    store.save(cid(1), {"a": "other"}, thread="other")
    store.delete_thread("t")
    return store


LATE: dict[str, Callable[[Driver], Any]] = {
    "a checkpoint below a deleted one": lambda store: store.save(cid(9), {"a": 4}, parent=cid(3)),
    "a deleted one again": lambda store: store.save(cid(3), {"a": 3}, parent=cid(2)),
    "one without a parent, as old as a deleted one": lambda store: store.save(cid(4), {"a": 3}),
    "one that is older": lambda store: store.save(cid(2), {"a": 3}),
    "one of a subgraph, below a deleted one": lambda store: store.save(cid(9), {"b": 2}, ns="sub", parent=cid(4)),
    "the first one of a subgraph of a deleted one": lambda store: store.put(
        running(config(ns="new")),
        {**deleting.bare(cid(9))},
        metadata(parents={"": cid(3)}),
        {},
    ),
    "what a task wrote at a deleted one": lambda store: store.put_writes(config(id=cid(3)), [("a", 1)], "task"),
    "what a graph's task wrote there": lambda store: store.put_writes(
        running(config(id=cid(3))), [("a", 1)], "task", "~__pregel_pull, a"
    ),
    "a question asked there": lambda store: store.put_writes(
        running(config(id=cid(3))), [("__interrupt__", ())], "task", "~__pregel_pull, a"
    ),
    "what a task of the subgraph wrote": lambda store: store.put_writes(
        config(ns="sub", id=cid(4)), [("b", 1)], "task"
    ),
}


@pytest.mark.parametrize("what", LATE)
def test_s9_what_comes_late_to_a_deleted_thread_is_refused(deleted: Driver, backend: SqliteBackend, what: str) -> None:
    """With an error that says so, before anything is written."""
    before = rows(backend)
    with pytest.raises(ConflictError, match=r"thread 't': .* deleted") as refused:
        LATE[what](deleted)

    assert ("thread_deleted", "t", False) == (
        refused.value.code,
        refused.value.details["thread_id"],
        refused.value.retryable,
    )
    assert (before, []) == (rows(backend), deleted.list(whole()))


@pytest.mark.parametrize("what", LATE)
def test_s9_late_writers_are_refused_when_the_thread_has_begun_anew(deleted: Driver, what: str) -> None:
    """The new thread has nothing of the old one, and keeps what it has."""
    deleted.save(cid(20), {"a": "new"})
    with pytest.raises(ConflictError, match="thread_deleted"):
        LATE[what](deleted)

    assert ([cid(20)], {"a": "new"}, []) == (
        deleted.ids(whole()),
        deleted.read().checkpoint["channel_values"],
        deleted.writes(),
    )


def test_s9_a_deleted_thread_begins_anew(deleted: Driver) -> None:
    """From a checkpoint without a parent, and its writes, subgraphs and children with it; any number of times."""
    for n in (20, 30):
        deleted.put_writes(config(id=cid(n)), [("a", "early")], "task")  # before its checkpoint, as under "async"
        deleted.save(cid(n), {"a": n}, {"a": 1})
        deleted.save(cid(n + 1), {"a": n}, {"a": 1}, parent=cid(n), new={})
        deleted.save(cid(n + 2), {"b": n}, ns="sub", meta=metadata(parents={"": cid(n + 1)}))
        deleted.put_writes(config(ns="sub", id=cid(n + 2)), [("b", 1)], "task")

        assert [cid(n + 2), cid(n + 1), cid(n)] == deleted.ids(whole())
        assert ([("task", "a", "early")], {"a": n}) == (
            deleted.writes(cid(n)),
            deleted.read().checkpoint["channel_values"],
        )
        deleted.delete_thread("t")


def test_s9_other_threads_are_not_concerned(deleted: Driver) -> None:
    """Whatever their checkpoints are called."""
    deleted.save(cid(3), {"a": "more"}, thread="other", parent=cid(2))
    deleted.put_writes(config("other", id=cid(1)), [("a", 1)], "task")

    assert [cid(3), cid(1)] == deleted.ids(whole("other"))


def test_s9_a_tombstone_names_the_newest_of_all_that_was_deleted(deleted: Driver) -> None:
    """Also when what is deleted later is a copy, with older ids."""
    deleted.copy_thread("other", "t")
    deleted.delete_thread("t")
    with pytest.raises(ConflictError, match="thread_deleted"):
        deleted.save(cid(2), {"a": 1})


def test_s9_a_copy_onto_a_deleted_thread_is_a_thread_like_any_other(deleted: Driver) -> None:
    """Its checkpoints may be older than the tombstone: they are stored, so they are written to, and gone on from."""
    deleted.put_writes(config("other", id=cid(1)), [("__interrupt__", "q")], "task-1")
    deleted.copy_thread("other", "t")
    deleted.put_writes(config(id=cid(1)), [("__resume__", ["yes"])], "task-1")
    deleted.save(cid(40), {"a": 40}, parent=cid(1))

    assert [cid(40), cid(1)] == deleted.ids(whole())
    assert ("task-1", "__resume__", ["yes"]) in deleted.writes(cid(1))
    for late in ("a checkpoint below a deleted one", "what a task wrote at a deleted one"):
        with pytest.raises(ConflictError, match="thread_deleted"):
            LATE[late](deleted)


def test_s9_a_saver_that_remembers_the_thread_is_refused_as_well(
    store: Driver, backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """It has put the last checkpoint, and knows where its values lie; another one deletes the thread."""
    store.save(cid(1), {"a": 1}, {"a": 1})
    store.save(cid(2), {"a": 1}, {"a": 1}, parent=cid(1), new={})
    forms(backend.open()).delete_thread("t")
    with pytest.raises(ConflictError, match="thread_deleted"):
        store.save(cid(3), {"a": 1}, {"a": 1}, parent=cid(2), new={})
    with pytest.raises(ConflictError, match="thread_deleted"):
        store.put_writes(config(id=cid(2)), [("a", 1)], "task")

    assert [] == store.list(whole())


def test_s9_calls_that_share_a_commit_with_a_late_one_are_stored(deleted: Driver) -> None:
    """Many at once, one of them to a deleted thread: it alone is refused, and each of the others is stored once."""
    loop = deleted.loop if deleted.form == "async" else None
    outcomes = deleting.at_once(deleted.saver, [("t", cid(3))] + [("other", cid(1))] * 20, loop=loop)

    assert ["thread_deleted"] + [None] * 20 == outcomes
    assert sorted(f"w{n}" for n in range(1, 21)) == sorted(
        value for _, _, value in deleted.writes(cid(1), thread="other")
    )


def test_s9_deleting_a_thread_that_is_not_there_leaves_no_tombstone(store: Driver) -> None:
    """Nothing was removed, so nothing is late."""
    store.delete_thread("t")
    store.save(cid(1))
    store.delete_for_runs(["nobody"])

    assert [cid(1)] == store.ids(whole())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_s9_a_graph_in_another_process_is_refused(store: Driver, backend: SqliteBackend, durability: str) -> None:
    """It runs a node while its thread is deleted here, and has its own saver with all that remembers."""
    store.saver.setup()
    child = faults.Child(deleting.run_while_it_is_deleted, backend.url(), durability)
    assert "runs" == child.told()
    store.delete_thread("t")
    child.say("deleted")

    assert ("thread_deleted", "begun anew") == child.wait().value()
    assert ["in", "a", "b"] == store.read().checkpoint["channel_values"]["log"]
    assert [] == store.saver.ledger.verify()  # type: ignore[attr-defined]


def test_s9_a_run_that_was_rolled_back_is_not_gone_on_with(store: Driver) -> None:
    """A running graph whose parent was deleted with its run is told; a program may put what it likes."""
    store.save(cid(1), meta=metadata(run_id="r"))
    store.delete_for_runs(["r"])
    with pytest.raises(ConflictError, match="thread_deleted"):
        store.put(running(config(id=cid(1))), deleting.bare(cid(2)), metadata(), {})
    store.save(cid(2), parent=cid(1))

    assert [cid(2)] == store.ids(whole())


def test_s9_deletion_is_on_disk(deleted: Driver, backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """Who opens the file later knows of it."""
    deleted.saver.close()
    with pytest.raises(ConflictError, match="thread_deleted"):
        forms(backend.open()).save(cid(9), {}, parent=cid(3))


def test_s9_a_tombstone_is_one_row(tmp_path: Path, deleted: Driver, backend: SqliteBackend) -> None:
    """However often the thread is deleted."""
    for n in range(10, 15):
        deleted.save(cid(n))
        deleted.delete_thread("t")

    with sqlite3.connect(backend.url()) as connection:
        found = connection.execute("SELECT thread_id, newest_id, deletions FROM tombstone").fetchall()
    assert [("t", cid(14), 6)] == found
