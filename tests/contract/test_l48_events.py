"""L48: events come in one order that never changes; a cursor skips nothing; a run's are numbered without gaps."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.errors import InvalidArgument, NotFound, StoreError
from langgraph_ext.ledger import Event, runs
from langgraph_ext.ledger.following import advance, from_now
from langgraph_ext.ledger.order import behind
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.reader import Reader
from tests.support.rows import Rows

QUICK = {"poll_seconds": 0.001}


def named(events: list[Event]) -> list[tuple[int, str, str | None]]:
    """Cursor, name and task of each event."""
    return [(event.cursor, event.name, event.task_id) for event in events]


def paged(page: Callable[..., list[Event]], *args: Any, limit: int) -> list[Event]:
    """Every event, page by page."""
    found: list[Event] = []
    while more := page(*args, after=found[-1].cursor if found else 0, limit=limit):
        found += more
    return found


def two_runs(rows: Rows) -> None:
    """Two runs on two threads whose events alternate; one of the calls stands in a subgraph."""
    rows.begun(1)
    rows.begun(2, first=2, thread="u")
    rows.call(1, "a", "outer")
    rows.nested(3, ns="s", root=2, inside="b", above=("", 2), thread="u")
    rows.call(3, "c", "leaf", ns="s", thread="u")
    rows.call(2, "b", "outer", thread="u")
    rows.event("run.succeeded", 1)
    rows.event("thread.deleted", None, thread="gone")
    rows.event("run.failed", 2, thread="u", error_type="E", error_message="m")


def test_l48_all_events_stand_in_the_order_of_their_commits(rows: Rows, reader: Reader) -> None:
    two_runs(rows)
    found = reader.events()

    names = ["run.started", "run.started", *["visit.succeeded"] * 3, "run.succeeded", "thread.deleted", "run.failed"]
    assert names == [event.name for event in found]
    assert sorted(event.cursor for event in found) == [event.cursor for event in found]
    runs = ["run 1", "run 2", "run 1", "run 2", "run 2", "run 1", None, "run 2"]
    assert runs == [event.run_id for event in found]
    assert {None} == {event.run_seq for event in found}


def test_l48_the_events_of_a_run_are_numbered_without_gaps(rows: Rows, reader: Reader) -> None:
    two_runs(rows)
    found = reader.events("run 2")

    assert [1, 2, 3, 4] == [event.run_seq for event in found]
    assert ["run.started", "visit.succeeded", "visit.succeeded", "run.failed"] == [event.name for event in found]
    assert {"run 2"} == {event.run_id for event in found}


def test_l48_an_event_says_where_it_happened(rows: Rows, reader: Reader) -> None:
    two_runs(rows)
    _, leaf, _, failed = reader.events("run 2")

    where = (leaf.thread_id, leaf.checkpoint_ns, leaf.checkpoint_id, leaf.task_id)
    assert ("u", "s", cid(3), "c") == where
    assert ("leaf", "outer/leaf", "b") == (leaf.node, leaf.node_path, leaf.scope)
    assert ({"error_type": "E", "error_message": "m"}, None, None) == (failed.details, failed.node, failed.task_id)


def test_l48_an_event_of_a_question_names_who_asked(rows: Rows, reader: Reader) -> None:
    """Also when only the question's id is in its details."""
    rows.begun()
    rows.call(1, "ask", "asker", "paused")
    rows.interrupt("q", task="ask", task_path="~__pregel_pull, asker")
    rows.event("interrupt.answered", interrupt_id="q")
    rows.event("interrupt.noticed", interrupt_id="unknown")
    rows.event("task.noticed", task_id="ask")
    *_, answered, unknown, noticed = reader.events()

    assert ("ask", "asker", "asker") == (answered.task_id, answered.node, answered.node_path)
    assert (None, None) == (unknown.task_id, unknown.node)
    assert ("ask", "asker") == (noticed.task_id, noticed.node)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_l48_pages_give_every_event_once(rows: Rows, reader: Reader, limit: int) -> None:
    two_runs(rows)
    rows.call(9, "early 1", thread="u")
    rows.call(9, "early 2", thread="u")
    rows.call(2, "between", thread="u")
    rows.put(9, run=2, thread="u")
    rows.call(9, "late", thread="u")

    assert named(reader.events(limit=1000)) == named(paged(reader.events, limit=limit))
    assert reader.events("run 2") == paged(reader.events, "run 2", limit=limit)
    assert list(range(1, 9)) == [event.run_seq for event in reader.events("run 2")]


