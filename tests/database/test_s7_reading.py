"""S7: reads see what was acknowledged, on connections that cannot write and stand in nobody's way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from langgraph_ext.database import Database
from langgraph_ext.errors import StoreError
from tests.database.notes import Slow, add, fail, notes


@pytest.fixture
def stored(database: Database) -> Database:
    """A database with the note "before"."""
    database.transact(add, "before")
    return database


def test_s7_a_read_cannot_write(stored: Database) -> None:
    """A transaction function given to the wrong door is refused with an error of ours, and nothing is written."""
    with pytest.raises(StoreError):
        stored.read(add, "after")
    with pytest.raises(StoreError):
        asyncio.run(stored.aread(add, "after"))

    assert ["before"] == stored.read(notes)


def test_s7_what_was_acknowledged_is_read_at_once(database: Database) -> None:
    """In the same thread, in another one, and on a loop."""
    with ThreadPoolExecutor(1) as pool:
        for n in range(20):
            database.transact(add, str(n))
            expected = [str(each) for each in range(n + 1)]
            assert expected == database.read(notes) == pool.submit(database.read, notes).result(20)
            assert expected == asyncio.run(database.aread(notes))


async def test_s7_what_a_coroutine_was_acknowledged_it_reads_at_once(database: Database) -> None:
    for n in range(20):
        await database.atransact(add, str(n))
        assert [str(each) for each in range(n + 1)] == await database.aread(notes) == database.read(notes)


def test_s7_a_reader_stops_no_writer(stored: Database, pool: ThreadPoolExecutor) -> None:
    """While a long read is open, many writes are committed, more than the log keeps between two check-points."""
    slow = Slow()
    reading = pool.submit(stored.read, slow)
    assert slow.looked.wait(20)
    for n in range(300):
        stored.transact(add, *(f"{n} {'x' * 2000}" for _ in range(10)))
    slow.go_on.set()

    assert (["before"], ["before"]) == reading.result(20)
    assert 3001 == len(stored.read(notes))


async def test_s7_a_read_is_one_snapshot(stored: Database) -> None:
    """What is committed in between is not seen until the next read."""
    slow = Slow()
    reading = asyncio.ensure_future(stored.aread(slow))
    while not slow.looked.is_set():
        await asyncio.sleep(0)
    await stored.atransact(add, "between")
    slow.go_on.set()

    assert (["before"], ["before"]) == await reading
    assert ["before", "between"] == await stored.aread(notes)


def test_s7_a_writer_stops_no_reader(stored: Database, gated: Any) -> None:
    """While a transaction stands inside the lane, reads are answered, without what is not committed."""
    with gated():
        assert ["before"] == stored.read(notes)
        assert ["before"] == asyncio.run(stored.aread(notes))

    assert ["before", "gate"] == stored.read(notes)


def test_s7_another_programs_lock_stops_no_reader(stored: Database, locked: Any) -> None:
    """While somebody else holds the write lock, reads are answered at once."""
    with locked():
        assert ["before"] == stored.read(notes) == asyncio.run(stored.aread(notes))


def test_s7_a_read_that_fails_harms_no_later_one(stored: Database) -> None:
    """Its error reaches its caller, in both forms; the connection is used again and holds no old snapshot."""
    for n in range(20):
        with pytest.raises(KeyError, match="mine"):
            stored.read(fail, KeyError("mine"))
        with pytest.raises(KeyError, match="mine"):
            asyncio.run(stored.aread(fail, KeyError("mine")))
        stored.transact(add, str(n))
        assert 2 + n == len(stored.read(notes)) == len(asyncio.run(stored.aread(notes)))


async def test_s7_cancelling_a_read_holds_no_other_one_up(stored: Database) -> None:
    """The reader thread finishes what it has begun, and goes on with the next."""
    slow = Slow()
    reading = asyncio.ensure_future(stored.aread(slow))
    while not slow.looked.is_set():
        await asyncio.sleep(0)
    reading.cancel()
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert ["before"] == await stored.aread(notes)


def test_s7_many_threads_read_and_write_at_once(stored: Database, pool: ThreadPoolExecutor) -> None:
    """More readers than connections are kept: each sees its own writes, nobody waits for ever."""

    def work(name: str) -> bool:
        seen = []
        for n in range(10):
            stored.transact(add, f"{name} {n}")
            seen.append([text for text in stored.read(notes) if text.startswith(f"{name} ")])
        return seen == [[f"{name} {each}" for each in range(n + 1)] for n in range(10)]

    assert [True] * 32 == list(pool.map(work, map(str, range(32)), timeout=60))
