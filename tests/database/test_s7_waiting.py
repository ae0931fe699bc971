"""S7: whoever stops waiting (a cancelled await, Ctrl-C) loses nothing that has begun and holds nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.database import Database
from tests.database import children
from tests.database.notes import Counting, Gate, add, notes, open_notes, until_waiting
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.faults import KINDS, Points, faulty, run


async def test_s7_cancelling_an_await_does_not_undo_what_has_begun(database: Database) -> None:
    """The transaction is inside when its caller gives up: it is committed all the same, once."""
    gate = Gate()
    asked = asyncio.ensure_future(database.atransact(gate))
    while not gate.entered.is_set():
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    gate.open.set()

    assert ("next",) == await database.atransact(add, "next")
    assert ["gate", "next"] == await database.aread(notes)


async def test_s7_cancelling_awaits_in_the_queue_holds_nobody_up(database: Database, gated: Any) -> None:
    """Those behind and before them in the queue are committed, in order, once; the cancelled ones at most once."""
    with gated():
        asked = [asyncio.ensure_future(database.atransact(add, str(n))) for n in range(20)]
        await asyncio.sleep(0)
        until_waiting(database, 20)
        for each in asked[1::2]:
            each.cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    stored = await database.aread(notes)

    assert [(str(n),) for n in range(0, 20, 2)] == answers[::2]
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[1::2])
    assert ["gate", *(str(n) for n in range(0, 20, 2))] == [
        text for text in stored if text not in map(str, range(1, 20, 2))
    ]
    assert len(set(stored)) == len(stored)


async def test_s7_an_await_that_times_out_leaves_room_for_others(database: Database, locked: Any) -> None:
    """`asyncio.timeout` around a call while the file is busy: the next call works as soon as it is free."""
    with locked(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await database.atransact(add, "late")
    await database.atransact(add, "next")
    stored = await database.aread(notes)

    assert "next" in stored
    assert stored.count("late") <= 1


def test_s7_a_loop_that_is_gone_leaves_its_calls_committed(database: Database, locked: Any) -> None:
    """A loop is closed while its calls are under way (end of `asyncio.run`): nobody hangs, the next loop works."""

    async def ask() -> None:
        asked = [asyncio.ensure_future(database.atransact(add, str(n))) for n in range(5)]
        await asyncio.sleep(0)
        del asked

    loop = asyncio.new_event_loop()
    with locked():
        loop.run_until_complete(ask())
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()

    assert ("next",) == asyncio.run(database.atransact(add, "next"))
    assert "next" in database.read(notes)


class Unwilling(ThreadPoolExecutor):
    """A default executor whose threads are all held by waiting nodes."""

    def submit(self, *_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("something ran on the default executor")


async def test_s7_nothing_runs_on_the_default_executor(path: Path) -> None:
    """Nodes that wait may hold all of its threads; every async call works without it."""
    asyncio.get_running_loop().set_default_executor(Unwilling())
    saver = LedgerSaver(path)
    await saver.asetup()
    await saver.aput(config(), checkpoint(cid(1), {"a": 1}), metadata(run_id="r"), {"a": 1})
    await saver.aput_writes(config(id=cid(1)), [("a", 2)], "task")
    assert [("task", "a", 2)] == (await saver.aget_tuple(config())).pending_writes  # type: ignore[union-attr]
    assert 1 == len([item async for item in saver.alist(config())])
    await saver.aget_delta_channel_history(config=config(), channels=["a"])
    await saver.acopy_thread("t", "copy")
    await saver.aprune(["t"])
    await saver.adelete_for_runs(["r"])
    await saver.adelete_thread("copy")
    await saver.aclose()


async def test_s7_a_busy_lane_does_not_hold_the_event_loop(
    database: Database, counting: type[Counting], locked: Any
) -> None:
    """While the writer waits for a busy file, the loop goes on turning: it never waits itself (5 s, then an error)."""
    with locked():
        asked = [asyncio.ensure_future(database.atransact(add, str(n))) for n in range(50)]
        while counting.begins == 0:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not any(each.done() for each in asked)
    await asyncio.gather(*asked)

    assert 50 == len(await database.aread(notes))


@pytest.mark.parametrize("kind", KINDS)
def test_s7_ctrl_c_in_the_leader_costs_the_others_of_its_group_nothing(
    path: Path, pool: ThreadPoolExecutor, kind: str
) -> None:
    """The main thread commits for ten others as well when it is interrupted, before its commit or right after it: each
    of the ten is committed once and answered."""
    of_main = 1 if kind == "between" else 2  # after those of the gate
    points, gate = Points(_ctrl_c, kind=kind, at=of_main, armed=False), Gate()
    database = open_notes(path, connection=faulty(points))
    standing = pool.submit(database.transact, gate)
    assert gate.entered.wait(20)
    others = pool.submit(_queue_behind_and_open, database, pool, gate, points)
    with pytest.raises(KeyboardInterrupt):
        database.transact(add, "main")

    assert [(str(n),) for n in range(10)] == [each.result(20) for each in others.result(20)]
    standing.result(20)
    stored = database.read(notes)
    database.close()
    assert ["gate", *map(str, range(10))] == [text for text in stored if text != "main"]
    assert stored.count("main") == (kind == "after")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("kind", KINDS)
def test_s7_a_call_that_breaks_leaves_no_lock(path: Path, locked: Any, kind: str, error: type[BaseException]) -> None:
    """Wherever it breaks off, other programs can write at once, not only when this one writes again."""

    def strike() -> None:
        raise error

    points = Points(strike, kind=kind, at=1, armed=False)
    database = open_notes(path, connection=faulty(points))
    points.arm()
    with pytest.raises(error):
        database.transact(add, "broken")
    with locked():
        pass
    database.close()


def _ctrl_c() -> None:
    raise KeyboardInterrupt


def _queue_behind_and_open(database: Database, pool: ThreadPoolExecutor, gate: Gate, points: Points) -> list[Any]:
    """Ten calls behind the main thread's, which is next; then the gate opens, and the main thread leads them all."""
    until_waiting(database, 1)
    futures = []
    for n in range(10):
        futures.append(pool.submit(database.transact, add, str(n)))
        until_waiting(database, 2 + n)
    points.arm()
    gate.open.set()
    return futures


@pytest.mark.parametrize("form", ["sync", "company", "async"])
def test_s7_ctrl_c_again_and_again_neither_hangs_nor_halves(path: Path, form: str) -> None:
    """A storm of SIGINT on a committing main thread: what was acknowledged is stored whole, other threads go on."""
    report = run(children.commit_under_fire, str(path), form, 150).value()

    assert {"lost": [], "halves": [], "interrupted": True, "main": 150, "other": 150} == report


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="uses CPython's instructions")
@pytest.mark.parametrize("form", ["sync", "company"])
def test_s7_ctrl_c_at_any_instruction_of_a_commit_harms_nobody(path: Path, form: str) -> None:
    """Wherever in a commit it falls: nothing is half written, and other threads go on committing."""
    report = run(children.interrupt_everywhere, str(path), form, timeout=100).value()

    assert {"stuck": [], "halves": [], "lost": []} == report
