"""Cases: what is measured. A case opens a contestant on an empty database, does its work, checks it, and closes.

A  superstep cost      a linear graph: two saver calls a superstep and nothing else to do
B  chat growth         a list of messages that grows
BD the same            in a DeltaChannel, which stores what is added and now and then the whole
C  fan-out             many tasks in one superstep, each of which stores its writes
D  many at once        independent runs in threads (sync) or asyncio tasks (async)
E  raw operations      the saver's methods called directly (bench/raw.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Durability

from bench import graphs
from bench.driver import App, Driver, config_of
from bench.raw import OPERATIONS, operations
from bench.savers import Contestant, bytes_in
from bench.sizes import Size

__all__ = ["CASES", "DEFAULT_CASES", "Case", "Measure"]

_START = {"n": 0, "note": "hello"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One number that a case gives for a contestant."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that is measured."""

    letter: str
    title: str
    measures: tuple[Measure, ...]
    run: Callable[[Contestant, Path, Durability | None, Size], dict[str, float]]
    """Measures one contestant once, with its database in the given folder; a value for each measure's name."""
    durabilities: tuple[Durability | None, ...]
    """Which are run if none is asked for; `(None,)` where LangGraph's setting plays no part."""


def superstep(contestant: Contestant, folder: Path, durability: Durability | None, size: Size) -> dict[str, float]:
    with contestant.open(folder) as driver:
        app = graphs.linear(driver, size.nodes)
        begun_cpu = 0.0
        took = []
        for number in range(size.warm_ups + size.linear_runs):
            if number == size.warm_ups:
                begun_cpu = process_time()
            took.append(_run_linear(driver, app, durability, size.nodes))
        cpu = process_time() - begun_cpu
    steps = size.linear_runs * size.nodes
    return {
        "superstep": median(took[size.warm_ups :]) / size.nodes * 1e6,
        "CPU of a superstep": cpu / steps * 1e6,
    }


def chat_growth(
    contestant: Contestant, folder: Path, durability: Durability | None, size: Size, *, delta: bool = False
) -> dict[str, float]:
    body = graphs.prose()
    thread = config_of("chat")
    with contestant.open(folder) as driver:
        app = graphs.chat(driver, body, delta=delta)
        driver.invoke(app, {"messages": [HumanMessage(body())]}, config_of("warm-up"), durability)
        took = []
        for _ in range(size.turns):
            begun = perf_counter()
            driver.invoke(app, {"messages": [HumanMessage(body())]}, thread, durability)
            took.append(perf_counter() - begun)
        assert len(driver.state(app, thread)["messages"]) == 2 * size.turns
    some = max(1, min(10, size.turns // 4))
    early = min(5, size.turns - some)
    return {
        "turns 6 to 15": median(took[early : early + some]) * 1e3,
        "last 10 turns": median(took[-some:]) * 1e3,
        "all turns": sum(took),
        "on disk": bytes_in(folder) / 1e6,
    }


def fan_out(contestant: Contestant, folder: Path, durability: Durability | None, size: Size) -> dict[str, float]:
    with contestant.open(folder) as driver:
        app = graphs.fan_out(driver, size.tasks)
        took = []
        for _ in range(size.warm_ups + size.fan_out_runs):
            begun = perf_counter()
            final = driver.invoke(app, {"items": [], "out": []}, config_of(), durability)
            took.append(perf_counter() - begun)
            assert final["out"] == list(range(size.tasks))
    return {"task": median(took[size.warm_ups :]) / size.tasks * 1e6}


def many_at_once(contestant: Contestant, folder: Path, durability: Durability | None, size: Size) -> dict[str, float]:
    with contestant.open(folder) as driver:
        app = graphs.linear(driver, size.crowd_nodes)
        _run_linear(driver, app, durability, size.crowd_nodes)
        begun = perf_counter()
        took = driver.crowd(app, _START, durability, at_once=size.at_once, each=size.runs_each)
        elapsed = perf_counter() - begun
    return {
        "supersteps": len(took) * size.crowd_nodes / elapsed,
        "median run": median(took) * 1e3,
        "slowest run": max(took) * 1e3,
    }


def _run_linear(driver: Driver, app: App, durability: Durability | None, nodes: int) -> float:
    begun = perf_counter()
    final: dict[str, Any] = driver.invoke(app, _START, config_of(), durability)
    took = perf_counter() - begun
    assert final["n"] == nodes
    return took


_GROWTH = (
    Measure("turns 6 to 15", "ms"),
    Measure("last 10 turns", "ms"),
    Measure("all turns", "s"),
    Measure("on disk", "MB"),
)

CASES = {
    case.letter: case
    for case in (
        Case(
            letter="A",
            title="superstep cost: a linear graph of 50 nodes",
            measures=(Measure("superstep", "µs"), Measure("CPU of a superstep", "µs")),
            run=superstep,
            durabilities=("sync", "async"),
        ),
        Case(
            letter="B",
            title="chat growth: 200 turns in one thread, two messages of 1 KB a turn",
            measures=_GROWTH,
            run=chat_growth,
            durabilities=("async",),
        ),
        Case(
            letter="BD",
            title="chat growth with a DeltaChannel: the same turns",
            measures=_GROWTH,
            run=partial(chat_growth, delta=True),
            durabilities=("async",),
        ),
        Case(
            letter="C",
            title="fan-out: 100 tasks by `Send`",
            measures=(Measure("task", "µs"),),
            run=fan_out,
            durabilities=("async",),
        ),
        Case(
            letter="D",
            title="32 at once, each two runs of 20 supersteps",
            measures=(Measure("supersteps", "/s"), Measure("median run", "ms"), Measure("slowest run", "ms")),
            run=many_at_once,
            durabilities=("async",),
        ),
        Case(
            letter="E",
            title="raw operations: 1,000 threads beside a thread of 2,000 checkpoints of 6 KB",
            measures=tuple(Measure(operation, "µs") for operation in OPERATIONS),
            run=operations,
            durabilities=(None,),
        ),
    )
}

DEFAULT_CASES = ("A", "B", "BD", "C", "D", "E")
