"""L47: a fork that comes to what the run it was forked from had committed acts, asks, or gives the old receipt back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, interrupt

from langgraph_ext import LedgerSaver, RunLedger, durable, with_ledger
from langgraph_ext.errors import AdmissionError, InvalidArgument, LeaseError
from langgraph_ext.nodes import Frame, frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line, looped, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Bank:
    """Something outside that counts, and nodes that act on it."""

    def __init__(self, acts: Acts) -> None:
        self.acts = acts
        self.charged: list[str] = []
        self.given: list[Any] = []

    def charge(self, key: str) -> str:
        self.charged.append(key)
        return f"receipt {len(self.charged)}"

    async def acharge(self, key: str) -> str:
        return self.charge(key)

    def node(
        self,
        on_fork: Any = "ask",
        *,
        names: tuple[str, ...] = ("charge",),
        payload: Callable[[Any], Any] = lambda state: 7,
        behind: Callable[[], Any] = lambda: None,
        **named: Any,
    ) -> Any:
        """Acts under these names, in order; notes what it was given, and does what comes behind."""

        def after(receipts: list[Any]) -> Any:
            behind()
            self.given += receipts
            return {"log": ["."]}

        if self.acts.form == "sync":

            @durable(effect="write", on_fork=on_fork)
            def pay(state: State, frame: Frame) -> Any:
                return after([frame.once(name, payload(state), self.charge, **named) for name in names])

            return pay

        @durable(effect="write", on_fork=on_fork)
        async def apay(state: State, frame: Frame) -> Any:
            return after([await frame.aonce(name, payload(state), self.acharge, **named) for name in names])

        return apay


def before(app: Any, node: str = "a", entries: int | None = None) -> Any:
    """The oldest checkpoint at which this node is next; with so many entries in the log, if that is said."""
    found = [h for h in app.get_state_history(CONFIG) if h.next == (node,)]
    return next(h for h in found[::-1] if entries is None or len(h.values["log"]) == entries).config


def forked(app: Any, how: str, **where: Any) -> Any:
    """The config of a fork there: a checkpoint id, or an update of the state."""
    config = before(app, **where)
    return config if how == "checkpoint_id" else app.update_state(config, {"log": ["edited"]})


def pending(acts: Acts) -> list[Any]:
    acts.saver.database.transact(lambda tx: None)
    return acts.saver.ledger.interrupts(pending=True)


def events(acts: Acts) -> list[str]:
    return [name for name in acts.events("effect") if name in ("effect.reused", "effect.repeated", "effect.refused")]


HOW = pytest.mark.parametrize("how", ["checkpoint_id", "update_state"])
ATTACHED = pytest.mark.parametrize("attached", [True, False])


@HOW
@ATTACHED
@pytest.mark.parametrize("answer", ["reuse", "act"])
def test_l47_a_fork_asks_before_it_repeats_what_was_committed(
    acts: Acts, how: str, attached: bool, answer: str
) -> None:
    """Nothing is done before somebody has answered; the answer is on record, and decides."""
    bank = Bank(acts)
    app = line(acts.saver, a=bank.node(), b=says("b"))
    app = with_ledger(app) if attached else app
    acts.run(app)
    (first,) = acts.saver.ledger.effects()
    acts.run(app, None, forked(app, how))
    (question,) = pending(acts)
    assert (["receipt 1"], 1, "effect_on_fork") == (bank.given, len(bank.charged), question.kind)
    assert (first.effect_id, first.run_id, "charge", "a") == tuple(
        question.value[word] for word in ("effect_id", "run_id", "effect", "node")
    )
    acts.saver.ledger.answer({question.interrupt_id: answer})
    acts.run(app, acts.saver.ledger.resume_command("t"))
    last = acts.saver.ledger.effects()[-1]

    if answer == "reuse":
        assert (["receipt 1"] * 2, 1, ["effect.reused"]) == (bank.given, len(bank.charged), events(acts))
    else:
        assert (["receipt 1", "receipt 2"], 2, ["effect.repeated"]) == (
            bank.given,
            len(set(bank.charged)),
            events(acts),
        )
        assert (first.effect_id, acts.saver.ledger.runs()[0].run_id) == (last.again_of, last.run_id)
    answered = next(i for i in acts.saver.ledger.interrupts() if i.interrupt_id == question.interrupt_id)
    assert ("succeeded", answer, []) == (
        acts.saver.ledger.runs()[0].status,
        answered.answer,
        acts.saver.ledger.verify(),
    )


@HOW
def test_l47_a_fork_that_is_stopped_there_is_cancelled(acts: Acts, how: str) -> None:
    """It goes no further, and nothing is done; new input, and another fork, go on."""
    bank = Bank(acts)
    app = with_ledger(line(acts.saver, a=bank.node()))
    acts.run(app)
    acts.run(app, None, forked(app, how))
    with pytest.raises(AdmissionError) as refused:
        acts.run(app, Command(resume="stop"))
    acts.saver.database.transact(lambda tx: None)

    assert ("cancelled", "cancelled", 1) == (
        refused.value.code,
        acts.saver.ledger.runs()[0].status,
        len(bank.charged),
    )
    assert (["effect.refused"], [], []) == (events(acts), pending(acts), acts.saver.ledger.verify())
    acts.run(app)
    assert 2 == len(bank.charged)
    acts.run(app, None, before(app))
    assert 1 == len(pending(acts))


def test_l47_a_stopped_fork_of_a_graph_that_is_not_attached_is_stopped_too(acts: Acts) -> None:
    bank = Bank(acts)
    app = line(acts.saver, a=bank.node())
    acts.run(app)
    acts.run(app, None, before(app))
    for given in (Command(resume="stop"), None):
        with pytest.raises(AdmissionError) as refused:
            acts.run(app, given)
        assert "cancelled" == refused.value.code
    assert (1, "cancelled") == (len(bank.charged), acts.saver.ledger.runs()[0].status)


@HOW
def test_l47_a_fork_that_reuses_gives_the_old_receipt_back_unasked(acts: Acts, how: str) -> None:
    bank = Bank(acts)
    app = line(acts.saver, a=bank.node("reuse"))
    acts.run(app)
    acts.run(app, None, forked(app, how))

    assert (["receipt 1"] * 2, 1, []) == (bank.given, len(bank.charged), pending(acts))
    assert (["effect.reused"], []) == (events(acts), acts.saver.ledger.verify())


@HOW
def test_l47_without_the_option_a_fork_acts_under_a_key_of_its_own(acts: Acts, how: str) -> None:
    bank = Bank(acts)
    app = line(acts.saver, a=bank.node("act"))
    acts.run(app)
    acts.run(app, None, forked(app, how))

    assert (["receipt 1", "receipt 2"], 2, []) == (bank.given, len(set(bank.charged)), pending(acts))
    assert ([None, None], []) == ([effect.again_of for effect in acts.saver.ledger.effects()], events(acts))


def test_l47_what_a_fork_does_for_the_first_time_it_is_not_asked_about(acts: Acts) -> None:
    """Another payload, what has a key of the caller's own, and the run that is not a fork."""
    bank = Bank(acts)
    edited = line(acts.saver, a=bank.node(payload=lambda state: state["log"]))
    acts.run(edited)
    acts.run(edited, None, edited.update_state(before(edited), {"log": ["other"]}))
    assert (2, []) == (len(bank.charged), pending(acts))

    keyed = Bank(acts)
    app = line(acts.saver, a=keyed.node(key="order-7"))
    acts.run(app)
    acts.run(app, None, acts.saver.get_tuple(before(app)).config)
    assert (["receipt 1"] * 2, []) == (keyed.given, pending(acts))