def test_l48_a_run_is_told_in_the_order_of_all(rows: Rows, reader: Reader) -> None:
    two_runs(rows)

    for run_id in ("run 1", "run 2"):
        of_all = [event for event in reader.events() if event.run_id == run_id]
        assert named(of_all) == named(reader.events(run_id))


def test_l48_a_call_before_its_checkpoint_is_shown_with_it(rows: Rows, reader: Reader) -> None:
    """Nobody knows before whose it is; whoever has read on meanwhile has not skipped it."""
    rows.begun()
    rows.call(2, "early")
    rows.call(1, "first")
    before = reader.events()
    rows.put(2, run=1)
    after = reader.events(after=before[-1].cursor)

    assert ["run.started", "visit.succeeded"] == [event.name for event in before]
    assert [("early", "run 1")] == [(event.task_id, event.run_id) for event in after]
    assert [3] == [event.run_seq for event in reader.events("run 1", after=before[-1].cursor)]


def test_l48_a_subgraph_before_its_root_checkpoint_is_shown_with_it(rows: Rows, reader: Reader) -> None:
    """Its checkpoint says which root checkpoint it belongs to; that one says whose both are."""
    rows.begun()
    rows.call(3, "x", ns="s")
    rows.nested(3, ns="s", root=2, inside="outer", above=("", 2))
    rows.call(3, "y", ns="s")
    rows.call(2, "outer")
    before = reader.events(), reader.events("run 1")
    root = rows.put(2, run=1)
    rows.call(3, "z", ns="s")

    assert ([1], [1]) == tuple([len(found) for found in [events]] for events in before)
    assert ["x", "y", "outer", "z"] == [event.task_id for event in reader.events(after=behind(root - 1))]
    assert ["x", "y", "outer", "z"] == [event.task_id for event in reader.events("run 1")[1:]]
    assert named(reader.events()) == named(reader.events("run 1"))


def test_l48_who_stops_between_events_of_one_place_goes_on_with_the_next(rows: Rows, reader: Reader) -> None:
    """Calls that were waiting for a checkpoint are shown with it, and each has a cursor of its own."""
    rows.begun()
    rows.call(2, "a")
    rows.call(2, "b")
    rows.put(2, run=1)
    _, first, second = reader.events()

    assert ("a", "b") == (first.task_id, second.task_id)
    assert first.cursor < second.cursor
    for run in ([], ["run 1"]):
        assert ["b"] == [event.task_id for event in reader.events(*run, after=first.cursor)]
        assert [] == reader.events(*run, after=second.cursor)
        assert ["a"] == [event.task_id for event in reader.events(*run, after=first.cursor - 1, limit=1)]


def test_l48_what_belongs_to_no_run_is_shown_without_one(rows: Rows, reader: Reader) -> None:
    """A stored checkpoint that no run claims, and what happens to a thread."""
    rows.put(1)
    rows.call(1, "task")
    rows.event("thread.deleted", None)

    assert [("visit.succeeded", None), ("thread.deleted", None)] == [(e.name, e.run_id) for e in reader.events()]


def test_l48_a_call_whose_checkpoint_never_comes_is_not_shown(rows: Rows, reader: Reader) -> None:
    """Its process died before it was stored: the task runs again, at another checkpoint."""
    rows.begun()
    rows.call(2, "lost")
    rows.put(3, run=1)
    rows.call(3, "found")

    assert ["found"] == [event.task_id for event in reader.events("run 1")[1:]]
    assert named(reader.events("run 1")) == named(reader.events())


