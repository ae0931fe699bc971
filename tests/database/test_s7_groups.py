"""S7: one queue, committed in groups: fewer syncs, the same promises for each call alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database, lane
from tests.database import children
from tests.database.notes import (
    Counting,
    add,
    add_in_company,
    fail,
    nobody_waits_long,
    notes,
    until_begun,
    until_waiting,
    waiting,
)
from tests.support.crowd import together
from tests.support.faults import run

NAMES = [f"n{number}" for number in range(40)]


@pytest.fixture
def submit(database: Database, pool: ThreadPoolExecutor) -> Callable[..., list[Any]]:
    """Calls from threads of their own, queued in this order behind whoever is in the lane; futures come back."""

    def queue(*calls: tuple[Any, ...]) -> list[Any]:
        futures = []
        for call in calls:
            before = waiting(database)
            futures.append(pool.submit(database.transact, *call))
            until_waiting(database, before + 1)
        return futures

    return queue


def test_s7_threads_that_wait_together_are_committed_together(
    database: Database, counting: type[Counting], pool: ThreadPoolExecutor, locked: Any
) -> None:
    """While one waits for the write lock the others queue up; they share the next commit, each with its own result."""
    with locked():
        first = pool.submit(database.transact, add, "first")
        until_begun(counting)
        futures = [pool.submit(database.transact, add, name) for name in NAMES]
        until_waiting(database, len(NAMES))

    assert ("first",) == first.result(20)
    assert [(name,) for name in NAMES] == [future.result(20) for future in futures]
    assert 2 == counting.commits


def test_s7_calls_are_committed_in_the_order_they_came(database: Database, submit: Any, gated: Any) -> None:
    """First in, first out, so that what happened before is stored before."""
    with gated():
        futures = submit(*((add, name) for name in NAMES))
    for future in futures:
        future.result(20)

    assert ["gate", *NAMES] == database.read(notes)


async def test_s7_coroutines_are_committed_in_the_order_they_came(database: Database) -> None:
    """As in the sync form."""
    await asyncio.gather(*(database.atransact(add, name) for name in NAMES))

    assert NAMES == await database.aread(notes)


@pytest.mark.parametrize("written", [(), ("half",)], ids=["before writing", "after writing"])
def test_s7_a_call_that_fails_in_a_group_fails_alone(
    database: Database, submit: Any, gated: Any, written: tuple[str, ...]
) -> None:
    """Its own error reaches its own caller, nothing of it is stored, and the others are committed exactly once."""
    with gated():
        futures = submit(
            (add, "a"),
            (fail, KeyError("mine"), *written),
            (add, "b"),
            (fail, OSError("mine too"), *written),
            (add, "c"),
        )
    with pytest.raises(KeyError, match="mine"):
        futures[1].result(20)
    with pytest.raises(OSError, match="mine too"):
        futures[3].result(20)

    assert [("a",), ("b",), ("c",)] == [futures[at].result(20) for at in (0, 2, 4)]
    assert ["gate", "a", "b", "c"] == database.read(notes)


def test_s7_a_failure_before_writing_costs_the_others_no_commit(
    database: Database, counting: type[Counting], submit: Any, gated: Any
) -> None:
    """A refused call (wrong input seen inside the transaction) does not make the group start over."""
    with gated():
        futures = submit((add, "a"), (fail, ValueError()), (add, "b"))
    assert [None, ValueError, None] == [future.exception(20) and type(future.exception()) for future in futures]

    assert 2 == counting.commits
    assert ["gate", "a", "b"] == database.read(notes)


async def test_s7_a_coroutine_that_fails_in_a_group_fails_alone(database: Database) -> None:
    """As in the sync form."""
    calls = [
        database.atransact(add, "a"),
        database.atransact(fail, KeyError("mine"), "half"),
        database.atransact(add, "b"),
    ]
    first, second, third = await asyncio.gather(*calls, return_exceptions=True)

    assert (("a",), ("b",)) == (first, third)
    assert isinstance(second, KeyError)
    assert ["a", "b"] == await database.aread(notes)


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("error", ["SystemExit", "GeneratorExit", "CancelledError"])
def test_s7_a_call_that_raises_no_ordinary_error_hangs_nobody(path: Path, form: str, error: str) -> None:
    """What a value's own code may raise inside (`sys.exit()`, a cancellation): its caller gets an answer, nothing of it
    is stored, and the next call of either form works."""
    report = run(children.raise_inside, str(path), form, error).value()

    assert "no answer" != report["answer"]
    assert (["sync", "async"], ["sync", "async"]) == (report["next"], report["stored"])


def test_s7_after_a_failure_the_lane_is_as_before(database: Database) -> None:
    """No lock is kept, no transaction left open, no half of it is carried along by the next commit."""
    for _ in range(3):
        with pytest.raises(KeyError):
            database.transact(fail, KeyError(), "half")
    database.transact(add, "whole")

    assert ["whole"] == database.read(notes)


def test_s7_threads_and_two_loops_use_one_database_at_once(database: Database) -> None:
    """Every call of every thread and loop is committed once, in the order of its own caller, with its own result."""

    def thread(name: str) -> list[Any]:
        return [database.transact(add, f"{name} {n}") for n in range(50)]

    async def calls(name: str) -> list[Any]:
        return await asyncio.gather(*(database.atransact(add, f"{name} {n}") for n in range(50)))

    names = ["t0", "t1", "t2", "l0", "l1"]
    jobs = [lambda n=n: thread(n) if n[0] == "t" else asyncio.run(calls(n)) for n in names]
    answers = together(*jobs)

    assert [[(f"{name} {n}",) for n in range(50)] for name in names] == answers
    stored = database.read(notes)
    assert [[f"{name} {n}" for n in range(50)] for name in names] == [
        [text for text in stored if text.startswith(name)] for name in names
    ]
    assert 250 == len(stored)


class Woken(asyncio.SelectorEventLoop):
    """An event loop that counts how often other threads wake it."""

    wakes = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> Any:
        self.wakes += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def test_s7_a_loop_is_woken_once_a_group(database: Database, counting: type[Counting], locked: Any) -> None:
    """A hundred coroutines that are committed together cost their loop one interruption, not a hundred."""

    async def calls() -> None:
        with locked():
            first = asyncio.ensure_future(database.atransact(add, "first"))
            await asyncio.sleep(0)
            until_begun(counting)
            others = [asyncio.ensure_future(database.atransact(add, str(n))) for n in range(100)]
            await asyncio.sleep(0)
            assert 100 == waiting(database)
        await asyncio.gather(first, *others)

    with asyncio.Runner(loop_factory=Woken) as runner:
        runner.run(calls())
        assert 2 == counting.commits == runner.get_loop().wakes  # type: ignore[attr-defined]
    assert 101 == len(database.read(notes))


def test_s7_a_group_is_bounded(
    database: Database, counting: type[Counting], submit: Any, gated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of a long queue does not wait for the last: groups of ten at most, here."""
    monkeypatch.setattr(lane, "_GROUP", 10)
    with gated():
        futures = submit(*((add, name) for name in NAMES[:35]))
    for future in futures:
        future.result(20)

    assert 1 + 4 == counting.commits
    assert ["gate", *NAMES[:35]] == database.read(notes)


