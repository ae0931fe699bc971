"""Map and reduce: each charge is on record before it is made, under a key of its own."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send

from examples.apps import shop
from langgraph_ext import durable, frame


class Orders(TypedDict, total=False):
    orders: list[str]
    receipts: Annotated[list[str], operator.add]
    report: str


class Order(TypedDict):
    order: str


def each_order(state: Orders) -> list[Send]:
    return [Send("charge", {"order": order}) for order in state["orders"]]


@durable(effect="write")
def charge(state: Order) -> Orders:
    order = state["order"]
    return {"receipts": [frame().once("charge", {"order": order}, lambda key: shop.charge(order, key))]}


def report(state: Orders) -> Orders:
    return {"report": ", ".join(sorted(state["receipts"]))}


def build() -> Any:
    builder: Any = StateGraph(Orders)
    builder.add_node("charge", charge)
    builder.add_node("report", report)
    builder.add_conditional_edges(START, each_order, ["charge"])
    builder.add_edge("charge", "report")
    return builder
