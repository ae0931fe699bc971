"""Scenario 14: paused listings, sync calls inside the loop, several loops, several savers on one file."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata, whole
from tests.support.compare import facts
from tests.support.crowd import together
from tests.support.driver import Driver
from tests.support.server import ServerAdapter

STEPS = 6


class State(TypedDict):
    """How far a run has come."""

    log: Annotated[list[int], operator.add]


def count(state: State) -> State:
    return {"log": [len(state["log"])]}


def counting(saver: Any) -> Any:
    """A graph that takes STEPS steps and logs each; every run goes on where the last one ended."""
    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: END if len(state["log"]) % STEPS == 0 else "count")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("writer", ["the same saver", "another saver"])
async def test_scenario_14_a_paused_alist_lets_a_run_write(
    saver: LedgerSaver, backend: SqliteBackend, writer: str
) -> None:
    """A run starts and ends while a listing is paused at its first item; then the listing goes on where it was."""
    graph = counting(saver if writer == "the same saver" else backend.open())
    await graph.ainvoke({"log": []}, whole())
    before = [item.checkpoint["id"] async for item in saver.alist(whole())]
    listing = saver.alist(whole())
    seen = [(await anext(listing)).checkpoint["id"]]
    result = await asyncio.wait_for(graph.ainvoke({"log": []}, whole()), 60)
    seen += [item.checkpoint["id"] async for item in listing]

    assert ([*range(2 * STEPS)], before) == (result["log"], seen)
    assert 2 * len(before) == len([item async for item in saver.alist(whole())])


async def test_scenario_14_many_paused_listings_let_a_run_write(saver: LedgerSaver) -> None:
    """Also when more readers pause than there are threads to read with; each one ends with the same answer."""
    graph = counting(saver)
    await graph.ainvoke({"log": []}, whole())
    before = [item.checkpoint["id"] async for item in saver.alist(whole())]
    listings = [saver.alist(whole(), limit=len(before)) for _ in range(40)]
    firsts = [(await anext(listing)).checkpoint["id"] for listing in listings]
    await asyncio.wait_for(graph.ainvoke({"log": []}, whole()), 60)
    rests = [[item.checkpoint["id"] async for item in listing] for listing in listings]

    assert [before[0]] * 40 == firsts
    assert [before[1:]] * 40 == rests


async def test_scenario_14_sync_calls_work_inside_the_loop(saver: LedgerSaver) -> None:
    """A node or a notebook cell may call `put` in the running loop, also while async calls of it are under way."""
    under_way = [
        asyncio.create_task(saver.aput(config("a"), checkpoint(cid(n), {"n": n}), metadata(n), {"n": 1}))
        for n in range(10)
    ]
    await asyncio.sleep(0)
    for n in range(10):
        saver.put(config("s"), checkpoint(cid(n), {"n": n}), metadata(n), {"n": 1})
        saver.put_writes(config("s", id=cid(n)), [("n", -n)], "task")
        assert [("task", "n", -n)] == saver.get_tuple(config("s")).pending_writes  # type: ignore[union-attr]
    await asyncio.gather(*under_way)

    for thread in ("a", "s"):
        assert [cid(n) for n in range(9, -1, -1)] == [item.checkpoint["id"] for item in saver.list(config(thread))]


async def test_scenario_14_a_sync_graph_runs_inside_the_loop(saver: LedgerSaver) -> None:
    """`graph.invoke` in a Jupyter cell: the loop stands still meanwhile, and nothing waits for it."""
    graph = counting(saver)
    waiting = asyncio.create_task(graph.ainvoke({"log": []}, whole("waiting")))
    await asyncio.sleep(0)
    for durability in ("sync", "async", "exit"):
        assert [*range(STEPS)] == graph.invoke({"log": []}, whole(durability), durability=durability)["log"]
        assert [*range(STEPS)] == graph.get_state(whole(durability)).values["log"]

    assert [*range(STEPS)] == (await asyncio.wait_for(waiting, 60))["log"]


def test_scenario_14_two_loops_share_one_saver(saver: LedgerSaver) -> None:
    """Runs in two event loops in two threads, at the same time, over one object."""
    graph = counting(saver)

    async def runs(name: str) -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke({"log": []}, whole(f"{name}{n}")) for n in range(8)))

    results = together(lambda: asyncio.run(runs("a")), lambda: asyncio.run(runs("b")))

    assert [[{"log": [*range(STEPS)]}] * 8] * 2 == results
    assert 16 == len({item.config["configurable"]["thread_id"] for item in saver.list(None)})


def test_scenario_14_one_saver_outlives_its_loops(saver: LedgerSaver) -> None:
    """One event loop after the other, as scripts and tests make them: the object belongs to none of them."""
    graph = counting(saver)
    for n in range(1, 6):
        assert [*range(n * STEPS)] == asyncio.run(graph.ainvoke({"log": []}, whole()))["log"]

    assert 5 * (STEPS + 2) == len(list(saver.list(whole())))


def test_scenario_14_threads_and_loops_share_one_saver(saver: LedgerSaver) -> None:
    """Sync runs in four threads and async runs in two loops, at once, half of them on threads of others' making."""
    graph = counting(saver)

    async def in_loop(name: str) -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke({"log": []}, whole(f"{name}{n}")) for n in range(4)))

    def in_thread(name: str) -> list[Any]:
        return [graph.invoke({"log": []}, whole(f"{name}{n}"), durability=("sync", "async")[n % 2]) for n in range(4)]

    jobs = [lambda n=n: in_thread(f"t{n}-") for n in range(4)]
    jobs += [lambda n=n: asyncio.run(in_loop(f"l{n}-")) for n in range(2)]

    assert [[{"log": [*range(STEPS)]}] * 4] * 6 == together(*jobs)
    for n in range(4):
        assert [*range(STEPS)] == graph.get_state(whole(f"l1-{n}")).values["log"]


