"""Async nodes over LedgerSaver behave as over InMemorySaver: fan-outs, cancellation, streams that nobody reads on."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from tests.support.build import whole
from tests.support.stories import Teller

pytestmark = pytest.mark.parametrize("form", ["async"], indirect=True)


class State(TypedDict, total=False):
    """A log of what ran."""

    log: Annotated[list[Any], operator.add]


class Slow:
    """A node that waits until it is let go, the first time; tells when it was entered."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, state: State) -> State:
        self.calls += 1
        self.entered.set()
        if self.calls == 1:
            await self.go.wait()
        return {"log": [f"slow {self.calls}"]}


def with_slow_node(saver: Any) -> Any:
    """first → slow → last."""
    slow = Slow()

    async def first(state: State) -> State:
        return {"log": ["first"]}

    async def last(state: State) -> State:
        return {"log": [f"last {len(state['log'])}"]}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("slow", slow)
    builder.add_node("last", last)
    builder.add_edge(START, "first")
    builder.add_edge("first", "slow")
    builder.add_edge("slow", "last")
    graph = builder.compile(checkpointer=saver)
    graph.slow = slow  # type: ignore[attr-defined]
    return graph


def wide(saver: Any) -> Any:
    """Fifty async tasks that finish in an order of their own; two of them ask."""

    async def work(item: dict[str, int]) -> State:
        for _ in range(item["n"] * 7 % 5):
            await asyncio.sleep(0)
        return {"log": [[item["n"], interrupt(item["n"]) if item["n"] in (3, 44) else "done"]]}

    async def plan(state: State) -> State:
        return {"log": ["planned"]}

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("work", work)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in range(50)], ["work"])
    return builder.compile(checkpointer=saver)


def test_s1_async_tasks_fan_out_and_ask(both: Callable[..., Teller]) -> None:
    """Results come in the order in which they were sent, questions are answered by their ids."""

    def story(teller: Teller) -> None:
        teller.run({"log": []})
        ids = {item.value: item.id for item in teller.state().interrupts}
        teller.run(Command(resume={ids[3]: "three", ids[44]: "forty-four"}))

    log = both(wide, story).state().values["log"]
    assert [[n, {3: "three", 44: "forty-four"}.get(n, "done")] for n in range(50)] == log[1:]


def test_s1_a_cancelled_run_goes_on(both: Callable[..., Teller], durability: str) -> None:
    """A run is cancelled while a node waits: what was finished is stored, `ainvoke(None)` runs the node again."""

    async def cancelled(teller: Teller) -> None:
        run = asyncio.create_task(teller.graph.ainvoke({"log": ["in"]}, whole(), durability=durability))
        await teller.graph.slow.entered.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    def story(teller: Teller) -> None:
        teller.loop.run_until_complete(cancelled(teller))
        teller.look()
        teller.run(None)

    state = both(with_slow_node, story).state()
    assert (["in", "first", "slow 2", "last 3"], ()) == (state.values["log"], state.next)


def test_s1_a_stream_left_unread_goes_on(both: Callable[..., Teller], durability: str) -> None:
    """Whoever breaks off `astream` loses nothing that was finished; the run can be continued."""

    async def broken_off(teller: Teller) -> None:
        teller.graph.slow.go.set()
        stream = teller.graph.astream({"log": ["in"]}, whole(), stream_mode="updates", durability=durability)
        async for update in stream:
            if "first" in update:
                break
        await stream.aclose()

    def story(teller: Teller) -> None:
        teller.loop.run_until_complete(broken_off(teller))
        teller.look()
        teller.run(None)

    state = both(with_slow_node, story).state()
    assert (["in", "first"], ()) == (state.values["log"][:2], state.next)
