"""Graphs whose runs the ledger is asked about, each a few lines long."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Boom(ValueError):
    """What a node of these tests raises."""


def says(word: str) -> Callable[[State], dict[str, list[str]]]:
    """A node that adds a word to the log."""
    return lambda state: {"log": [word]}


def fails(times: int, word: str = "late") -> Callable[[State], dict[str, list[str]]]:
    """A node that raises the first `times` times it is called."""
    left = iter(range(times))

    def node(state: State) -> dict[str, list[str]]:
        for _ in left:
            raise Boom(f"{word} failed")
        return {"log": [word]}

    return node


def asks(*questions: Any) -> Callable[[State], dict[str, list[str]]]:
    """A node that asks these questions, one after the other, and adds the answers to the log."""
    return lambda state: {"log": [str(interrupt(question)) for question in questions]}


def graph_of(node: Any, state: Any = MessagesState) -> Any:
    """A builder of a graph of this node alone, under the name it has."""
    builder: Any = StateGraph(state)
    return builder.add_node(node).add_edge(START, node.name)


def line(saver: Any, **nodes: Any) -> Any:
    """A graph of these nodes, one after the other."""
    builder = StateGraph(State)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(before, name)
        before = name
    return builder.add_edge(before, END).compile(checkpointer=saver)


def looped(node: Any, rounds: int, name: str = "a") -> Any:
    """A builder of a graph that runs a node so many times, if its input and each round add an entry to the log."""
    builder = StateGraph(State).add_node(name, node).add_edge(START, name)
    return builder.add_conditional_edges(name, lambda state: name if len(state["log"]) <= rounds else END)


def fan(saver: Any, *names: str, **nodes: Any) -> Any:
    """A graph that sends one task to each of `names`, and then runs `end`."""
    builder = StateGraph(State).add_node("split", says("split")).add_node("end", says("end")).add_edge(START, "split")
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(name, "end")
    builder.add_conditional_edges("split", lambda state: [Send(name, {"log": []}) for name in names], list(nodes))
    return builder.compile(checkpointer=saver)


def tried(app: Any, given: Any = ("in",), config: Any = CONFIG, **options: Any) -> None:
    """Run until it ends, fails or asks."""
    if isinstance(given, tuple):
        given = {"log": list(given)}
    with suppress(Boom):
        app.invoke(given, config, **options)


def answered(app: Any, answer: Any = "yes", **options: Any) -> None:
    """Answer the open question."""
    tried(app, Command(resume=answer), **options)


def names(events: Any) -> Iterator[str]:
    """Names of events."""
    return (event.name for event in events)
