"""Durable calls that run side by side in one task: each is known again by what it is called with, not by its order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import AdmissionError
from langgraph_ext.nodes import Frame, durable, frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line
from tests.support.driver import Form


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


class Orders:
    """A tool that pays for an order, behind some other work; each try of the task gives that work its own time."""

    def __init__(self, acts: Acts, pauses: list[dict[str, float]], fails: str = "") -> None:
        self.acts, self.pauses, self.fails = acts, pauses, fails
        self.paid: list[str] = []
        self.tries = -1

    def _pay(self, order: str) -> str:
        receipt = frame().once("pay", {}, lambda key: (self.paid.append(order), f"paid {order}")[1])
        if self.fails == order:
            self.fails = ""
            raise Boom(order)
        return str(receipt)

    def app(self) -> Any:
        if self.acts.form == "sync":

            @durable(effect="write")
            def pay(order: str) -> str:
                return self._pay(order)

            @tool
            def buy(order: str) -> str:
                """Buy it."""
                time.sleep(self.pauses[self.tries].get(order, 0))
                return pay(order)
        else:

            @durable(effect="write")
            async def pay(order: str) -> str:
                return self._pay(order)

            @tool
            async def buy(order: str) -> str:
                """Buy it."""
                await asyncio.sleep(self.pauses[self.tries].get(order, 0))
                return await pay(order)  # type: ignore[misc,no-any-return]

        builder = StateGraph(MessagesState).add_node("tools", ToolNode([buy], handle_tool_errors=False))
        return builder.add_edge(START, "tools").compile(checkpointer=self.acts.saver)

    def run(self, app: Any, given: Any) -> None:
        self.tries += 1
        self.acts.run(app, given)

    def told(self, app: Any) -> dict[str, str]:
        messages = app.get_state(CONFIG).values["messages"][1:]
        return {each.tool_call_id: str(each.content) for each in messages}


def asked(*orders: str) -> Any:
    calls = [{"name": "buy", "args": {"order": order}, "id": f"call {order}"} for order in orders]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def test_l16_the_result_of_one_tool_call_is_never_given_to_another(acts: Acts) -> None:
    """One has succeeded, its neighbour failed; the next time they come in the other order."""
    orders = Orders(acts, [{"b": 0.15}, {"a": 0.15}], fails="b")
    app = orders.app()
    orders.run(app, asked("a", "b"))
    orders.run(app, None)

    assert {"call a": "paid a", "call b": "paid b"} == orders.told(app)
    assert ["a", "b"] == sorted(orders.paid)
    assert [] == acts.saver.ledger.verify()


def test_l29_two_tool_calls_are_two_parts_with_two_keys(acts: Acts) -> None:
    orders = Orders(acts, [{}])
    app = orders.app()
    orders.run(app, asked("a", "b"))

    assert {"call a": "paid a", "call b": "paid b"} == orders.told(app)
    assert 2 == len({each.key for each in acts.saver.ledger.effects()})
    assert [("tools", 1, "succeeded")] * 2 == acts.attempts()


def _calls(acts: Acts, inner: Any, given: Callable[[], Any]) -> Any:
    """A node that calls a durable function with what it is given."""
    if acts.form == "sync":
        return lambda state: inner(given())

    async def node(state: State) -> Any:
        return await inner(given())

    return node


def test_l28_a_call_whose_arguments_have_changed_does_not_act_anew(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell whether it is the same call: it is refused, until it comes as it was."""
    monkeypatch.setattr("langgraph_ext.nodes.door._WAIT_SECONDS", 0.1)
    paid: list[str] = []
    given = iter(["monday", "tuesday", "monday"])

    def body(frame: Frame) -> Any:
        told = frame.once("pay", {}, lambda key: (paid.append("paid"), "receipt")[1])
        if frame.number == 1:
            raise Boom("behind it")
        return {"log": [told]}

    app = line(acts.saver, a=_calls(acts, acts.node("a", body, effect="write"), lambda: next(given)))
    acts.run(app)
    with pytest.raises(AdmissionError, match="called in this task before with other arguments") as refusal:
        acts.run(app, None)
    acts.run(app, None)

    assert ("part_changed", ["paid"]) == (refusal.value.code, paid)
    assert ["in", "receipt"] == app.get_state(CONFIG).values["log"]


def test_l28_a_call_that_has_become_the_node_itself_does_not_act_anew(
    acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the other way round: somebody has changed the code since."""
    monkeypatch.setattr("langgraph_ext.nodes.door._WAIT_SECONDS", 0.1)
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, lambda key: (paid.append("paid"), "receipt")[1])
        raise Boom("behind it")

    node = acts.node("a", body, effect="write")
    ways = line(acts.saver, a=node), line(acts.saver, a=_calls(acts, node, lambda: "order"))
    for number, (before, after) in enumerate((ways, reversed(ways))):
        config = {"configurable": {"thread_id": str(number)}}
        acts.run(before, config=config)
        with pytest.raises(AdmissionError, match="make it the node itself"):
            acts.run(after, None, config)

    assert ["paid", "paid"] == paid


def test_l17_the_tasks_own_function_is_known_whatever_it_is_called_with(acts: Acts) -> None:
    """A resume may change the state that it sees."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        told = frame.once("pay", {}, lambda key: (paid.append("paid"), "receipt")[1])
        return {"log": [told, interrupt("sure?")]}

    app = line(acts.saver, a=acts.node("a", body, effect="write"))
    acts.run(app)
    acts.run(app, Command(resume="yes", update={"log": ["changed"]}))

    assert ["in", "changed", "receipt", "yes"] == app.get_state(CONFIG).values["log"]
    assert (["paid"], [("a", 1, "succeeded")]) == (paid, acts.attempts())


def test_l28_calls_that_nothing_tells_apart_do_not_run_side_by_side(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    """Two functions of one name, called with the same: after a crash each could be taken for the other."""
    acts = Acts(saver, "async", "sync", loop)
    parts = [acts.node(name) for name in ("first", "second")]

    async def both(state: State) -> Any:
        await asyncio.gather(*(part(state) for part in parts))

    with pytest.raises(AdmissionError, match="side by side") as refusal:
        acts.run(line(saver, both=both))

    assert "part_ambiguous" == refusal.value.code


class Opaque:
    """What no serializer knows."""


def test_l28_calls_with_what_cannot_be_encoded_do_not_run_side_by_side(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    acts = Acts(saver, "async", "sync", loop)
    part = acts.node("part")

    async def twice(state: State) -> Any:
        await asyncio.gather(part(Opaque()), part(Opaque()))

    async def in_turn(state: State) -> Any:
        return {"log": (await part(Opaque()))["log"] + (await part(Opaque()))["log"]}

    with pytest.raises(AdmissionError, match="JSON cannot hold"):
        acts.run(line(saver, twice=twice))
    other = {"configurable": {"thread_id": "other"}}
    acts.run(line(saver, in_turn=in_turn), config=other)

    assert [("in_turn", 1, "succeeded")] * 2 == acts.attempts()[-2:]