def test_l47_what_did_not_happen_or_is_in_doubt_there_is_not_asked_about(acts: Acts) -> None:
    bank, left = Bank(acts), iter([Boom("lost")])

    def charge(key: str) -> str:
        for error in left:
            raise error
        return bank.charge(key)

    def body(frame: Frame) -> Any:
        return {"log": [frame.once("charge", 7, charge)]}

    app = line(acts.saver, a=acts.node("a", body, effect="write", on_fork="ask"))
    acts.run(app)
    acts.run(app, None, before(app))

    assert (["receipt 1"], []) == (app.get_state(CONFIG).values["log"][1:], pending(acts))


def test_l47_each_round_is_asked_about_its_own_effect_and_the_ones_beyond_are_not(acts: Acts) -> None:
    """What led to the fork is not asked about either: rounds 1 and 2 are the fork's own past."""
    bank = Bank(acts)
    acts.run(looped(bank.node("reuse"), 4).compile(checkpointer=acts.saver))
    longer = looped(bank.node("reuse"), 6).compile(checkpointer=acts.saver)
    acts.run(longer, None, before(longer, entries=3))

    assert [f"receipt {n}" for n in (1, 2, 3, 4, 3, 4, 5, 6)] == bank.given


def test_l47_what_another_round_of_the_run_had_committed_is_asked_about_too(acts: Acts) -> None:
    """An edit may bring the fork there sooner, or later."""
    bank = Bank(acts)

    def body(frame: Frame) -> Any:
        if len(bank.given) in (1, 2):  # in the run's second round, and in the fork's first
            bank.given.append(frame.once("charge", 7, bank.charge))
        else:
            bank.given.append("no")
        return {"log": ["."]}

    app = looped(acts.node("a", body, effect="write", on_fork="reuse"), 2).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None, before(app))
    assert (["no", "receipt 1", "receipt 1", "no"], 1) == (bank.given, len(bank.charged))


