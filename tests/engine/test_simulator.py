"""The simulator: schedules of several workers over a store that fails, and what must hold in all of them.

python -m tests.support.simulated 17        one seed, told
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from langgraph_ext.database import Database, open_database
from langgraph_ext.errors import StoreError
from tests.support.simulated.locks import circle
from tests.support.simulated.loop import PROCESS, VirtualLoop
from tests.support.simulated.planted import PLANTED
from tests.support.simulated.seeds import FOLDER, keep, load, shortened
from tests.support.simulated.store import FaultyStore
from tests.support.simulated.witness import Witness
from tests.support.simulated.world import events_of, simulate

SEEDS = 2000 if os.environ.get("LANGGRAPH_EXT_TEST_FULL") == "1" else 300
CHUNK = 20


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """Shared by all seeds, as opening it takes as long as one of them."""
    made = open_database(":memory:", fsync="normal")
    yield made
    made.close()


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_what_must_hold_holds_in_every_schedule(first: int, database: Database) -> None:
    """One that fails is made shorter, told, and becomes a file in tests/seeds."""
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed, database=database)
        if outcome.found:
            outcome = shortened(outcome, database)
            keep(outcome)
            pytest.fail(outcome.told())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_seed_that_has_failed_does_so_no_more(path: Path, database: Database) -> None:
    seed, events = load(path)
    outcome = simulate(seed, events, database=database)
    assert not outcome.found, outcome.told()


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, database: Database) -> None:
    """Within the seeds of `make test`."""
    with PLANTED[bug]():
        found = next((seed for seed in range(300) if simulate(seed, database=database).found), None)
    assert found is not None


def test_a_seed_is_the_same_schedule_each_time(database: Database) -> None:
    seed = next(seed for seed in range(300) if len(events_of(seed)) > 5)
    assert simulate(seed) == simulate(seed, database=database)


def test_a_failing_seed_is_kept_with_the_events_that_it_needs(tmp_path: Path, database: Database) -> None:
    with PLANTED["accepts an old epoch"]():
        failing = (simulate(seed, database=database) for seed in range(300))
        outcome = shortened(next(each for each in failing if each.found), database)
        seed, events = load(keep(outcome, tmp_path))
        assert simulate(seed, events, database=database).found
    assert 0 < len(events) < len(events_of(seed))
    assert not simulate(seed, events, database=database).found


def test_a_killed_process_runs_no_further_step() -> None:
    """Not even a `finally`."""
    loop, ran = VirtualLoop(Random(1), most=1000), []

    async def work() -> None:
        try:
            for number in range(100):
                ran.append(number)
                await asyncio.sleep(1)
        finally:
            ran.append(-1)

    token = PROCESS.set(7)
    loop.create_task(work())
    PROCESS.reset(token)
    loop.run_until(lambda: len(ran) == 3)
    loop.park(7)
    other = loop.create_task(asyncio.sleep(1000))
    loop.run_until(other.done)
    assert [0, 1, 2] == ran
    loop.bury()


def test_e3_rows_that_are_locked_in_another_order_are_found() -> None:
    root, task, operation = (1, "r"), (2, "t"), (3, "o")
    mixtures = range(20)
    assert any(circle([[task, operation], [operation, task]], Random(each)) for each in mixtures)
    assert not any(circle([[task, operation], [task, operation]], Random(each)) for each in mixtures)
    assert not any(circle([[root, task, operation], [root, operation, task]], Random(each)) for each in mixtures)


@pytest.mark.parametrize(("fault", "is_written"), [("abort", False), ("lost", True)])
def test_a_transaction_that_fails_is_written_or_not(fault: str, is_written: bool, database: Database) -> None:
    faults = iter([(fault, 0.0), None])
    loop, key = VirtualLoop(Random(1), most=1000), f"faulty {fault}"
    store = FaultyStore(database, Witness(Random(1)), lambda: next(faults), clock_us=lambda: 1, ids=lambda: "x")

    async def write() -> object:
        columns = {"digest": key, "descriptor": b"", "now_us": 1}
        with pytest.raises(StoreError):
            await store.transact(lambda tx: tx.run("agent_release_insert", **columns))
        return await store.read(lambda tx: tx.maybe("agent_release_get", digest=key))

    writing = loop.create_task(write())
    loop.run_until(writing.done)
    assert is_written == (writing.result() is not None)
