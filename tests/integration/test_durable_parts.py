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
from langgraph_ext.errors import AdmissionError, RecoveryRequired
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


class Retrying:
    """A node that calls a durable function again when that has raised, as an application's own retry loop does."""

    def __init__(self, acts: Acts, body: Callable[[Frame], Any], *, swallows: Any = Boom, **options: Any) -> None:
        self.inner, self.swallows, self.acts = acts.node("inner", body, **options), swallows, acts

    def call(self, given: Any, times: int) -> Any:
        for _ in range(times - 1):
            try:
                return self.inner(given)
            except self.swallows:
                continue
        return self.inner(given)

    async def acall(self, given: Any, times: int) -> Any:
        for _ in range(times - 1):
            try:
                return await self.inner(given)
            except self.swallows:
                continue
        return await self.inner(given)

    def node(self, times: int = 2, given: Any = "order") -> Any:
        if self.acts.form == "sync":
            return lambda state: self.call(given, times)

        async def node(state: State) -> Any:
            return await self.acall(given, times)

        return node


def lost(paid: list[str]) -> Callable[[Frame], Any]:
    """A body whose payment may have happened or not."""

    def call(key: str) -> Any:
        paid.append(key)
        raise Boom("lost")

    return lambda frame: frame.once("pay", {}, call)


@pytest.mark.parametrize("swallows", [Boom, Exception])
def test_l20_a_call_that_is_made_again_does_not_act_beside_its_own_doubt(acts: Acts, swallows: Any) -> None:
    """In the same try, too. A refusal is swallowed by some loops as well: the call stays what it was."""
    paid: list[str] = []
    app = line(acts.saver, a=Retrying(acts, lost(paid), effect="write", swallows=swallows).node(times=4))
    for given in (("in",), None):
        with pytest.raises(RecoveryRequired):
            acts.run(app, given)

    assert (1, [("a", 1, "failed")]) == (len(paid), acts.attempts())


def test_l22_a_call_that_is_made_again_is_the_next_attempt(acts: Acts) -> None:
    """What it did before it raised is not repeated."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, paid.append)
        if frame.number < 3:
            raise Boom("behind it")
        return {"log": [f"try {frame.number}"]}

    app = line(acts.saver, a=Retrying(acts, body, effect="write").node(times=3))
    acts.run(app)

    assert ([("a", 1, "failed"), ("a", 2, "failed"), ("a", 3, "succeeded")], 1) == (acts.attempts(), len(paid))
    assert ["in", "try 3"] == app.get_state(CONFIG).values["log"]
    assert [] == acts.saver.ledger.verify()


def test_l21_calls_that_are_made_again_are_counted(acts: Acts) -> None:
    app = line(acts.saver, a=Retrying(acts, raises, max_attempts=2).node(times=5))
    with pytest.raises(AdmissionError) as refusal:
        acts.run(app)

    assert ("retry_exhausted", ["inner", "inner"]) == (refusal.value.code, acts.ran)


def raises(frame: Frame) -> Any:
    raise Boom("always")


def test_l22_it_counts_on_in_the_next_try(acts: Acts) -> None:
    """As after a crash: the part is found by what it is called with, and what it did is known."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, paid.append)
        if frame.number < 4:
            raise Boom("behind it")
        return {"log": [str(frame.number)]}

    app = line(acts.saver, a=Retrying(acts, body, effect="write").node(times=2))
    for given in (("in",), None):
        acts.run(app, given)

    assert (["in", "4"], 1) == (app.get_state(CONFIG).values["log"], len(paid))


def test_l22_an_equal_call_behind_one_that_returned_is_another_part(acts: Acts) -> None:
    """Twice the same order: two payments, the second of which is lost for a moment and made again."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, paid.append)
        if len(paid) == 2 and frame.number == 1:
            raise Boom("behind it")
        return {"log": [str(frame.number)]}

    calls = Retrying(acts, body, effect="write")
    if acts.form == "sync":
        app = line(acts.saver, a=lambda state: {"log": calls.call("order", 2)["log"] + calls.call("order", 2)["log"]})
    else:

        async def node(state: State) -> Any:
            return {"log": (await calls.acall("order", 2))["log"] + (await calls.acall("order", 2))["log"]}

        app = line(acts.saver, a=node)
    acts.run(app)

    assert (["in", "1", "2"], 2) == (app.get_state(CONFIG).values["log"], len(set(paid)))


def test_l22_calls_side_by_side_are_made_again_each_as_its_own_part(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    """Equal ones are interchangeable: as many payments as calls, whichever is made again first."""
    acts, paid = Acts(saver, "async", "sync", loop), []

    @durable(effect="write")
    async def inner(order: str, frame: Frame) -> str:
        await frame.aonce("pay", {}, pay)
        await asyncio.sleep(0.01 * (len(paid) % 3))
        if frame.number < 3:
            raise Boom("behind it")
        return order

    async def pay(key: str) -> str:
        paid.append(key)
        return key

    async def call(order: str) -> str:
        while True:
            try:
                return await inner(order)  # type: ignore[no-any-return,misc]
            except Boom:
                continue

    async def node(state: State) -> Any:
        return {"log": list(await asyncio.gather(*map(call, ["a", "b", "a", "a"])))}

    app = line(saver, a=node)
    acts.run(app)

    assert ["in", "a", "b", "a", "a"] == app.get_state(CONFIG).values["log"]
    assert (4, 4) == (len(paid), len(set(paid)))
    assert (4, 8) == tuple([each[2] for each in acts.attempts()].count(end) for end in ("succeeded", "failed"))
    assert [] == saver.ledger.verify()


@pytest.mark.parametrize(("effect", "code"), [("write", "part_ambiguous"), ("none", None)])
def test_l28_one_that_cannot_be_told_from_the_call_that_failed_does_not_act(
    acts: Acts, effect: Any, code: str | None
) -> None:
    """It may be that call again, or another one whose argument looks the same. Where nothing is done, no harm is."""
    app = line(acts.saver, a=Retrying(acts, raises, effect=effect).node(times=2, given=Opaque()))
    found = None
    try:
        acts.run(app)
    except AdmissionError as refusal:
        found = refusal.code

    assert (code, 1 if code else 2) == (found, len(acts.attempts()))
