"""Interrupts over LedgerSaver behave as over InMemorySaver."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from tests.support.build import whole
from tests.support.stories import Teller


class State(TypedDict, total=False):
    """A log, and a flag that commands set."""

    log: Annotated[list[Any], operator.add]
    flag: str


def several_in_one_node(saver: Any) -> Any:
    """A node that asks three times, then another that asks once."""

    def ask(state: State) -> State:
        return {"log": [interrupt("first"), interrupt("second"), interrupt({"third": len(state["log"])})]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("confirm", lambda state: {"log": [interrupt("sure?")]})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "confirm")
    return builder.compile(checkpointer=saver)


def parallel(saver: Any) -> Any:
    """Three nodes in one step: two ask, one does not; then one that comes after all of them."""
    builder = StateGraph(State)
    builder.add_node("left", lambda state: {"log": [("left", interrupt("left"))]})
    builder.add_node("quick", lambda state: {"log": ["quick"]})
    builder.add_node("right", lambda state: {"log": [("right", interrupt("right")), interrupt("right again")]})
    builder.add_node("after", lambda state: {"log": [len(state["log"])]})
    for name in ("left", "quick", "right"):
        builder.add_edge(START, name)
    builder.add_edge(["left", "quick", "right"], "after")
    return builder.compile(checkpointer=saver)


def asking_and_failing(saver: Any) -> Any:
    """One node asks while its neighbour fails once."""
    calls: list[int] = []

    def bad(state: State) -> State:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return {"log": ["good at last"]}

    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"log": [interrupt("?")]})
    builder.add_node("bad", bad)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "bad")
    return builder.compile(checkpointer=saver)


def stops(saver: Any) -> Any:
    """A graph that stops before and after named nodes."""
    builder = StateGraph(State)
    for name, following in (("a", "b"), ("b", "c"), ("c", None)):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
        if following:
            builder.add_edge(name, following)
    builder.add_edge(START, "a")
    return builder.compile(checkpointer=saver, interrupt_before=["b"], interrupt_after=["b"])


def test_s1_several_questions_in_one_node(both: Callable[..., Teller], durability: str) -> None:
    """Each answer reaches its own question, in order, and the next node's question is another one."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        for answer in ("one", "two", "three", "yes"):
            teller.run(Command(resume=answer))

    state = both(several_in_one_node, story).state()
    if durability != "exit":  # "exit" never stores the answers before the last one
        assert (["in", "one", "two", "three", "yes"], ()) == (state.values["log"], state.next)


@pytest.mark.parametrize("answer", [None, 0, "", [], {}, {"a": 1}, ["one", "two"], False])
def test_s1_any_value_is_an_answer(both: Callable[..., Teller], answer: Any) -> None:
    """Also an empty one: what LangGraph makes of it is the same over both savers."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run(Command(resume=answer))

    assert 1 <= len(both(several_in_one_node, story).told)


def test_s1_questions_in_parallel_nodes(both: Callable[..., Teller]) -> None:
    """Answered by interrupt id, one at a time and together; the node that did not ask does not run again."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        ids = {item.value: item.id for item in teller.state().interrupts}
        teller.run(Command(resume="which one?"))  # refused: two questions are open
        teller.run(Command(resume={ids["right"]: "R"}))
        ids = {item.value: item.id for item in teller.state().interrupts}
        teller.run(Command(resume={ids["left"]: "L", ids.get("right again", ids["left"]): "RR"}))

    told = both(parallel, story)
    assert "which one?" not in str(told.state().values)
    assert 1 == str(told.state().values["log"]).count("quick")


def test_s1_new_input_on_a_paused_thread(both: Callable[..., Teller]) -> None:
    """The open question is left behind: the graph starts over with the new input."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run({"log": ["new"]})
        teller.run(Command(resume="one"))

    told = both(several_in_one_node, story)
    assert ["in", "new"] == told.state().values["log"]


def test_s1_an_answer_with_an_update(both: Callable[..., Teller]) -> None:
    """`Command(resume=…, update=…)` stores both, and both are seen."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run(Command(resume="one", update={"flag": "set"}))

    told = both(several_in_one_node, story)
    assert "set" == told.state().values["flag"]


def test_s1_a_question_beside_a_failure(both: Callable[..., Teller]) -> None:
    """A step where one node asks and one fails: the error is told, and an answer runs both again."""

    def story(teller: Teller) -> None:
        assert "ValueError" == teller.run({"log": ["in"]})[0]
        teller.run(Command(resume="yes"))

    state = both(asking_and_failing, story).state()
    assert (["in", "yes", "good at last"], ()) == (state.values["log"], state.next)


def test_s1_stops_before_and_after_nodes(both: Callable[..., Teller]) -> None:
    """`interrupt_before` and `interrupt_after` pause a run that `invoke(None)` continues."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        for _ in range(3):
            teller.run(None)

    state = both(stops, story).state()
    assert (["in", "a", "b", "c"], ()) == (state.values["log"], state.next)


def test_s1_an_old_question_is_answered_again(both: Callable[..., Teller]) -> None:
    """Answering from the checkpoint of an earlier question makes a fork that goes its own way."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        asked = teller.state().config
        for answer in ("one", "two", "three", "yes"):
            teller.run(Command(resume=answer))
        teller.run(Command(resume="other"), asked)

    told = both(several_in_one_node, story)
    assert len(told.history()) > 3


def test_s1_an_abandoned_question_is_not_listed_after_the_thread_is_deleted(both: Callable[..., Teller]) -> None:
    """A deleted thread starts from nothing, whatever was pending."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        if teller.form == "sync":
            teller.saver.delete_thread("t")
        else:
            teller.loop.run_until_complete(teller.saver.adelete_thread("t"))
        teller.look()
        teller.run(Command(resume="nobody asked"))
        teller.run({"log": ["again"]})

    state = both(several_in_one_node, story).state(whole())
    assert ["again"] == state.values["log"]
