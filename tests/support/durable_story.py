"""A scenario for the crash harness: durable nodes that act, in an attached graph, with a fan-out and a question."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import RecoveryRequired
from langgraph_ext.testing import EffectLog

CONFIG: Any = {"configurable": {"thread_id": "story"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def build(log: EffectLog) -> Any:
    """first → left and right → ask → mail → last; each acts once on the outside."""

    def node(name: str) -> Any:
        @durable(effect="write")
        def act(state: State, frame: Frame) -> Any:
            frame.once(name, {"of": name}, lambda key: log.record(name))
            return {"log": [interrupt("go on?") if name == "ask" else name]}

        return act

    builder = StateGraph(State)
    for name in ("first", "left", "right", "ask", "mail", "last"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "first").add_edge("first", "left").add_edge("first", "right")
    builder.add_edge(["left", "right"], "ask").add_edge("ask", "mail").add_edge("mail", "last")
    return builder.add_edge("last", END)


def scenario(db_url: str, effects: EffectLog) -> None:
    """Run to the end: answer what is asked, and say of what is in doubt what the log knows."""
    with LedgerSaver(db_url) as saver:
        app = with_ledger(build(effects).compile(checkpointer=saver))
        while True:
            state = app.get_state(CONFIG)
            if state.created_at is not None and not state.tasks:
                assert sorted(state.values["log"]) == ["first", "in", "last", "left", "mail", "right", "yes"]
                return
            given: Any = {"log": ["in"]} if state.created_at is None else None
            try:
                app.invoke(Command(resume="yes") if state.interrupts else given, CONFIG, durability="sync")
            except RecoveryRequired:
                for doubtful in saver.ledger.effects():
                    if doubtful.in_doubt:
                        _resolve(saver, doubtful.effect_id, happened=effects.count(doubtful.name) > 0)


def _resolve(saver: LedgerSaver, effect_id: str, *, happened: bool) -> None:
    if happened:
        saver.ledger.resolve_effect(effect_id, receipt="found in the log")
    else:
        saver.ledger.resolve_effect(effect_id, happened=False)