def test_l48_errors_are_those_that_were_overcome_too(rows: Rows, reader: Reader) -> None:
    rows.begun()
    rows.call(1, "a", "node", "failed", error=("ValueError", "first"))
    rows.call(1, "a", "node", "timed_out", error=("NodeTimeoutError", "second"))
    rows.call(1, "a", "node", "cancelled")
    rows.call(1, "a", "node")
    found = reader.errors("run 1")

    assert ["failed", "timed_out", "cancelled"] == [error.status for error in found]
    assert ["ValueError", "NodeTimeoutError", ""] == [error.error_type for error in found]
    assert {"node"} == {error.node_path for error in found}
    assert found[1:2] == reader.errors("run 1", after=found[0].cursor, limit=1)


# -- followers


def test_l48_a_follower_gets_what_is_there_and_ends_with_its_run(rows: Rows, reader: Reader) -> None:
    two_runs(rows)
    rows.connection.execute("UPDATE run SET status = 'succeeded', ended_us = 1, last_id = ? WHERE run = 1", [cid(9999)])

    assert reader.events("run 1") == reader.follow("run 1")
    assert reader.events("run 1")[2:] == reader.follow("run 1", after=reader.events("run 1")[1].cursor)


def test_l48_a_follower_ends_after_silence(rows: Rows, reader: Reader) -> None:
    two_runs(rows)

    assert reader.events("run 2") == reader.follow("run 2", idle_seconds=0)
    assert reader.events() == reader.follow(idle_seconds=0.01, **QUICK)


def grow(rows: Rows, turn: Callable[[], Any]) -> None:
    """Two hundred more rows, of which some come before their checkpoints; `turn` is called before each round."""
    for number in range(2, 42):
        turn()
        rows.call(number, f"early {number}")
        rows.call(number - 1, f"other {number}")
        rows.put(number, run=1)
        rows.call(number, f"late {number}")
        rows.event("note.taken", 1, id=number)


def test_l48_a_follower_misses_nothing_that_comes_while_it_reads(rows: Rows, reader: Reader) -> None:
    """Writers and follower take turns as they like; it gets what a reader finds afterwards, with the same numbers."""
    rows.begun()

    def write() -> None:
        grow(rows, lambda: None)
        rows.connection.execute(
            "UPDATE run SET status = 'succeeded', ended_us = 1, last_id = ? WHERE run = 1", [cid(9999)]
        )

    writer = threading.Thread(target=write)
    writer.start()
    followed = reader.follow("run 1", **QUICK)
    writer.join()

    assert reader.events("run 1", limit=1000) == followed
    assert 161 == len(followed)


def test_l48_a_follower_of_everything_sees_the_same(rows: Rows, reader: Reader) -> None:
    rows.begun()
    writer = threading.Thread(target=grow, args=(rows, lambda: None))
    writer.start()
    followed = reader.follow(count=161, **QUICK)
    writer.join()

    assert named(reader.events(limit=1000)) == named(followed)


def test_l48_a_long_run_is_followed_page_by_page(rows: Rows, reader: Reader) -> None:
    """More events than a follower reads at a time, all of them once."""
    rows.begun()
    for number in range(1000):
        rows.event("note.taken", number=number)

    assert list(range(1, 1002)) == [event.run_seq for event in reader.follow("run 1", idle_seconds=0)]
    assert 1001 == len(reader.follow(idle_seconds=0))


def test_l48_a_run_of_the_engine_is_followed_by_what_is_its_own(rows: Rows, reader: Reader) -> None:
    """From now on, if that is asked for; what others log meanwhile is not looked at, however much it is."""
    rows.begun(2, thread="u")
    database = reader.ledger.database
    number = database.transact(runs.begin_apart, run_id="run 9", thread_id="own", now_us=1)
    rows.event("note.taken", number, thread="own")
    rest = database.read(from_now, "run 9")
    for _ in range(5_000):
        rows.event("note.taken", 2, thread="u")
    news = [rows.event("note.taken", number, thread="own") for _ in range(300)]
    first = database.read(advance, rest)
    second = database.read(advance, first.rest)

    assert (256, True, 44, False) == (len(first.events), first.more, len(second.events), second.more)
    found = [*first.events, *second.events]
    assert ([behind(seq) for seq in news], list(range(3, 303))) == (
        [each.cursor for each in found],
        [each.run_seq for each in found],
    )
    assert found == reader.events("run 9", after=behind(news[0]) - 1, limit=1000)


