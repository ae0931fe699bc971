"""A durable payment behind a question, as a scenario for the crash harness. From the root of a clone:

    langgraph-ext crash-test examples.durable_payment:scenario --points before,after

The payment service does not look whether it has charged under a key before: that none is made twice is the ledger's
doing. Where a process dies in the middle of a charge nobody can know what came of it; the run stops, and the scenario
looks it up, as a person would, at the service.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, durable, frame, with_ledger
from langgraph_ext.errors import RecoveryRequired
from langgraph_ext.testing import EffectLog

CONFIG: Any = {"configurable": {"thread_id": "order-7"}}


class Order(TypedDict, total=False):
    cents: int
    approved: bool
    receipt: str


def build(effects: EffectLog) -> Any:
    """approve, then charge."""

    def pay(key: str, cents: int) -> str:
        effects.record(key, cents=cents)  # stands for the payment service
        return f"receipt of {key}"

    def approve(state: Order) -> Order:
        return {"approved": interrupt("charge it?")}

    @durable(effect="write")
    def charge(state: Order) -> Order:
        cents = state["cents"]
        receipt = frame().once("charge", {"cents": cents}, lambda key: pay(key, cents), key="charge order-7")
        return {"receipt": receipt}

    builder = StateGraph(Order).add_node(approve).add_node(charge)
    return builder.add_edge(START, "approve").add_edge("approve", "charge")


def scenario(db_url: str, effects: EffectLog) -> None:
    """Start the run, or go on with it, until it has ended."""
    with LedgerSaver(db_url) as saver:
        app = with_ledger(build(effects).compile(checkpointer=saver))
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            given: Any = {"cents": 700} if state.created_at is None else None
            if state.interrupts:
                given = Command(resume=True)
            try:
                app.invoke(given, CONFIG, durability="sync")
            except RecoveryRequired:
                look_up(saver, effects)


def look_up(saver: LedgerSaver, effects: EffectLog) -> None:
    """Say of each effect in doubt what the service knows."""
    for doubt in saver.ledger.effects():
        if doubt.in_doubt and effects.count(doubt.key):
            saver.ledger.resolve_effect(doubt.effect_id, receipt=f"receipt of {doubt.key}")
        elif doubt.in_doubt:
            saver.ledger.resolve_effect(doubt.effect_id, happened=False)
