"""Answers to the questions of attached graphs, and by way of the ledger (rules L25–L27)."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.errors import GraphDrained, NodeError
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, RunLedger, with_ledger
from langgraph_ext.errors import (
    AdmissionError,
    ConflictError,
    EncryptionError,
    InvalidArgument,
    LangGraphExtError,
    NotFound,
)
from langgraph_ext.ledger import Interrupt
from langgraph_ext.saver import LedgerCallbackHandler
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, answered, asks, fails, line, says, tried
from tests.support.driver import Form

SOME_ID = "0" * 32
OTHER: Any = {"configurable": {"thread_id": "other"}}


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, request.param, loop)


@pytest.fixture
def say(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """A method of the ledger, in both forms."""

    def call(method: str, *args: Any, **options: Any) -> Any:
        if form == "sync":
            return getattr(saver.ledger, method)(*args, **options)
        return loop.run_until_complete(getattr(saver.ledger, f"a{method}")(*args, **options))

    return call


def both(saver: Any) -> Any:
    """Two nodes that ask at once, each once or twice."""
    builder = StateGraph(State)
    for name, questions in (("left", ("l",)), ("right", ("r", "rr"))):
        builder.add_node(name, asks(*questions)).add_edge(START, name)
    return with_ledger(builder.compile(checkpointer=saver))


def asked(acts: Acts, **which: Any) -> dict[Any, Interrupt]:
    """The questions of the thread, by what they ask."""
    return {each.value: each for each in acts.saver.ledger.interrupts(thread_id="t", **which)}


def log(app: Any) -> list[str]:
    return app.get_state(CONFIG).values["log"]  # type: ignore[no-any-return]


def refused(acts: Acts, app: Any, given: Any, config: Any = CONFIG) -> str:
    """The code with which an invocation is refused; nothing is stored by it."""
    before = acts.saver.ledger.events(limit=10_000)
    with pytest.raises(LangGraphExtError) as refusal:
        acts.run(app, given, config)
    assert before == acts.saver.ledger.events(limit=10_000)
    return refusal.value.code


# -- the ledger's door


def test_l25_an_answer_is_on_record_before_anybody_resumes(acts: Acts, say: Callable[..., Any]) -> None:
    """It has its value, its time and who gave it; the run waits until its task has taken it."""
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    (question,) = say("interrupts", pending=True)
    (told,) = say("answer", {question.interrupt_id: {"yes": [1, None]}}, by="ann")

    assert ("answered", {"yes": [1, None]}, "json", "ann") == (
        str(told.status), told.answer, told.answer_type, told.answered_by,
    )  # fmt: skip
    assert told.answered_at is not None
    assert told.closed_at is None
    assert ([], [told]) == (say("interrupts", pending=True), say("interrupts", pending=False))
    assert ("paused", []) == (acts.saver.ledger.runs()[0].status, acts.saver.ledger.verify())
    acts.run(app, say("resume_command", "t"))
    (taken,) = say("interrupts")
    assert ("answered", told.answered_at) == (str(taken.status), taken.answered_at)
    assert taken.closed_at is not None
    assert ["in", "{'yes': [1, None]}"] == log(app)


def test_l25_the_first_answer_counts(acts: Acts, say: Callable[..., Any]) -> None:
    """The same again changes nothing, another one is told whose answer counts; so it is when the run has ended."""
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    (question,) = say("interrupts")
    say("answer", {question.interrupt_id: {"a": 1, "b": 2}}, by="ann")
    events = acts.saver.ledger.events(limit=1000)

    def again() -> None:
        say("answer", {question.interrupt_id: {"b": 2, "a": 1}}, by="bob")
        with pytest.raises(ConflictError, match="given by 'ann' at") as refusal:
            say("answer", {question.interrupt_id: {"a": True, "b": 2}})
        assert ("answer_conflict", "ann") == (refusal.value.code, refusal.value.details["answered_by"])

    again()
    assert events == acts.saver.ledger.events(limit=1000)
    acts.run(app, say("resume_command", "t"))
    assert "succeeded" == acts.saver.ledger.runs()[0].status
    again()


def test_l25_an_unknown_question_is_refused_by_name_and_the_others_with_it(acts: Acts, say: Callable[..., Any]) -> None:
    app = both(acts.saver)
    acts.run(app)
    left = asked(acts)["l"].interrupt_id
    with pytest.raises(NotFound, match=SOME_ID) as refusal:
        say("answer", {left: "L", SOME_ID: "?"})

    assert "interrupt_not_found" == refusal.value.code
    assert {"l", "r"} == asked(acts, pending=True).keys()


def test_l25_a_question_that_waits_no_more_is_refused(acts: Acts, say: Callable[..., Any]) -> None:
    """Superseded, or answered by a graph that is not attached, which puts nothing on record."""
    plain = line(acts.saver, ask=asks("sure?"))
    for end in (Command(resume="yes"), ("new",)):
        acts.run(plain)
        (question,) = say("interrupts", pending=True)
        acts.run(plain, end)
        with pytest.raises(ConflictError) as refusal:
            say("answer", {question.interrupt_id: "late"})
        assert "interrupt_not_pending" == refusal.value.code


@pytest.mark.parametrize(
    "answers",
    [{}, None, [(SOME_ID, "x")], {3: "x"}, {SOME_ID: "x" * 2 * 1024 * 1024}, {SOME_ID: object()}, {SOME_ID: 10**400}],
    ids=["none", "nothing", "pairs", "key", "long", "object", "great"],
)
def test_l25_what_can_never_be_an_answer_is_refused(say: Callable[..., Any], saver: LedgerSaver, answers: Any) -> None:
    saver.setup()
    with pytest.raises(InvalidArgument):
        say("answer", answers)


def test_l25_answers_are_bounded_together(saver: LedgerSaver) -> None:
    app = both(saver)
    app.invoke({"log": []}, CONFIG)
    ids = [each.interrupt_id for each in saver.ledger.interrupts()]
    half = "x" * (1024 * 1024 - 2)
    with pytest.raises(InvalidArgument, match="2097152"):
        saver.ledger.answer(dict.fromkeys(ids, half + "x"))
    saver.ledger.answer(dict.fromkeys(ids, half))

    assert [half, half] == [each.answer for each in saver.ledger.interrupts()]


def test_l25_what_is_no_json_is_kept_by_the_serde(saver: LedgerSaver) -> None:
    """A set comes back as one; a ledger without a serde refuses it, and gives out no half of it."""
    app = with_ledger(line(saver, ask=asks("sure?")))
    app.invoke({"log": []}, CONFIG)
    (question,) = saver.ledger.interrupts()
    with RunLedger(saver.database) as plain:
        with pytest.raises(InvalidArgument, match="serde"):
            plain.answer({question.interrupt_id: {1, 2}})
        saver.ledger.answer({question.interrupt_id: {1, 2}})
        assert [None] == [each.answer for each in plain.interrupts()]
        with pytest.raises(InvalidArgument, match="serde"):
            plain.resume_command("t")
    saver.ledger.answer({question.interrupt_id: {1, 2}})
    app.invoke(saver.ledger.resume_command("t"), CONFIG)

    assert ["{1, 2}"] == log(app)


class Cipher(CipherProtocol):
    """Another text each time."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        key = secrets.token_bytes(1)
        return "xor", key + bytes(byte ^ key[0] ^ 255 for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return bytes(byte ^ ciphertext[0] ^ 255 for byte in ciphertext[1:])


def test_l25_under_encryption_an_answer_is_encrypted(backend: Any) -> None:
    """The same value again is known, though its bytes differ; who has no key cannot answer in the clear."""
    saver = backend.open(serde=EncryptedSerializer(Cipher()))
    app = with_ledger(line(saver, ask=asks("sure?")))
    app.invoke({"log": []}, CONFIG)
    (question,) = saver.ledger.interrupts()
    with RunLedger(backend.url()) as keyless, pytest.raises(EncryptionError, match="no key was given"):
        keyless.answer({question.interrupt_id: "secret"})
    for _ in range(2):
        saver.ledger.answer({question.interrupt_id: "secret"})
    with pytest.raises(ConflictError):
        saver.ledger.answer({question.interrupt_id: "other"})
    with closing(sqlite3.connect(backend.url())) as connection:
        [(stored,)] = connection.execute("SELECT answer FROM interrupt").fetchall()

    assert b"secret" not in stored
    app.invoke(Command(resume="secret"), CONFIG)
    assert ["secret"] == log(app)


def test_l26_resume_command_gives_the_answers_that_are_not_taken(acts: Acts, say: Callable[..., Any]) -> None:
    """Those of the thread's open run; none on record is an error, and not a command that says nothing."""
    app = both(acts.saver)
    acts.run(app)
    questions = asked(acts)
    with pytest.raises(ConflictError, match="answer them first"):
        say("resume_command", "t")
    say("answer", {questions["r"].interrupt_id: None})

    command = say("resume_command", "t")
    assert {questions["r"].interrupt_id: None} == command.resume == say("resume_command", "t").resume
    acts.run(app, command)
    assert {"l", "rr"} == asked(acts, pending=True).keys()
    with pytest.raises(ConflictError):
        say("resume_command", "t")


def test_l26_the_command_serves_a_graph_that_is_not_attached(acts: Acts, say: Callable[..., Any]) -> None:
    plain = line(acts.saver, ask=asks("one", "two"))
    acts.run(plain)
    for value in ("A", "B"):
        (question,) = say("interrupts", pending=True)
        say("answer", {question.interrupt_id: value})
        acts.run(plain, say("resume_command", "t"))

    assert ["in", "A", "B"] == log(plain)
    assert ["answered", "taken"] * 2 == [
        name.removeprefix("interrupt.") for name in acts.events("interrupt") if name != "interrupt.requested"
    ]


def test_l26_invoking_without_input_gives_the_answers_on_record_too(acts: Acts, say: Callable[..., Any]) -> None:
    app = with_ledger(line(acts.saver, ask=asks("sure?"), after=says("after")))
    acts.run(app)
    acts.run(app, None)  # nothing is on record: it asks again
    assert ["paused"] == [str(run.status) for run in acts.saver.ledger.runs()]
    (question,) = say("interrupts")
    say("answer", {question.interrupt_id: "yes"})
    acts.run(app, None)

    assert ["in", "yes", "after"] == log(app)


# -- commands of attached graphs


@pytest.mark.parametrize(
    "value",
    [
        *[None, {}, {1: "v"}, {"decisions": [{"type": "approve"}]}, 0, b"yes"],
        *(pytest.param(each, marks=pytest.mark.slow) for each in ([], ["a", "b"], False, "", "yes", {"a": {}})),
    ],
    ids=repr,
)
def test_scenario_05_l25_any_value_is_the_answer_it_is(acts: Acts, value: Any) -> None:
    """It reaches the task as that value, whatever LangGraph would have made of it; a second question stays open."""
    got: list[Any] = []

    def node(state: State) -> Any:
        got.append(interrupt("first"))
        return {"log": [str(interrupt("second"))]}

    app = with_ledger(line(acts.saver, ask=node))
    acts.run(app)
    command: Any = Command(resume=value)
    acts.run(app, command)

    assert ([value], [type(value)]) == (got, [type(each) for each in got])
    assert value is command.resume or value == command.resume  # the caller's command is his
    assert {"second"} == asked(acts, pending=True).keys()
    acts.run(app, Command(resume="end"))
    assert (["in", "end"], []) == (log(app), acts.saver.ledger.verify())


def test_scenario_05_odd_answers_are_refused_by_name_and_the_second_question_stays_open(acts: Acts) -> None:
    """A re-sent first answer, foreign and unknown ids, an id of another thread."""
    app = with_ledger(line(acts.saver, ask=asks("first", "second")))
    acts.run(app, config=OTHER)
    acts.run(app)
    (foreign,) = acts.saver.ledger.interrupts(thread_id="other")
    first = asked(acts)["first"].interrupt_id
    acts.run(app, Command(resume={first: "1"}))
    second = asked(acts)["second"].interrupt_id

    assert "interrupt_not_pending" == refused(acts, app, Command(resume={first: "1"}))
    assert "answer_conflict" == refused(acts, app, Command(resume={first: "other"}))
    assert "interrupt_not_found" == refused(acts, app, Command(resume={SOME_ID: "2"}))
    assert "interrupt_not_found" == refused(acts, app, Command(resume={second: "2", SOME_ID: "2"}))
    assert "interrupt_not_found" == refused(acts, app, Command(resume={"note": "x", SOME_ID: "2"}))
    assert "interrupt_not_found" == refused(acts, app, Command(resume={foreign.interrupt_id: "2"}))
    assert {"second"} == asked(acts, pending=True).keys()
    acts.run(app, Command(resume={first: "1", second: "2"}))
    assert ["in", "1", "2"] == log(app)


def test_l25_one_answer_to_several_questions_is_ambiguous(acts: Acts) -> None:
    app = both(acts.saver)
    acts.run(app)

    assert "answer_ambiguous" == refused(acts, app, Command(resume="which?"))
    assert "answer_ambiguous" == refused(acts, app, Command(resume={}))


def test_l25_parallel_questions_are_answered_one_by_one(acts: Acts) -> None:
    """Each gets its own; what was not answered stays open, and one pause is told for each invocation (L27)."""
    app = both(acts.saver)
    acts.run(app)
    right = asked(acts)["r"].interrupt_id
    acts.run(app, Command(resume={right: "R"}))
    assert {"l", "rr"} == asked(acts, pending=True).keys()
    acts.run(app, Command(resume={asked(acts)["l"].interrupt_id: "L"}))
    assert {"rr"} == asked(acts, pending=True).keys()
    acts.run(app, Command(resume="RR"))

    assert ["L", "R", "RR", "in"] == sorted(log(app))
    assert (3, 3) == (acts.events("run").count("run.paused"), acts.events("run").count("run.resumed"))
    assert [] == acts.saver.ledger.verify()


def test_l25_what_was_put_on_record_first_wins_over_the_command(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    (question,) = acts.saver.ledger.interrupts()
    acts.saver.ledger.answer({question.interrupt_id: "first"})

    assert "answer_conflict" == refused(acts, app, Command(resume="second"))
    acts.run(app, Command(resume="first"))
    assert ["in", "first"] == log(app)


def test_l25_nothing_to_answer_is_an_error(acts: Acts) -> None:
    """No run, or one that has ended: then it says whose answer counted. The same answer again, by its id, is none."""
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    assert "interrupt_not_pending" == refused(acts, app, Command(resume="yes"))
    acts.run(app)
    (question,) = acts.saver.ledger.interrupts()
    acts.run(app, Command(resume="yes"))
    with pytest.raises(ConflictError, match=f"{question.interrupt_id}.*given at") as refusal:
        acts.run(app, Command(resume="yes"))
    assert "interrupt_not_pending" == refusal.value.code
    assert "answer_conflict" == refused(acts, app, Command(resume={question.interrupt_id: "no"}))
    acts.run(app, Command(resume={question.interrupt_id: "yes"}))

    assert ["in", "yes"] == log(app)


def test_l25_at_a_breakpoint_a_command_goes_on_and_answers_nothing(acts: Acts) -> None:
    """What it says is not the answer to a question that is asked behind it."""
    app = with_ledger(line(acts.saver, a=says("a"), ask=asks("sure?")))
    acts.run(app, interrupt_before=["ask"])
    acts.run(app, Command(resume="go on"))
    assert {"sure?"} == asked(acts, pending=True).keys()
    acts.run(app, Command(resume="yes"))

    assert ["in", "a", "yes"] == log(app)


def test_l25_a_command_may_update_the_state_besides(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    acts.run(app, Command(resume={}, update={"log": ["edited"]}))

    assert ["in", "edited", "{}"] == log(app)


def test_l25_questions_of_subgraphs_are_answered(acts: Acts) -> None:
    """Also of one that keeps no checkpoints of its own, which LangGraph does not reach by id."""
    inner = line(None, deep=asks("one", "two"))
    app = with_ledger(line(acts.saver, sub=line(None, sub=inner)))
    acts.run(app)
    acts.run(app, Command(resume={}))
    acts.run(app, Command(resume={asked(acts)["two"].interrupt_id: [2]}))
    assert ["{}", "[2]"] == log(app)[-2:]
    if acts.durability == "sync":
        return  # LangGraph 1.2 fails with durability sync and a subgraph compiled with checkpointer=False

    outer = StateGraph(State).add_node("sub", _forgetful()).add_edge(START, "sub")
    forgetful = with_ledger(outer.compile(checkpointer=acts.saver))
    acts.run(forgetful, config=OTHER)
    acts.run(forgetful, Command(resume="yes"), OTHER)
    assert "yes" == forgetful.get_state(OTHER).values["log"][-1]


def _forgetful() -> Any:
    return StateGraph(State).add_node("deep", asks("?")).add_edge(START, "deep").compile(checkpointer=False)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_l25_the_answer_is_not_given_to_a_task_that_asks_in_passing(saver: LedgerSaver, durability: Any) -> None:
    """A neighbour that failed runs again, and asks its first question: the answer is for the other one."""
    late, asked_early = fails(1), threading.Event()

    def early(state: State) -> Any:
        asked_early.set()
        return asks("early")(state)

    def a_late(state: State) -> Any:
        assert asked_early.wait(30)  # who fails first may keep the other one from being run
        return late(state) and {"log": [f"late {interrupt('late')}"]}

    builder = StateGraph(State).add_node("early", early).add_edge(START, "early").add_edge(START, "a_late")
    builder.add_node("a_late", a_late)
    app = with_ledger(builder.compile(checkpointer=saver))
    tried(app, durability=durability)
    answered(app, "E", durability=durability)
    assert ["late"] == [each.value for each in saver.ledger.interrupts(pending=True)]
    answered(app, "L", durability=durability)

    assert ["E", "in", "late L"] == sorted(log(app))


def test_l25_questions_of_error_handlers_are_answered_one_by_one(acts: Acts) -> None:
    """By their ids, whichever comes first; a question that is asked behind one gets none of its answer."""

    def bad(state: State) -> Any:
        raise ValueError("bad")

    def handle(state: State, error: NodeError) -> Any:
        return {"log": [f"{error.node} {interrupt(error.node)} {interrupt(error.node + '2')}"]}

    builder = StateGraph(State)
    for name in ("left", "right"):
        builder.add_node(name, bad, error_handler=handle).add_edge(START, name)
    app = with_ledger(builder.compile(checkpointer=acts.saver))
    acts.run(app)
    for value in ("right", "left", "right2", "left2"):
        acts.run(app, Command(resume={asked(acts, pending=True)[value].interrupt_id: value.upper()}))

    assert ["in", "left LEFT LEFT2", "right RIGHT RIGHT2"] == sorted(log(app))
    assert [] == acts.saver.ledger.verify()


def test_l25_streams_answer_as_well(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    if acts.form == "sync":
        list(app.stream(Command(resume={}), CONFIG, durability=acts.durability))
    else:

        async def stream() -> None:
            async for _ in app.astream(Command(resume={}), CONFIG, durability=acts.durability):
                pass

        acts.loop.run_until_complete(stream())

    assert ["in", "{}"] == log(app)


def test_l25_an_old_checkpoint_that_is_named_is_langgraphs_affair(acts: Acts) -> None:
    """An old question answered anew is a fork, and takes nothing from what is on record."""
    app = with_ledger(line(acts.saver, ask=asks("sure?"), after=says("after")))
    acts.run(app)
    old = app.get_state(CONFIG).config
    acts.run(app, Command(resume="yes"), old)  # the head, by its name: as without it
    assert ["in", "yes", "after"] == log(app)
    assert ["yes"] == [each.answer for each in acts.saver.ledger.interrupts()]
    acts.run(app, Command(resume="yes"), old)

    assert 2 == len(acts.saver.ledger.runs())


def test_l25_a_handler_alone_refuses_what_langgraph_would_misread(acts: Acts) -> None:
    """It cannot write into the caller's command; what LangGraph reads as it is meant goes on."""
    app = line(acts.saver, ask=asks("one", "two")).with_config(callbacks=[LedgerCallbackHandler()])
    acts.run(app)
    for value in ({}, {1: "v"}, None):
        assert "invalid_argument" == refused(acts, app, Command(resume=value))
    acts.run(app, Command(resume={"decisions": []}))
    acts.run(app, Command(resume={asked(acts)["two"].interrupt_id: "2"}))

    assert ["in", "{'decisions': []}", "2"] == log(app)
    assert [{"decisions": []}, "2"] == [each.answer for each in acts.saver.ledger.interrupts()]


def test_l25_the_attached_graph_is_of_its_kind_and_can_be_copied(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    again = app.with_config(tags=["x"])
    acts.run(again)
    acts.run(again, Command(resume={}))

    assert isinstance(again, CompiledStateGraph)
    assert ["in", "{}"] == log(again)


# -- new input


def test_l25_new_input_is_refused_while_questions_are_open(acts: Acts) -> None:
    """By default; nothing runs, and the question can be answered."""
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    (question,) = acts.saver.ledger.interrupts()
    with pytest.raises(AdmissionError, match=question.interrupt_id):
        acts.run(app, ("other",))
    assert "questions_open" == refused(acts, app, ("other",))
    acts.run(app, Command(resume="yes"))
    acts.run(app, ("next",))

    assert ["in", "yes", "next"] == log(app)


def test_l25_or_supersedes_them(acts: Acts) -> None:
    if acts.durability == "exit":
        pytest.skip("under exit a saver sees one checkpoint, and not whether it began with an input")
    app = with_ledger(line(acts.saver, ask=asks("sure?")), on_open_questions="supersede")
    acts.run(app)
    acts.run(app, ("next",))

    assert ["superseded", "pending"] == [str(each.status) for each in acts.saver.ledger.interrupts()]
    assert ["paused", "cancelled"] == [str(run.status) for run in acts.saver.ledger.runs()]
    with pytest.raises(InvalidArgument, match="on_open_questions"):
        with_ledger(line(acts.saver, ask=asks("sure?")), on_open_questions="queue")  # type: ignore[arg-type]


# -- one pause


def test_l24_and_l27_a_question_asked_again_is_one_question_and_one_pause(acts: Acts) -> None:
    app = both(acts.saver)
    acts.run(app)
    before = acts.events("run", "interrupt")
    for _ in range(3):
        acts.run(app, None)

    assert before == acts.events("run", "interrupt")
    assert (1, 2) == (before.count("run.paused"), before.count("interrupt.requested"))
    assert "paused" == acts.saver.ledger.runs()[0].status


def test_l27_a_run_that_is_stopped_on_its_way_to_a_question_is_paused(acts: Acts) -> None:
    """An answer is given, and before its task takes it the invocation is over."""
    control = RunControl()
    control.request_drain("shutdown")
    app = both(acts.saver)
    acts.run(app)
    right = asked(acts)["r"].interrupt_id
    with pytest.raises(GraphDrained):
        acts.run(app, Command(resume={right: "R"}), control=control)
    acts.lease()  # by now, its end is stored
    (run,) = acts.saver.ledger.runs()

    assert ("paused", []) == (run.status, acts.saver.ledger.verify())
    acts.run(app, None)
    assert {"l", "rr"} == asked(acts, pending=True).keys()