def test_l48_a_follower_ends_when_its_run_is_deleted(rows: Rows, reader: Reader) -> None:
    rows.begun()
    events = reader.follow("run 1", count=1)
    rows.connection.execute("DELETE FROM run")

    assert 1 == len(events)
    with pytest.raises(NotFound):
        reader.follow("run 1")


def descriptors(path: Path) -> int:
    """How often this process has the file open. (SQLite keeps one that was closed for the next that is opened.)"""
    links = Path("/proc/self/fd")
    if not links.exists():
        pytest.skip("needs /proc")
    return sum(os.path.realpath(link) == str(path.resolve()) for link in links.iterdir())


def test_l48_closing_a_follower_closes_its_connection(rows: Rows, reader: Reader) -> None:
    two_runs(rows)
    reader.follow(count=2)
    before = descriptors(rows.path)
    for _ in range(3):
        reader.follow(count=2)

    assert before == descriptors(rows.path)


def test_l48_a_follower_holds_no_lock_while_its_caller_works(rows: Rows, form: str) -> None:
    """A writer commits between two events, and the log can be folded into the file."""
    two_runs(rows)
    with RunLedger(rows.path) as ledger:
        events = ledger.follow(**QUICK)
        next(events)
        rows.event("note.taken")

        assert 0 == rows.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        events.close()


async def test_l48_a_cancelled_follower_closes_its_connection(rows: Rows) -> None:
    async with RunLedger(rows.path) as ledger:
        async for _ in ledger.afollow(idle_seconds=0):
            pass
        before = descriptors(rows.path)
        heard = asyncio.Event()

        async def listen() -> None:
            heard.set()
            async for _ in ledger.afollow(**QUICK):
                pass

        listener = asyncio.create_task(listen())
        await heard.wait()
        await asyncio.sleep(0.05)
        listener.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listener
        await asyncio.get_running_loop().shutdown_asyncgens()

        assert before == descriptors(rows.path)


def test_l48_a_database_in_memory_is_followed_by_reading_it(form: Any, loop: asyncio.AbstractEventLoop) -> None:
    """It has no second connection that could look for changes."""
    with LedgerSaver(":memory:") as saver:
        saver.put(config(), checkpoint(cid(1), {"a": 1}), metadata(), {"a": 1})
        reader = Reader(RunLedger(saver.database), form, loop)

        assert reader.events() == reader.follow(idle_seconds=0.01, **QUICK)


BAD: dict[str, dict[str, Any]] = {
    "a negative cursor": {"after": -1},
    "a cursor that is no number": {"after": "1"},
    "no pause": {"poll_seconds": 0},
    "a pause that is no number": {"poll_seconds": "1"},
    "a pause without end": {"poll_seconds": float("inf")},
    "a silence that is no number": {"idle_seconds": float("nan")},
    "a silence before it began": {"idle_seconds": -1},
    "a run that is no text": {"run_id": 7},
}


@pytest.mark.parametrize("case", BAD)
def test_a_follower_that_could_not_follow_is_refused_at_once(reader: Reader, case: str) -> None:
    """When it is asked for, not when it is first listened to."""
    for follow in (reader.ledger.follow, reader.ledger.afollow):
        with pytest.raises(InvalidArgument):
            follow(**BAD[case])


@pytest.mark.parametrize("bad", [{"after": -1}, {"limit": 0}, {"after": True}, {"limit": None}, {"after": 2**63}])
def test_a_page_that_could_not_be_is_refused(reader: Reader, bad: dict[str, Any]) -> None:
    for read in (reader.events, lambda **given: reader.errors("run 1", **given)):
        with pytest.raises(InvalidArgument):
            read(**bad)


def test_a_run_that_is_not_there_has_no_events_to_page_or_follow(reader: Reader) -> None:
    for read in (reader.events, reader.follow, reader.errors):
        with pytest.raises(NotFound):
            read("nobody")


def test_a_closed_ledger_is_not_followed(rows: Rows, reader: Reader) -> None:
    reader.close()
    with pytest.raises(StoreError) as caught:
        reader.follow()

    assert "closed" == caught.value.code