def test_scenario_14_the_server_opens_several_savers_on_one_file(backend: SqliteBackend, saver: LedgerSaver) -> None:
    """With isolated loops the API server opens one saver a loop: runs go on side by side, each in string versions."""

    async def serve(name: str) -> list[list[int]]:
        async with LedgerSaver(backend.url()) as own:
            graph = counting(ServerAdapter(own, run_id=f"run {name}"))
            for _ in range(2):
                results = await asyncio.gather(*(graph.ainvoke({"log": []}, whole(f"{name}{n}")) for n in range(3)))
            return [result["log"] for result in results]

    assert [[[*range(2 * STEPS)]] * 3] * 4 == together(*(lambda n=n: asyncio.run(serve(f"s{n}-")) for n in range(4)))
    for item in saver.list(whole("s0-0")):
        assert {"str"} == {type(version).__name__ for version in item.checkpoint["channel_versions"].values()}
        assert ("run s0-", "agent") == (item.metadata["run_id"], item.metadata["graph_id"])  # type: ignore[typeddict-item]
        assert "langgraph_auth_user_id" not in item.metadata


async def test_scenario_14_the_server_goes_on_with_a_thread_begun_elsewhere(saver: LedgerSaver) -> None:
    """A thread of a notebook is continued by the server, which makes versions of its own, and by the notebook again."""
    ours, theirs = counting(saver), counting(ServerAdapter(saver, run_id="r"))
    await ours.ainvoke({"log": []}, whole())
    await theirs.ainvoke({"log": []}, whole())
    result = await ours.ainvoke({"log": []}, whole())

    assert [*range(3 * STEPS)] == result["log"]
    assert 3 * (STEPS + 2) == len([item async for item in saver.alist(whole())])


async def test_scenario_14_the_server_rolls_a_run_back(saver: LedgerSaver) -> None:
    """`multitask_strategy="rollback"`: the run's checkpoints go, the state is that before the run, and it goes on."""
    await counting(ServerAdapter(saver, run_id="first")).ainvoke({"log": []}, whole())
    before = [facts(item) async for item in saver.alist(whole())]
    second = ServerAdapter(saver, run_id="second")
    await counting(second).ainvoke({"log": []}, whole())
    for _ in range(3):
        await second.adelete_for_runs(["second"])

    assert before == [facts(item) async for item in saver.alist(whole())]
    third = counting(ServerAdapter(saver, run_id="third"))
    assert [*range(2 * STEPS)] == (await third.ainvoke({"log": []}, whole()))["log"]