async def test_s7_a_loop_has_a_bounded_number_of_calls_in_the_queue(
    database: Database, gated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backpressure: whoever asks faster than the disk answers waits his turn, and memory stays bounded."""
    monkeypatch.setattr(lane, "_OUTSTANDING", 8)
    with gated():
        asked = [asyncio.ensure_future(database.atransact(add, name)) for name in NAMES]
        for _ in range(500):
            await asyncio.sleep(0)
        assert 8 == waiting(database)
    await asyncio.gather(*asked)

    assert ["gate", *NAMES] == await database.aread(notes)


def test_s7_a_call_that_may_linger_shares_the_next_commit(
    database: Database, counting: type[Counting], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first waits a moment; the second leads, commits both, and neither waits any longer."""
    monkeypatch.setattr(lane, "_LINGER_SECONDS", 1.0)
    lingering = pool.submit(add_in_company, database, "writes")
    until_waiting(database, 1)
    assert ("put",) == database.transact(add, "put")

    assert ("writes",) == lingering.result(10)
    assert 1 == counting.commits
    assert ["writes", "put"] == database.read(notes)


@pytest.mark.parametrize("rouses", [False, True])
def test_s7_a_call_that_was_joined_sleeps_on_unless_somebody_waits_for_it(
    database: Database, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, rouses: bool
) -> None:
    """It is answered; it wakes up at the next commit, or at once when its run is over."""
    monkeypatch.setattr(lane, "_LINGER_SECONDS", 20.0)
    lingering = pool.submit(add_in_company, database, "writes")
    until_waiting(database, 1)
    database.submit(lambda tx: add(tx, "put"), rouses=rouses)

    assert ["writes", "put"] == database.read(notes)
    if not rouses:
        assert not lingering.done()
        database.transact(add, "next")
    assert ("writes",) == lingering.result(10)


async def test_s7_a_call_that_lingers_is_taken_along_by_a_coroutine(
    database: Database, counting: type[Counting], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Company is company, whichever door it comes through."""
    monkeypatch.setattr(lane, "_LINGER_SECONDS", 1.0)
    lingering = pool.submit(add_in_company, database, "writes")
    until_waiting(database, 1)
    await database.atransact(add, "put")

    assert ("writes",) == lingering.result(10)
    assert 1 == counting.commits


def test_s7_a_call_that_lingers_in_vain_is_committed_and_lingers_less_often(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, a call is committed after its wait; when company never comes, most calls no longer wait for it."""
    monkeypatch.setattr(lane, "_LINGER_SECONDS", 0.1)
    with nobody_waits_long(2.0):  # sixty waits of 0.1 s would take six
        for n in range(60):
            add_in_company(database, str(n))
    assert 60 == len(database.read(notes))
