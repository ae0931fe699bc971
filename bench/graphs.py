"""Graphs: what the cases run. Their nodes do next to nothing, so that time goes to LangGraph and the saver."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from bench.driver import App, Driver

__all__ = ["chat", "fan_out", "linear", "prose"]


class Count(TypedDict):
    n: int
    note: str


class Fan(TypedDict):
    items: list[int]
    out: Annotated[list[int], operator.add]


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _extended(messages: list[AnyMessage], batches: Sequence[list[AnyMessage]]) -> list[AnyMessage]:
    """As LangGraph's own reducer of batches, which has no public name; nothing is edited here."""
    return [*messages, *(message for batch in batches for message in batch)]


class DeltaChat(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_extended)]


def linear(driver: Driver, nodes: int) -> App:
    """`nodes` nodes in a row, each of which adds one: a superstep each."""
    graph = StateGraph(Count)
    for number in range(nodes):
        graph.add_node(f"n{number}", _in_form(driver, lambda state: {"n": state["n"] + 1}))
        graph.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    graph.add_edge(f"n{nodes - 1}", END)
    return graph.compile(checkpointer=driver.saver)


def fan_out(driver: Driver, tasks: int) -> App:
    """One node that sends `tasks` tasks, which all run in one superstep."""
    graph = StateGraph(Fan)
    graph.add_node("source", lambda _state: {"items": [1]})
    graph.add_node("work", _in_form(driver, lambda sent: {"out": [sent["i"]]}))
    graph.add_edge(START, "source")
    sends = [Send("work", {"i": number, "payload": "x" * 200}) for number in range(tasks)]
    graph.add_conditional_edges("source", lambda _state: sends, ["work"])
    graph.add_edge("work", END)
    return graph.compile(checkpointer=driver.saver)


def chat(driver: Driver, body: Callable[[], str], *, delta: bool = False) -> App:
    """A bot that answers each message with another; their list grows by two a turn, in a DeltaChannel if asked to."""
    graph = StateGraph(DeltaChat if delta else Chat)
    graph.add_node("bot", _in_form(driver, lambda _state: {"messages": [AIMessage(body())]}))
    graph.add_edge(START, "bot")
    graph.add_edge("bot", END)
    return graph.compile(checkpointer=driver.saver)


def prose() -> Callable[[], str]:
    """Makes messages of about 1 KB that compress about as well as prose, no two of them equal; always the same row."""
    dice = random.Random(7)
    words = ["".join(dice.choices("etaoinshrdlucmfwypvbgk", k=dice.randint(2, 9))) for _ in range(3000)]
    return lambda: " ".join(dice.choices(words, k=155))


def _in_form(driver: Driver, node: Callable[[Any], dict[str, Any]]) -> Any:
    if driver.form == "sync":
        return node

    async def asynchronous(state: Any) -> dict[str, Any]:
        return node(state)

    return asynchronous
