"""S7: closing lets what was begun finish, refuses the rest, and never crashes anybody."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database, open_database
from langgraph_ext.errors import StoreError
from tests.database import children
from tests.database.notes import Counting, Slow, add, notes, open_notes, until, until_begun, until_waiting
from tests.support.faults import run

CALLS = {
    "transact": lambda database: database.transact(notes),
    "read": lambda database: database.read(notes),
    "atransact": lambda database: asyncio.run(database.atransact(notes)),
    "aread": lambda database: asyncio.run(database.aread(notes)),
    "open": lambda database: database.open(),
}


@pytest.mark.parametrize("call", CALLS)
def test_s7_a_closed_database_refuses_every_call(database: Database, call: str) -> None:
    """A typed error that says so, and not one from the depths of the driver."""
    database.transact(add, "a")
    asyncio.run(database.aread(notes))
    database.close()
    with pytest.raises(StoreError, match="closed") as caught:
        CALLS[call](database)

    assert ("closed", False) == (caught.value.code, caught.value.retryable)


def test_s7_closing_twice_is_closing_once(database: Database) -> None:
    """Also from several threads at once, in both forms, and without ever having been opened."""
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(database.close) for _ in range(4)]:
            assert done.result(20) is None
    asyncio.run(database.aclose())
    database.close()


def test_s7_closing_what_was_never_opened_makes_no_file(path: Path) -> None:
    open_database(path).close()

    assert not path.exists()


async def test_s7_closing_lets_what_is_queued_finish(path: Path, locked: Any) -> None:
    """Calls that wait when `close` begins are committed and answered; only later ones are refused."""
    database = open_notes(path)
    with locked():
        asked = [asyncio.ensure_future(database.atransact(add, str(n))) for n in range(20)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(database.aclose())
        while not database._lane._closed:
            await asyncio.sleep(0)
        with pytest.raises(StoreError, match="closed"):
            await database.atransact(add, "late")
    await closing

    assert [path] == list(path.parent.iterdir()), "a connection is still open"
    assert [(str(n),) for n in range(20)] == await asyncio.gather(*asked)
    assert [str(n) for n in range(20)] == open_notes(path).read(notes)


def test_s7_closing_waits_for_threads_that_are_inside(
    database: Database, counting: type[Counting], path: Path, pool: ThreadPoolExecutor, locked: Any
) -> None:
    """As in the async form."""
    with locked():
        first = pool.submit(database.transact, add, "first")
        until_begun(counting)
        others = [pool.submit(database.transact, add, str(n)) for n in range(10)]
        until_waiting(database, 10)
        closing = pool.submit(database.close)
        until(lambda: database._lane._closed, "closing begins")
    closing.result(20)

    assert [path] == list(path.parent.iterdir()), "a connection is still open"
    assert ["first", *map(str, range(10))] == [text for each in (first, *others) for text in each.result(20)]
    assert 11 == len(open_notes(path).read(notes))


def test_s7_a_read_that_is_going_on_is_finished_and_then_closed(database: Database, path: Path, pool: Any) -> None:
    """`close` does not wait for a reader in another thread and takes nothing from it; its connection goes with it."""
    database.transact(add, "a")
    slow = Slow()
    reading = pool.submit(database.read, slow)
    assert slow.looked.wait(20)
    database.close()
    slow.go_on.set()

    assert (["a"], ["a"]) == reading.result(20)
    assert [path] == list(path.parent.iterdir()), "a connection is still open"


@pytest.mark.parametrize("round", range(6))
def test_s7_closing_under_full_load_never_crashes(path: Path, round: int) -> None:
    """Eight threads write, two read and two loops do both while it is closed: all get `closed`, all they were
    acknowledged is stored, and the interpreter lives (closing a busy connection crashes CPython)."""
    report = run(children.close_under_load, str(path), round).value()

    assert [["closed"] * 12, [], True] == [report["ends"], report["lost"], report["sound"]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # CPython 3.13: unclosed connection
def test_s7_forgetting_a_database_ends_its_threads(path: Path) -> None:
    """No `close`, no reference left: its threads end by themselves, and what was acknowledged is stored."""
    before = set(threading.enumerate())
    database = open_notes(path)
    asyncio.run(database.atransact(add, "a"))
    assert ["a"] == asyncio.run(database.aread(notes))
    mine = set(threading.enumerate()) - before
    assert mine
    del database
    gc.collect()
    until(lambda: not any(thread.is_alive() for thread in mine), "its threads end")

    assert ["a"] == open_notes(path).read(notes)


def test_s7_a_program_may_end_without_closing(path: Path) -> None:
    """Threads of ours hold no process back: it ends at once, with status 0, and nothing is lost."""
    ended = run(children.leave_without_closing, str(path), timeout=10)

    assert 0 == ended.exitcode
    assert ["sync", "async"] == open_notes(path).read(notes)
