"""Attempts whose bodies are over, and whose ends nobody has stored: the next admission is told of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.errors import AdmissionError, StoreError
from langgraph_ext.ledger import endings
from langgraph_ext.nodes import EffectNotDone, Frame, durable, frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, fails, line, says
from tests.support.driver import Form

RETRY = RetryPolicy(initial_interval=0.001, retry_on=Boom)


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


@pytest.fixture(params=["attached", "plain"])
def attach(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return with_ledger if request.param == "attached" else lambda app: app


def around(acts: Acts, inner: Any, behind: Callable[[], Any]) -> Any:
    """A node that calls a durable function, and then something that may raise."""
    if acts.form == "sync":

        def node(state: State) -> Any:
            try:
                return inner(state)
            finally:
                behind()

        return node

    async def anode(state: State) -> Any:
        try:
            return await inner(state)
        finally:
            behind()

    return anode


def retried(saver: Any, node: Any) -> Any:
    return StateGraph(State).add_node("a", node, retry_policy=RETRY).add_edge(START, "a").compile(checkpointer=saver)


def once_boom() -> Callable[[], Any]:
    """Raises the first time it is called."""
    left = iter(range(1))

    def behind() -> None:
        for _ in left:
            raise Boom("behind it")

    return behind


@pytest.mark.parametrize("effect", ["none", "write", "opaque"])
def test_l16_a_result_is_given_back_before_it_is_stored(acts: Acts, attach: Callable[[Any], Any], effect: Any) -> None:
    """The node raises behind it, and LangGraph tries the node again without a word to the saver."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        if effect == "write":
            frame.once("pay", {}, paid.append)
        return {"log": ["paid"]}

    inner = acts.node("inner", body, effect=effect)
    app = attach(retried(acts.saver, around(acts, inner, once_boom())))
    acts.run(app)

    assert ["in", "paid"] == app.get_state(CONFIG).values["log"]
    assert (["inner"], [("a", 1, "succeeded")]) == (acts.ran, acts.attempts())
    assert (effect == "write", False, []) == (len(paid) == 1, acts.lease()[1], acts.saver.ledger.verify())


def test_l16_l53_what_it_registered_is_done_when_its_end_is_stored(acts: Acts, attach: Callable[[Any], Any]) -> None:
    acts.saver.setup()
    connection = sqlite3.connect(acts.saver.database.name)
    connection.execute("CREATE TABLE booking (word TEXT)")

    def body(frame: Frame) -> Any:
        frame.inside(lambda tx: tx.execute("INSERT INTO booking VALUES ('room')"))
        return {"log": ["booked"]}

    acts.run(attach(retried(acts.saver, around(acts, acts.node("inner", body), once_boom()))))
    booked = connection.execute("SELECT word FROM booking").fetchall()
    connection.close()

    assert ([("room",)], ["inner"]) == (booked, acts.ran)


def test_l16_a_command_to_the_parent_is_given_back_too(acts: Acts, attach: Callable[[Any], Any]) -> None:
    def body(frame: Frame) -> Any:
        raise ParentCommand(Command(graph=Command.PARENT, goto="end", update={"log": ["told"]}))

    inner = acts.node("inner", body, effect="opaque")
    sub = StateGraph(State).add_node("a", around(acts, inner, once_boom()), retry_policy=RETRY).add_edge(START, "a")
    builder = StateGraph(State).add_node("sub", sub.compile(), destinations=("end",)).add_node("end", says("end"))
    app = attach(builder.add_edge(START, "sub").compile(checkpointer=acts.saver))
    acts.run(app)

    assert ["in", "told", "end"] == app.get_state(CONFIG).values["log"]
    assert (["inner"], [("a", 1, "succeeded")]) == (acts.ran, acts.attempts())


def test_l16_only_what_is_behind_a_nodes_body_is_tried_again(acts: Acts, attach: Callable[[Any], Any]) -> None:
    """The node itself is durable, and its router raises."""
    route = iter([Boom("router"), "end"])

    def router(state: State) -> str:
        if isinstance(found := next(route), Boom):
            raise found
        return str(found)

    node = acts.node("a", effect="opaque")
    builder = StateGraph(State).add_node("a", node, retry_policy=RETRY).add_node("end", says("end"))
    app = builder.add_edge(START, "a").add_conditional_edges("a", router, ["end"]).compile(checkpointer=acts.saver)
    app = attach(app)
    acts.run(app)

    assert (["in", "a", "end"], ["a"]) == (app.get_state(CONFIG).values["log"], acts.ran)


