"""A payment that survives a crash at any point, as a scenario for the crash harness.

    langgraph-ext crash-test examples.payment:scenario

`Shop` stands for the world outside. It keeps what it is told by a key, as payment services do, so that charging again
under the same key is no second charge.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import LedgerSaver
from langgraph_ext.testing import EffectLog

CONFIG: Any = {"configurable": {"thread_id": "order-1"}}


class Order(TypedDict, total=False):
    cents: int
    receipt: str


class Shop:
    """What happens outside, written into the effect log."""

    def __init__(self, effects: EffectLog) -> None:
        self._effects = effects

    def charge(self, key: str, cents: int) -> str:
        """Charge, unless it was done under this key."""
        if not self._effects.count(key):
            self._effects.record(key, cents=cents)
        return f"receipt for {key}"


def build(shop: Shop) -> Any:
    """check, then charge."""

    def check(state: Order) -> Order:
        return {"cents": max(state["cents"], 100)}

    def charge(state: Order) -> Order:
        return {"receipt": shop.charge("charge order-1", state["cents"])}

    builder = StateGraph(Order).add_node(check).add_node(charge)
    return builder.add_edge(START, "check").add_edge("check", "charge")


def scenario(db_url: str, effects: EffectLog) -> None:
    """Start the run, or go on with it, until it has ended."""
    with LedgerSaver(db_url) as saver:
        app = build(Shop(effects)).compile(checkpointer=saver)
        state = app.get_state(CONFIG)
        if state.created_at is None:
            app.invoke({"cents": 700}, CONFIG, durability="sync")
        elif state.tasks:
            app.invoke(None, CONFIG, durability="sync")
