"""L20: `update_state` lets a task begin anew as another visit; what was in doubt before it still stops the node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from langgraph_ext import LedgerSaver, durable, with_ledger
from langgraph_ext.errors import RecoveryRequired
from langgraph_ext.nodes import AttemptInterrupted, Frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Bank:
    """The outside: charges, and fails as often as it is told, with what it is told, when it has charged."""

    def __init__(self, *errors: Exception) -> None:
        self.keys: list[str] = []
        self._errors: Iterator[Exception] = iter(errors)

    def pay(self, key: str = "") -> int:
        self.keys.append(key)
        for error in self._errors:
            raise error
        return len(self.keys)

    async def apay(self, key: str = "") -> int:
        return self.pay(key)


def charging(acts: Acts, bank: Bank, *, named: Any = None, **options: Any) -> Any:
    """A node that charges once, and says which receipt it was given."""
    options = {"effect": "write", **options}
    if acts.form == "sync":

        @durable(**options)
        def charge(state: State, frame: Frame) -> Any:
            return {"log": [str(frame.once("charge", {}, bank.pay, **(named or {})))]}

        return charge

    @durable(**options)
    async def acharge(state: State, frame: Frame) -> Any:
        return {"log": [str(await frame.aonce("charge", {}, bank.apay, **(named or {})))]}

    return acharge


def opaque(acts: Acts, bank: Bank) -> Any:
    """A node that acts as it likes."""
    return acts.node("charge", lambda frame: {"log": [str(bank.pay())]}, effect="opaque")


def lost() -> Exception:
    return AttemptInterrupted("session_lost", "no answer")


def stopped(acts: Acts, app: Any, given: Any = None) -> RecoveryRequired:
    """Run until it stops at what is in doubt; its run waits then."""
    with pytest.raises(RecoveryRequired) as refused:
        acts.run(app, given)
    acts.saver.database.transact(lambda tx: None)
    assert "recovery_required" == acts.saver.ledger.runs()[0].status
    return refused.value


def failed(acts: Acts, app: Any) -> None:
    """Run until the node's first attempt is over."""
    with suppress(AttemptInterrupted):
        acts.run(app)


@pytest.mark.parametrize("attached", [True, False])
def test_l20_update_state_does_not_get_past_an_effect_in_doubt(acts: Acts, attached: bool) -> None:
    """However often; it is named, and nothing is done. When it is known that it did not happen, the node acts."""
    bank = Bank(Boom("no answer"))
    app = line(acts.saver, charge=charging(acts, bank))
    app = with_ledger(app) if attached else app
    failed(acts, app)
    (effect,) = acts.saver.ledger.effects()
    for _ in range(2):
        app.update_state(CONFIG, {"log": ["called"]})
        refused = stopped(acts, app)
        assert [f"charge ({effect.effect_id})"] == refused.details["effects"]
        assert (effect.attempt_id, 1) == (refused.details["attempt_id"], len(bank.keys))
    acts.saver.ledger.resolve_effect(effect.effect_id, happened=False)
    acts.run(app, None)

    assert ["in", "called", "called", "2"] == app.get_state(CONFIG).values["log"]
    assert "succeeded" == acts.saver.ledger.runs()[0].status
    assert [] == acts.saver.ledger.verify()


@pytest.mark.parametrize("kind", ["write", "opaque"])
def test_l20_to_authorize_the_attempt_before_it_lets_the_new_visit_act_once(acts: Acts, kind: str) -> None:
    """Interrupted again, it stops again, by what it has left in doubt itself."""
    bank = Bank(lost(), lost())
    app = line(acts.saver, charge=charging(acts, bank) if kind == "write" else opaque(acts, bank))
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["called"]})
    refused = stopped(acts, app)
    acts.saver.ledger.authorize_recovery(str(refused.details["attempt_id"]))
    with pytest.raises(AttemptInterrupted):
        acts.run(app, None)
    again = stopped(acts, app)

    assert 2 == len(bank.keys)
    assert refused.details["attempt_id"] != again.details["attempt_id"]
    app.update_state(CONFIG, {"log": ["called"]})
    assert again.details["attempt_id"] == stopped(acts, app).details["attempt_id"]
    acts.saver.ledger.authorize_recovery(str(again.details["attempt_id"]))
    acts.run(app, None)
    assert ["in", "called", "called", "3"] == app.get_state(CONFIG).values["log"]


