"""Scenarios for the crash harness that come back, their effects done once, and do not end as undisturbed."""

from __future__ import annotations

import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import interrupt

from langgraph_ext import Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import RecoveryRequired
from langgraph_ext.testing import EffectLog

CONFIG: Any = {"configurable": {"thread_id": "trip"}}


class Trip(TypedDict, total=False):
    tries: int
    seats: set[str]
    messages: Annotated[list[AnyMessage], add_messages]


def go(app: Any) -> None:
    """Start the run, or go on with it."""
    state = app.get_state(CONFIG)
    if state.created_at is None or state.tasks:
        app.invoke({} if state.created_at is None else None, CONFIG, durability="sync")


def run(url: str, node: Any) -> None:
    with LedgerSaver(url) as saver:
        go(StateGraph(Trip).add_node("book", node).add_edge(START, "book").compile(checkpointer=saver))


def _tries(effects: EffectLog) -> int:
    """How often the node ran; the harness allows any number of it."""
    effects.record("try")
    return effects.count("try")


def charges_another_amount(url: str, effects: EffectLog) -> None:
    """Once, under one key, and more after a crash."""

    def book(trip: Trip) -> Trip:
        tries = _tries(effects)
        if not effects.count("charge"):
            effects.record("charge", of={"cents": 600 + 100 * tries}, key="k", at_us=time.time_ns())
        return {}

    with LedgerSaver(url) as saver:  # a crash before the node counts as a try
        if saver.get_tuple(CONFIG) is not None:
            effects.record("try")
    run(url, book)


def keeps_another_value(url: str, effects: EffectLog) -> None:
    run(url, lambda trip: {"tries": _tries(effects), "seats": {"1A", "1B", "2C"}})


def says_something_else(url: str, effects: EffectLog) -> None:
    """In a message whose id is another one each time."""
    run(url, lambda trip: {"messages": [AIMessage(f"try {_tries(effects)}")]})


def stops_at_its_question(url: str, effects: EffectLog) -> None:
    def book(trip: Trip) -> Trip:
        interrupt("sure?")
        return {}

    with LedgerSaver(url) as saver:
        app = StateGraph(Trip).add_node(book).add_edge(START, "book").compile(checkpointer=saver)
        if not app.get_state(CONFIG).interrupts:
            go(app)


def leaves_in_doubt(url: str, effects: EffectLog) -> None:
    """Goes on behind a payment of which nobody knows whether it was made, without asking."""

    @durable(effect="write")
    def pay(trip: Trip, frame: Frame) -> Trip:
        frame.once("charge", {}, lambda key: effects.record("charge"))
        return {}

    with LedgerSaver(url) as saver:
        inner = StateGraph(Trip).add_node(pay).add_edge(START, "pay").compile()
        builder = StateGraph(Trip).add_node("book", inner).add_edge(START, "book")
        app = with_ledger(builder.compile(checkpointer=saver))
        try:
            go(app)
        except RecoveryRequired:
            app.update_state(CONFIG, {}, as_node="book")


def has_another_key_each_time(url: str, effects: EffectLog) -> None:
    effects.record(f"charge {time.time_ns()}")
    run(url, lambda trip: {})


def raises_in_a_node(url: str, effects: EffectLog) -> None:
    def book(trip: Trip) -> Trip:
        raise ValueError("no seats")

    run(url, book)


def always_wrong(url: str, effects: EffectLog) -> None:
    """As `leaves_in_doubt`, and repeats an effect whenever it is gone on with."""
    effects.record("begun")
    leaves_in_doubt(url, effects)


def prints_much(url: str, effects: EffectLog) -> None:
    for _ in range(300):
        print("a long line of no interest")
    raises_in_a_node(url, effects)


def hangs_behind_one_commit(url: str, effects: EffectLog) -> None:
    """Where it was killed behind the second; the others end."""
    with LedgerSaver(url) as saver:
        state = saver.get_tuple(CONFIG)
    if state is not None and len(state.pending_writes or ()) == 1:
        time.sleep(1000)
    run(url, lambda trip: {})