async def test_s1_thousands_of_calls_at_once_are_all_answered(saver: LedgerSaver) -> None:
    """A fan-out of any width: calls queue up and are committed in groups; none is lost, none refused."""
    calls = [saver.aput_writes(config(id=cid(1)), [("a", n)], f"task {n:05}", f"~{n:05}") for n in range(3000)]
    await asyncio.wait_for(asyncio.gather(*calls), 90)
    await saver.aput(config(), checkpoint(cid(1)), metadata(), {})

    found = await saver.aget_tuple(config())
    assert found is not None
    assert [(f"task {n:05}", "a", n) for n in range(3000)] == found.pending_writes


async def test_s1_a_cancelled_call_harms_nobody(saver: LedgerSaver) -> None:
    """A cancelled await leaves its write done or not done, whole; calls beside it and after it are served."""
    batch = [("a", 1), ("b", 2)]
    tasks = [asyncio.create_task(saver.aput_writes(config(id=cid(1)), batch, f"task {n:02}")) for n in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await saver.aput(config(), checkpoint(cid(1)), metadata(), {})
    found = await saver.aget_tuple(config())

    assert found is not None
    written = [task for task, _, _ in found.pending_writes or []]
    assert {f"task {n:02}" for n in range(1, 40, 2)} <= set(written)
    assert written == [task for task in sorted(set(written)) for _ in batch]


def test_s1_savers_in_several_threads_share_one_file(backend: SqliteBackend, store: Driver) -> None:
    """Eight savers in eight threads put to one thread of their own and write to one checkpoint of all."""
    store.save(cid(0), thread="common")

    def work(name: str) -> list[str]:
        own = backend.open()
        for n in range(12):
            own.put(config(name, id=cid(n)), checkpoint(cid(n + 1), {"n": n}, {"n": n}), metadata(n), {"n": n})
            own.put_writes(config("common", id=cid(0)), [("n", n)], f"{name} {n}")
        return [item.checkpoint["id"] for item in own.list(config(name))]

    answers = together(*(lambda n=n: work(f"t{n}") for n in range(8)))
    assert [[cid(n) for n in range(12, 0, -1)]] * 8 == answers
    assert sorted(f"t{t} {n}" for t in range(8) for n in range(12)) == [
        task for task, _, _ in store.writes(thread="common")
    ]


def test_s1_one_checkpoint_is_written_by_threads_and_loops_at_once(saver: LedgerSaver, store: Driver) -> None:
    """Each regular slot has one winner, each special slot a value that was written last by somebody."""
    store.save(cid(1))
    batch = [("a", "{}"), ("__interrupt__", "{}"), ("b", "{}")]

    def in_thread(name: str) -> None:
        for n in range(10):
            saver.put_writes(config(id=cid(1)), [(c, name) for c, _ in batch], f"task {n}")

    async def in_loop(name: str) -> None:
        await asyncio.gather(
            *(saver.aput_writes(config(id=cid(1)), [(c, name) for c, _ in batch], f"task {n}") for n in range(10))
        )

    together(
        *(lambda n=n: in_thread(f"t{n}") for n in range(3)),
        *(lambda n=n: asyncio.run(in_loop(f"l{n}")) for n in range(3)),
    )
    found = store.writes()
    assert [(f"task {n}", c) for n in range(10) for c in ("__interrupt__", "a", "b")] == [(t, c) for t, c, _ in found]
    for n in range(10):
        first, second = (value for task, channel, value in found if task == f"task {n}" and channel in "ab")
        assert first == second, "two calls shared the slots of one"


def test_s1_closing_is_safe_while_others_use_the_saver(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """Whoever comes too late gets `closed`; what was acknowledged before is stored, and nothing crashes."""
    saver = backend.open()
    forms(saver).save(cid(0))
    acknowledged: list[list[str]] = [[] for _ in range(4)]

    def in_thread(number: int) -> str:
        try:
            for n in range(1, 10_000):
                saver.put(config(f"t{number}"), checkpoint(cid(n)), metadata(n), {})
                acknowledged[number].append(cid(n))
                list(saver.list(config("t"), limit=3))
        except Exception as error:  # noqa: BLE001 - the test looks at whatever it is
            return getattr(error, "code", repr(error))
        return "never closed"

    def close() -> None:
        while not all(len(done) > 3 for done in acknowledged):
            saver.get_tuple(config())
        saver.close()

    *answers, _ = together(*(lambda n=n: in_thread(n) for n in range(4)), close)
    again = backend.open()
    assert ["closed"] * 4 == answers
    for n, done in enumerate(acknowledged):
        assert set(done) <= {item.checkpoint["id"] for item in again.list(config(f"t{n}"))}