def test_l20_nor_does_an_update_that_goes_back_to_a_node_before_it(acts: Acts) -> None:
    """The node's next visit comes later than the update."""
    bank = Bank(Boom("no answer"))
    app = line(acts.saver, a=says("a"), b=says("b"), charge=charging(acts, bank))
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["back"]}, as_node="a")
    stopped(acts, app)

    assert 1 == len(bank.keys)


def test_l20_nor_in_a_subgraph(acts: Acts) -> None:
    """Node paths count: the same node in another subgraph is another one."""
    banks = {"one": Bank(Boom("no answer")), "two": Bank()}
    inner = {name: line(None, charge=charging(acts, bank)) for name, bank in banks.items()}
    app = line(acts.saver, two=inner["two"], one=inner["one"])
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["called"]}, as_node="__start__")
    refused = stopped(acts, app)

    assert (1, 2) == (len(banks["one"].keys), len(banks["two"].keys))
    assert "charge" in str(refused)


def test_l20_nor_in_a_durable_function_of_the_node(acts: Acts) -> None:
    """One of several parts: known by its function."""
    bank = Bank(Boom("no answer"))

    @durable
    def look() -> str:
        return "seen"

    @durable(effect="write")
    def pay(frame: Frame) -> str:
        return str(frame.once("charge", {}, bank.pay))

    def node(state: State) -> Any:
        return {"log": [look(), pay()]}

    async def anode(state: State) -> Any:
        return await asyncio.to_thread(node, state)

    app = line(acts.saver, charge=node if acts.form == "sync" else anode)
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["called"]})
    stopped(acts, app)

    assert 1 == len(bank.keys)


def dealing(acts: Acts, bank: Bank) -> Any:
    """A node that deals with its effect's error itself."""

    def body(frame: Frame) -> Any:
        try:
            frame.once("charge", {}, bank.pay)
        except Boom:
            return {"log": ["dealt with"]}
        return {"log": ["paid"]}

    @durable(effect="write")
    def node(state: State, frame: Frame) -> Any:
        return body(frame)

    @durable(effect="write")
    async def anode(state: State, frame: Frame) -> Any:
        return await asyncio.to_thread(body, frame)

    return node if acts.form == "sync" else anode


def test_l20_what_has_succeeded_stops_no_visit_behind_an_update(acts: Acts) -> None:
    """It was beside a question that the update takes away."""
    bank = Bank(Boom("no answer"))
    builder = StateGraph(State).add_node("split", says("split")).add_node("charge", dealing(acts, bank))
    builder.add_node("ask", lambda state: {"log": [interrupt("go on?")]}).add_edge(START, "split")
    builder.add_edge("split", "charge").add_edge("split", "ask")
    app = builder.compile(checkpointer=acts.saver)
    acts.run(app)
    app.update_state(CONFIG, {"log": ["called"]}, as_node="__start__")
    acts.run(app, None)

    assert 2 == len(bank.keys)
    assert "paused" == acts.saver.ledger.runs()[0].status


def test_l20_what_an_error_handler_has_taken_over_stops_no_later_round(acts: Acts) -> None:
    """The run went on by itself; an update that comes later changes nothing of that."""
    bank = Bank(Boom("no answer"))
    builder = StateGraph(State).add_node("b", says("b")).add_edge(START, "charge")
    builder.add_node("charge", charging(acts, bank), error_handler=lambda state: {"log": ["handled"]})
    builder.add_edge("charge", "b").add_conditional_edges("b", lambda s: "charge" if len(s["log"]) < 6 else "__end__")
    app = builder.compile(checkpointer=acts.saver)
    acts.run(app, interrupt_after=["b"])
    app.update_state(CONFIG, {"log": ["called"]}, as_node="b")
    acts.run(app, None)

    assert len(bank.keys) > 1
    assert "succeeded" == acts.saver.ledger.runs()[0].status


