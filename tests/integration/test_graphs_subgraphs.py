"""Subgraphs over LedgerSaver behave as over InMemorySaver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from tests.support.build import whole
from tests.support.stories import Teller


def merge(old: list[str], new: list[str]) -> list[str]:
    """What is new comes last: a subgraph hands its parent the whole list."""
    return old + [item for item in new if item not in old]


class State(TypedDict, total=False):
    """What parent and child share."""

    log: Annotated[list[str], merge]
    answer: str


def ask(state: State) -> State:
    return {"log": ["asked"], "answer": interrupt({"question": len(state["log"])})}


def child(checkpointer: Any = None) -> Any:
    """A subgraph that prepares, asks, and uses the answer."""
    builder = StateGraph(State)
    builder.add_node("prepare", lambda state: {"log": [f"prepared {len(state['log'])}"]})
    builder.add_node("ask", ask)
    builder.add_node("use", lambda state: {"log": [f"used {state['answer']}"]})
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "ask")
    builder.add_edge("ask", "use")
    return builder.compile(checkpointer=checkpointer)


def as_node(saver: Any, checkpointer: Any = None) -> Any:
    """The child as a node between two others."""
    builder = StateGraph(State)
    builder.add_node("before", lambda state: {"log": ["before"]})
    builder.add_node("child", child(checkpointer))
    builder.add_node("after", lambda state: {"log": [f"after {len(state['log'])}"]})
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=saver)


def inside_a_node(saver: Any) -> Any:
    """The child called twice by a node's own code."""
    asked = child()

    def caller(state: State) -> State:
        first = asked.invoke({"log": ["first"]})
        second = asked.invoke({"log": ["second"]})
        return {"log": [first["answer"], second["answer"]]}

    builder = StateGraph(State)
    builder.add_node("caller", caller)
    builder.add_edge(START, "caller")
    return builder.compile(checkpointer=saver)


def three_deep(saver: Any) -> Any:
    """A graph in a graph in a graph; the innermost asks."""
    middle = StateGraph(State)
    middle.add_node("inner", child())
    middle.add_edge(START, "inner")
    outer = StateGraph(State)
    outer.add_node("middle", middle.compile())
    outer.add_edge(START, "middle")
    return outer.compile(checkpointer=saver)


def side_by_side(saver: Any) -> Any:
    """Two subgraphs that ask in the same step."""
    builder = StateGraph(State)
    for name in ("left", "right"):
        sub = StateGraph(State)
        sub.add_node(f"{name}-step", lambda state, name=name: {"log": [f"{name} {interrupt(name)}"]})
        sub.add_edge(START, f"{name}-step")
        builder.add_node(f"sub-{name}", sub.compile())
        builder.add_edge(START, f"sub-{name}")
        builder.add_edge(f"sub-{name}", END)
    return builder.compile(checkpointer=saver)


def ask_and_answer(teller: Teller) -> None:
    """Run until the question, answer it, then another turn on the same thread."""
    for turn in ("one", "two"):
        teller.run({"log": [turn]})
        teller.run(Command(resume=f"answer {turn}"))


@pytest.mark.parametrize("checkpointer", [None, True], ids=["own namespace", "a stable namespace"])
def test_s1_a_subgraph_asks_and_goes_on(both: Callable[..., Teller], checkpointer: Any) -> None:
    """A subgraph that interrupts is resumed where it was, in a namespace per call or one that remembers."""
    teller = both(lambda saver: as_node(saver, checkpointer), ask_and_answer)

    final = teller.state()
    assert ("answer two", ()) == (final.values["answer"], final.next)
    assert {"used answer one", "used answer two"} <= set(final.values["log"])


def test_s1_a_subgraph_without_checkpoints_starts_over(both: Callable[..., Teller], durability: str) -> None:
    """`checkpointer=False`: the subgraph stores nothing and runs from its start when it is resumed."""
    if durability == "sync":
        pytest.skip("LangGraph 1.2 fails with durability sync and a subgraph compiled with checkpointer=False")
    teller = both(lambda saver: as_node(saver, False), lambda teller: teller.run({"log": ["one"]}))

    assert {""} == {item.config["configurable"]["checkpoint_ns"] for item in teller.saver.list(whole())}


def test_s1_subgraphs_called_by_a_node_have_namespaces_of_their_own(
    both: Callable[..., Teller], durability: str
) -> None:
    """Two calls in one node are two subgraph runs, each with its own question; "exit" forgets the first answer."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run(Command(resume="yes"))
        teller.run(Command(resume="no"))

    teller = both(inside_a_node, story)
    assert (["in", "yes", "no"] if durability != "exit" else ["in"]) == teller.state().values["log"]


def test_s1_a_subgraph_three_levels_deep_asks_and_goes_on(both: Callable[..., Teller]) -> None:
    """The state of every level is found while it is paused, and the answer reaches the innermost."""
    teller = both(three_deep, ask_and_answer)

    assert "answer two" == teller.state().values["answer"]
    depths = {item.config["configurable"]["checkpoint_ns"].count("|") for item in teller.saver.list(whole())}
    assert {0, 1} == depths


def test_s1_two_subgraphs_ask_in_one_step(both: Callable[..., Teller]) -> None:
    """Each is answered by its interrupt's id, one after the other."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        for value in ("right", "left"):
            question = next(item for item in teller.state().interrupts if item.value == value)
            teller.run(Command(resume={question.id: f"answer {value}"}))

    teller = both(side_by_side, story)
    assert ["in", "left answer left", "right answer right"] == teller.state().values["log"]


def test_s1_a_paused_subgraph_is_updated_and_goes_on(both: Callable[..., Teller]) -> None:
    """`update_state` on the subgraph's own config changes what it goes on with."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["one"]})
        paused = teller.state(subgraphs=True).tasks[0].state
        teller.update({"log": ["edited"]}, paused.config)  # type: ignore[union-attr]
        teller.run(Command(resume="yes"))

    teller = both(as_node, story)
    assert "edited" in teller.state().values["log"]


def test_s1_a_paused_subgraph_is_answered_by_update_as_its_node(both: Callable[..., Teller]) -> None:
    """`update_state(as_node=…)` on the subgraph's config stands in for the node that asked."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["one"]})
        paused = teller.state(subgraphs=True).tasks[0].state
        teller.update({"answer": "by hand", "log": ["instead"]}, paused.config, as_node="ask")  # type: ignore[union-attr]
        teller.run(None)

    teller = both(as_node, story)
    assert ("by hand", ()) == (teller.state().values["answer"], teller.state().next)


def test_s1_the_history_of_a_subgraph_is_found(both: Callable[..., Teller]) -> None:
    """`get_state_history` on the subgraph's config lists its own checkpoints, newest first."""
    steps: list[list[int]] = []

    def story(teller: Teller) -> None:
        teller.run({"log": ["one"]})
        paused = teller.state(subgraphs=True).tasks[0].state
        where = {"configurable": {k: paused.config["configurable"][k] for k in ("thread_id", "checkpoint_ns")}}  # type: ignore[union-attr]
        steps.append([item.metadata["step"] for item in teller.history(where)])  # type: ignore[index, typeddict-item]

    both(as_node, story)
    assert steps[0] == steps[1] == sorted(steps[0], reverse=True)
    assert 1 == steps[0][0]