def test_l16_one_whose_caller_is_cancelled_in_that_moment(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    """Nobody stores its end; the next invocation in this process has the same lease."""
    acts = Acts(saver, "async", "sync", loop)
    callers: list[asyncio.Task[Any]] = []

    def body(frame: Frame) -> Any:
        callers.pop().cancel()
        return {"log": ["done"]}

    app = line(saver, a=acts.node("a", body, effect="opaque"))

    async def story() -> None:
        callers.append(asyncio.create_task(app.ainvoke({"log": ["in"]}, CONFIG, durability="sync")))
        await asyncio.gather(*callers, return_exceptions=True)

    loop.run_until_complete(story())
    assert [("a", 1, "running")] == acts.attempts()
    acts.run(app, None)

    assert (["in", "done"], [("a", 1, "succeeded")]) == (app.get_state(CONFIG).values["log"], acts.attempts())
    assert (["a"], False, []) == (acts.ran, acts.lease()[1], saver.ledger.verify())


class BusySaver(LedgerSaver):
    """A file that is locked when the first task of the node `a` is to be stored."""

    locked = True

    def _refuse(self, task_path: str) -> None:
        if self.locked and task_path.endswith("pull, a"):
            self.locked = False
            raise StoreError("locked", code="store_busy", retryable=True)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._refuse(task_path)
        super().put_writes(config, writes, task_id, task_path)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._refuse(task_path)
        await super().aput_writes(config, writes, task_id, task_path)


@pytest.mark.parametrize("ends", ["returns", "asks"])
def test_l16_l17_one_whose_end_could_not_be_stored(
    tmp_path: Any, form: Form, loop: asyncio.AbstractEventLoop, ends: str
) -> None:
    """A result is given back; a body that asks begins again, as the same attempt, and may use its names again."""
    with BusySaver(tmp_path / "runs.db") as saver:
        acts, paid = Acts(saver, form, "sync", loop), []

        def body(frame: Frame) -> Any:
            frame.once("pay", {}, paid.append)
            return {"log": [interrupt("sure?") if ends == "asks" else "yes"]}

        app = line(saver, a=acts.node("a", body, effect="write"))
        with pytest.raises(StoreError):
            acts.run(app)
        acts.run(app, None)
        if ends == "asks":
            assert [("a", 1, "paused")] == acts.attempts()
            acts.run(app, Command(resume="yes"))

        assert (["in", "yes"], 1) == (app.get_state(CONFIG).values["log"], len(paid))
        assert (["a"] * (3 if ends == "asks" else 1), [("a", 1, "succeeded")]) == (acts.ran, acts.attempts())
        assert (False, []) == (acts.lease()[1], saver.ledger.verify())


def test_l17_a_question_that_a_retry_has_swallowed_is_asked_again(acts: Acts, attach: Callable[[Any], Any]) -> None:
    """As the same attempt; its effects are not repeated."""
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, paid.append)
        return {"log": [interrupt("sure?")]}

    inner = acts.node("inner", body, effect="write")
    app = attach(retried(acts.saver, around(acts, inner, once_boom())))
    acts.run(app)
    assert [("a", 1, "paused")] == acts.attempts()
    acts.run(app, Command(resume="yes"))

    assert (["in", "yes"], 1) == (app.get_state(CONFIG).values["log"], len(paid))
    assert (["inner"] * 3, [("a", 1, "succeeded")]) == (acts.ran, acts.attempts())


def test_l17_a_question_that_its_caller_swallows_is_asked_by_the_same_part(acts: Acts) -> None:
    """`except Exception` around a tool takes LangGraph's signal for an error, and calls again."""
    if acts.form == "async":
        pytest.skip("the caller is a plain function")
    paid: list[str] = []

    def body(frame: Frame) -> Any:
        frame.once("pay", {}, paid.append)
        return {"log": [interrupt("sure?")]}

    inner = acts.node("inner", body, effect="write")

    def node(state: State) -> Any:
        try:
            return inner(state)
        except GraphInterrupt:
            return inner(state)

    app = line(acts.saver, a=node)
    acts.run(app)
    acts.run(app, Command(resume="yes"))

    assert (["in", "yes"], 1) == (app.get_state(CONFIG).values["log"], len(paid))
    assert [("a", 1, "succeeded")] == acts.attempts()


def test_l53_a_failure_that_could_not_be_recorded_is_recorded_by_the_next_admission(
    acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts.saver.setup()
    inside, told = fails(1), []

    def unable(*args: Any, **kwargs: Any) -> None:
        raise StoreError("locked", code="store_busy")

    def body(frame: Frame) -> Any:
        frame.inside(lambda tx: told.append(inside({"log": []})))
        return {"log": ["a"]}

    app = line(acts.saver, a=acts.node("a", body))
    with monkeypatch.context() as patched:
        patched.setattr(endings, "fail", unable)
        acts.run(app)
    assert [("a", 1, "running")] == acts.attempts()
    acts.run(app, None)

    assert [("a", 1, "failed"), ("a", 2, "succeeded")] == acts.attempts()
    assert (["in", "a"], []) == (app.get_state(CONFIG).values["log"], acts.saver.ledger.verify())


def test_l19_an_attempt_whose_body_still_runs_is_waited_for(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    """One of two calls has failed, and LangGraph tries the node again while the other acts."""
    left, goes_on, paid = iter(range(1)), asyncio.Event(), []

    @durable(effect="write")
    async def pay(order: str) -> str:
        async def call(key: str) -> str:
            if order == "closed":
                for _ in left:
                    raise EffectNotDone
                return order
            paid.append(key)
            await goes_on.wait()
            return order

        return str(await frame().aonce("pay", order, call))

    async def node(state: State) -> Any:
        return {"log": list(await asyncio.gather(pay("open"), pay("closed")))}

    app = line(saver, a=node)

    async def story() -> None:
        with pytest.raises(EffectNotDone):
            await app.ainvoke({"log": ["in"]}, CONFIG, durability="sync")
        with pytest.raises(AdmissionError) as refusal:
            await app.ainvoke(None, CONFIG, durability="sync")
        assert "attempt_running" == refusal.value.code
        goes_on.set()
        await asyncio.sleep(0.05)
        await app.ainvoke(None, CONFIG, durability="sync")

    loop.run_until_complete(story())

    assert (["in", "open", "closed"], 1) == (app.get_state(CONFIG).values["log"], len(paid))