def test_l20_of_a_fan_out_the_place_in_doubt_is_stopped(acts: Acts) -> None:
    """The others are other visits, in doubt of nothing."""
    banks = [Bank(), Bank(Boom("no answer"))]

    def body(number: int, frame: Frame) -> Any:
        frame.once("charge", {}, banks[number].pay)
        return {"log": ["paid"]}

    @durable(effect="write")
    def node(state: Any, frame: Frame) -> Any:
        return body(state["number"], frame)

    @durable(effect="write")
    async def anode(state: Any, frame: Frame) -> Any:
        return await asyncio.to_thread(body, state["number"], frame)

    builder = StateGraph(State).add_node("split", says("split")).add_edge(START, "split")
    builder.add_node("charge", node if acts.form == "sync" else anode)
    builder.add_conditional_edges("split", lambda s: [Send("charge", {"number": n}) for n in (0, 1)], ["charge"])
    app = builder.compile(checkpointer=acts.saver)
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["called"]}, as_node="split")
    refused = stopped(acts, app)
    (doubt,) = acts.saver.ledger.effects(status="unknown")

    assert ([f"charge ({doubt.effect_id})"], 1) == (refused.details["effects"], len(banks[1].keys))


@pytest.mark.parametrize("kind", ["write", "opaque"])
def test_l20_what_begins_beside_a_task_in_doubt_does_not_hide_it(acts: Acts, kind: str) -> None:
    """The run waits for somebody until that is settled, whatever else of it acts meanwhile."""
    bank = Bank(lost())

    def charge(frame: Frame) -> str:
        return str(frame.once("charge", {}, bank.pay) if kind == "write" else bank.pay())

    pay = durable(charge, effect=kind)

    @durable
    def look() -> str:
        return "seen"

    def node(state: State) -> Any:
        try:
            return {"log": [pay()]}
        except RecoveryRequired:
            look()
            raise

    async def anode(state: State) -> Any:
        return await asyncio.to_thread(node, state)

    app = line(acts.saver, charge=node if acts.form == "sync" else anode)
    failed(acts, app)
    refused = stopped(acts, app, None)
    acts.saver.ledger.authorize_recovery(str(refused.details["attempt_id"]))
    acts.run(app, None)

    assert (2, "succeeded") == (len(bank.keys), acts.saver.ledger.runs()[0].status)


@pytest.mark.parametrize("named", [{"key": "order-7"}, {"base_key": "order-7"}, {}])
def test_l29_after_an_update_a_committed_effect_is_not_repeated_under_a_business_key(acts: Acts, named: Any) -> None:
    """Without one the new visit acts again, for that is what beginning a task anew means."""
    bank, booms = Bank(), iter([1])

    def fail_once() -> None:
        for _ in booms:
            raise Boom("behind its effect")

    @durable(effect="write")
    def node(state: State, frame: Frame) -> Any:
        receipt = frame.once("charge", {}, bank.pay, **named)
        fail_once()
        return {"log": [str(receipt)]}

    @durable(effect="write")
    async def anode(state: State, frame: Frame) -> Any:
        receipt = await frame.aonce("charge", {}, bank.apay, **named)
        fail_once()
        return {"log": [str(receipt)]}

    app = line(acts.saver, charge=node if acts.form == "sync" else anode)
    failed(acts, app)
    app.update_state(CONFIG, {"log": ["called"]})
    acts.run(app, None)

    assert (1 if named else 2) == len(bank.keys)
    assert ["in", "called", "1" if named else "2"] == app.get_state(CONFIG).values["log"]