def test_l47_a_fork_of_a_fork_asks_about_what_the_first_run_did(acts: Acts) -> None:
    bank = Bank(acts)
    app = line(acts.saver, a=bank.node(), b=says("b"))
    acts.run(app)
    acts.run(app, None, before(app))
    acts.run(app, Command(resume="reuse"))
    head = next(h for h in app.get_state_history(CONFIG) if h.metadata["source"] == "fork")
    acts.run(app, None, app.update_state(head.config, {"log": ["again"]}))
    (question,) = pending(acts)

    assert acts.saver.ledger.effects()[0].effect_id == question.value["effect_id"]
    acts.run(app, Command(resume="act"))
    assert 2 == len(bank.charged)


def test_l47_an_edit_of_a_fork_asks_again(acts: Acts) -> None:
    """`update_state` lets its visit begin anew: that is another action, of the same round."""
    bank = Bank(acts)
    app = with_ledger(line(acts.saver, a=bank.node()))
    acts.run(app)
    acts.run(app, None, before(app))
    app.update_state(CONFIG, {"log": ["edited"]})
    acts.run(app, None)
    assert (1, 1) == (len(bank.charged), len(pending(acts)))
    acts.run(app, Command(resume="reuse"))
    assert ["receipt 1"] * 2 == bank.given


# -- answers


@pytest.mark.parametrize("answers", [("act", "reuse"), ("reuse", "act"), ("act", "act")])
def test_l25_no_answer_is_used_for_another_question_of_the_node(acts: Acts, answers: tuple[str, str]) -> None:
    """Two effects, and a question of the body's own behind them: each is asked, in order, and none is shifted."""
    bank, said = Bank(acts), list[str]()
    node = bank.node(names=("charge", "mail"), behind=lambda: said.append(interrupt("good?")) if bank.given else None)
    app = with_ledger(line(acts.saver, a=node))
    acts.run(app)
    acts.run(app, None, before(app))
    asked = []
    for answer in (*answers, "yes"):
        (question,) = pending(acts)
        asked.append(question.value["effect"] if isinstance(question.value, dict) else question.value)
        acts.run(app, Command(resume=answer))

    assert (["charge", "mail", "good?"], ["yes"]) == (asked, said)
    assert (2 + answers.count("act"), "succeeded") == (len(bank.charged), acts.saver.ledger.runs()[0].status)
    old = ["receipt 1", "receipt 2"]
    assert [answer == "reuse" for answer in answers] == [g == o for g, o in zip(bank.given[2:], old, strict=True)]


def test_l25_what_is_no_answer_is_asked_again(acts: Acts) -> None:
    bank = Bank(acts)
    app = with_ledger(line(acts.saver, a=bank.node()))
    acts.run(app)
    acts.run(app, None, before(app))
    for wrong in ("perhaps", {"odd": ["one"]}):
        acts.run(app, Command(resume={pending(acts)[0].interrupt_id: wrong}))
        (question,) = pending(acts)
        assert "one of" in question.value["error"]
    acts.run(app, Command(resume="reuse"))
    assert ["receipt 1"] * 2 == bank.given


def test_l47_the_answer_counts_for_every_attempt_behind_it(acts: Acts) -> None:
    """A retry, and an attempt of a later invocation, are not asked again, and do not act again."""
    bank, errors = Bank(acts), iter([])

    def behind() -> None:
        for error in errors:
            raise error

    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False, retry_on=Boom)
    builder = StateGraph(State).add_node("a", bank.node(behind=behind), retry_policy=policy).add_edge(START, "a")
    app = with_ledger(builder.compile(checkpointer=acts.saver))
    acts.run(app)
    acts.run(app, None, before(app))
    errors = iter([Boom("1"), Boom("2"), Boom("3")][:])
    for given in (Command(resume="act"), None, None):
        acts.run(app, given)

    assert (["receipt 1", "receipt 2"], 2, []) == (bank.given, len(bank.charged), pending(acts))
    assert ["effect.repeated"] == events(acts)


def test_l26_the_answer_may_come_from_another_process_before_anybody_resumes(acts: Acts) -> None:
    bank = Bank(acts)
    app = with_ledger(line(acts.saver, a=bank.node()))
    acts.run(app)
    acts.run(app, None, before(app))
    name = acts.saver.database.name
    if name == ":memory:":
        pytest.skip("in memory nobody else reads")
    with RunLedger(name) as ledger:
        (question,) = ledger.interrupts(pending=True, kind="effect_on_fork")
        ledger.answer({question.interrupt_id: "reuse"})
    acts.run(app, None)
    assert (["receipt 1"] * 2, 1) == (bank.given, len(bank.charged))


async def free(invoke: Callable[[], Any]) -> Any:
    """Invoke as soon as the tool that came too late to ask has ended, and the thread is free."""
    while True:
        try:
            return await invoke()
        except LeaseError:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("first", ["7", "8"])
def test_l25_tools_side_by_side_ask_one_after_the_other(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop, first: str
) -> None:
    """In whatever order they come to their questions: none is given the answer to the other's."""
    delays: dict[str, float] = {}
    refunded: list[str] = []

    @tool
    @durable(effect="write", on_fork="ask")
    async def refund(order: str) -> str:
        """Give the money back."""
        await asyncio.sleep(delays.get(order, 0))

        async def call(key: str) -> str:
            refunded.append(order)
            return f"refunded {order} ({refunded.count(order)})"

        return str(await frame().aonce("refund", {"order": order}, call))

    calls: Any = [{"name": "refund", "args": {"order": each}, "id": f"call-{each}"} for each in ("7", "8")]
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([refund])).add_edge(START, "tools")
    app = with_ledger(builder.compile(checkpointer=saver))

    async def story() -> list[str]:
        await app.ainvoke({"messages": [AIMessage("", tool_calls=calls)]}, CONFIG)
        history = [state async for state in app.aget_state_history(CONFIG)]
        given: Any = None
        config: Any = next(state.config for state in history if state.next == ("tools",))
        for turn in range(3):
            late = first if turn % 2 else {"7": "8", "8": "7"}[first]
            delays.clear()
            delays[late] = 0.1
            state = await free(partial(app.ainvoke, given, config))
            config = CONFIG
            questions = await saver.ledger.ainterrupts(pending=True)
            if not questions:
                break
            (question,) = questions
            effects = {effect.effect_id: effect for effect in await saver.ledger.aeffects()}
            order = str(effects[question.value["effect_id"]].receipt).split()[1]
            given = Command(resume={question.interrupt_id: "reuse" if order == "7" else "act"})
        return [message.content for message in state["messages"][-2:]]

    assert ["refunded 7 (1)", "refunded 8 (2)"] == loop.run_until_complete(story())
    assert ["7", "8", "8"] == sorted(refunded)
    assert [] == saver.ledger.verify()


@pytest.mark.parametrize(("on_fork", "effect"), [("never", "write"), ("ask", "none"), ("reuse", "opaque")])
def test_l47_an_option_that_means_nothing_is_refused(on_fork: Any, effect: Any) -> None:
    with pytest.raises(InvalidArgument, match="on_fork"):
        durable(effect=effect, on_fork=on_fork)


def test_l25_a_part_that_has_asked_and_ended_leaves_its_answer_to_nobody(acts: Acts) -> None:
    """A node calls a durable function, which asks about its effect, and then asks something itself."""
    bank, said = Bank(acts), list[str]()
    part = bank.node()

    def node(state: State) -> Any:
        part({"log": []})
        said.append(interrupt("good?"))
        return {"log": ["."]}

    async def anode(state: State) -> Any:
        await part({"log": []})
        said.append(interrupt("good?"))
        return {"log": ["."]}

    app = with_ledger(line(acts.saver, a=node if acts.form == "sync" else anode))
    acts.run(app)
    acts.run(app, Command(resume="yes, the first"))
    acts.run(app, None, before(app))
    for answer in ("reuse", "yes, the fork"):
        (question,) = pending(acts)
        acts.run(app, Command(resume=answer))

    assert (["yes, the first", "yes, the fork"], "good?") == (said, question.value)
    assert (["receipt 1"] * 2, 1) == (bank.given, len(bank.charged))


def test_l25_a_question_that_is_not_come_to_again_leaves_its_answer_to_nobody(acts: Acts) -> None:
    """A body that remembers what it has done does not come to the first effect again; the second asks for itself."""
    bank = Bank(acts)

    @durable(effect="write", on_fork="ask")
    def node(state: State, frame: Frame) -> Any:
        if "charged" not in frame.memo:
            frame.memo["charged"] = frame.once("charge", 7, bank.charge)
        return {"log": [frame.once("mail", 7, bank.charge)]}

    @durable(effect="write", on_fork="ask")
    async def anode(state: State, frame: Frame) -> Any:
        if await frame.memo.aget("charged") is None:
            await frame.memo.aset("charged", await frame.aonce("charge", 7, bank.acharge))
        return {"log": [await frame.aonce("mail", 7, bank.acharge)]}

    app = with_ledger(line(acts.saver, a=node if acts.form == "sync" else anode))
    acts.run(app)
    acts.run(app, None, before(app))
    for answer in ("act", "reuse"):
        acts.run(app, Command(resume=answer))

    assert (3, "receipt 2") == (len(bank.charged), app.get_state(CONFIG).values["log"][-1])
