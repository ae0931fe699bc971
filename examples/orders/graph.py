"""The application: a file of orders goes in, money is taken, shipments and a report come out.

    load ─▶ validate ─▶ price (one task an order) ─▶ collect ─▶ approve ─▶ charge (one task an order) ─▶ ship ─▶ report
                                                                  │
                                                                  └─ asks a human when orders exceed the limit

Nothing here knows about databases or crashes.  Nodes return values and change nothing outside, so a node that was cut
off may run again, but for two: `report` writes its file in a way that bears it, and `charge` is durable.
"""

from __future__ import annotations

import json
import operator
import os
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send, interrupt

from examples.orders.intake import Rejection, Row, read_rows, sort_out
from examples.orders.pricing import Order, Priced, price_order
from langgraph_ext import durable, frame
from langgraph_ext.demo.payments import Payments

APPROVAL_LIMIT_CENTS = 1_000_00
"""Orders that cost more than this, tax included, are shipped only after a human said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What every process brings along and no checkpoint holds."""

    prices: Path
    report: Path
    payments: Payments
    lookup_seconds: float = 0.08
    """How long the price service takes for one article."""


class Payment(TypedDict):
    """Money that was taken for an order."""

    order_id: str
    cents: int
    receipt: str
    """The bank's number of the charge."""


class OrdersState(TypedDict, total=False):
    """One batch of orders on its way; `priced`, `rejections` and `payments` grow, the rest is written once."""

    source: str
    rows: list[Row]
    orders: list[Order]
    priced: Annotated[list[Priced], operator.add]
    rejections: Annotated[list[Rejection], operator.add]
    free: list[Priced]
    """Orders that need no approval."""
    large: list[Priced]
    """Orders above the limit."""
    approved: list[Priced]
    declined: list[Priced]
    payments: Annotated[list[Payment], operator.add]
    shipped: list[Priced]
    totals: dict[str, Any]


class Question(TypedDict):
    """What `approve` asks.  The answer is a list of the order ids to ship."""

    question: str
    orders: list[Priced]


def load(state: OrdersState) -> OrdersState:
    """Read the file; later nodes work on what was read, whatever happens to the file."""
    return {"rows": read_rows(Path(state["source"]))}


def validate(state: OrdersState) -> OrdersState:
    """Sort out the rows that are no orders."""
    orders, rejections = sort_out(state["rows"])
    return {"orders": orders, "rejections": rejections}


def fan_out(state: OrdersState) -> list[Send] | str:
    """One `price` task an order; straight on when there is none."""
    return [Send("price", order) for order in state["orders"]] or "collect"


def price(state: Order, runtime: Runtime[Shop]) -> OrdersState:
    """Price, tax and check one order, which is all that this node gets to see."""
    shop = runtime.context
    return {"priced": [price_order(state, shop.prices, lookup_seconds=shop.lookup_seconds)]}


def collect(state: OrdersState) -> OrdersState:
    """Bring the tasks' results together and see which orders need a human."""
    priced = state.get("priced", [])
    good = [order for order in priced if order["problem"] is None]
    return {
        "rejections": [Rejection(order_id=o["order_id"], reason=o["problem"]) for o in priced if o["problem"]],
        "free": [order for order in good if order["gross_cents"] <= APPROVAL_LIMIT_CENTS],
        "large": [order for order in good if order["gross_cents"] > APPROVAL_LIMIT_CENTS],
    }


def approve(state: OrdersState) -> OrdersState:
    """Ask which of the large orders may be shipped; ids that were not asked about are ignored."""
    large = state["large"]
    if not large:
        return {"approved": [], "declined": []}
    limit = euros(APPROVAL_LIMIT_CENTS)
    answer = interrupt(Question(question=f"Ship these {len(large)} orders above {limit}?", orders=large))
    return {
        "approved": [order for order in large if order["order_id"] in answer],
        "declined": [order for order in large if order["order_id"] not in answer],
    }


def fan_out_charges(state: OrdersState) -> list[Send] | str:
    """One `charge` task an order that may go; straight on when there is none."""
    return [Send("charge", order) for order in state["free"] + state["approved"]] or "ship"


def find_charge(key: str) -> str:
    """The probe: what the bank has of a charge nobody knows the end of."""
    return get_runtime(Shop).context.payments.find(key)


@durable(effect="write", on_unknown="probe", probe=find_charge)
def charge(state: Priced, runtime: Runtime[Shop]) -> OrdersState:
    """Take the money for one order."""
    order_id, cents = state["order_id"], state["gross_cents"]
    pay = partial(runtime.context.payments.charge, order_id=order_id, cents=cents)
    receipt = frame().once("charge", {"order": order_id, "cents": cents}, pay)
    return {"payments": [Payment(order_id=order_id, cents=cents, receipt=receipt)]}


def ship(state: OrdersState) -> OrdersState:
    """Release everything that is paid, in the order of the ids."""
    paid = {payment["order_id"] for payment in state.get("payments", [])}
    may_go = [order for order in state["free"] + state["approved"] if order["order_id"] in paid]
    return {"shipped": sorted(may_go, key=lambda order: order["order_id"])}


def report(state: OrdersState, runtime: Runtime[Shop]) -> OrdersState:
    """Write the report; renaming a finished file makes writing it twice harmless."""
    totals = _totals(state)
    target = runtime.context.report
    draft = target.with_name(target.name + ".draft")
    draft.write_text(json.dumps(totals, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(draft, target)
    return {"totals": totals}


def build() -> StateGraph[OrdersState, Shop, OrdersState, OrdersState]:
    """The graph, not yet compiled: the caller chooses the checkpointer."""
    builder = StateGraph(OrdersState, context_schema=Shop)
    builder.add_node("load", load)
    builder.add_node("validate", validate)
    builder.add_node("price", price, input_schema=Order)
    builder.add_node("collect", collect)
    builder.add_node("approve", approve)
    builder.add_node("charge", charge, input_schema=Priced)
    builder.add_node("ship", ship)
    builder.add_node("report", report)
    builder.add_edge(START, "load")
    builder.add_edge("load", "validate")
    builder.add_conditional_edges("validate", fan_out, ["price", "collect"])
    builder.add_edge("price", "collect")
    builder.add_edge("collect", "approve")
    builder.add_conditional_edges("approve", fan_out_charges, ["charge", "ship"])
    builder.add_edge("charge", "ship")
    builder.add_edge("ship", "report")
    builder.add_edge("report", END)
    return builder


def euros(amount_cents: int) -> str:
    """An amount as a human reads it."""
    return f"{amount_cents / 100:,.2f} EUR"


def _totals(state: OrdersState) -> dict[str, Any]:
    shipped = state["shipped"]
    return {
        "orders_read": len(state["rows"]),
        "orders_shipped": len(shipped),
        "net_cents": sum(order["net_cents"] for order in shipped),
        "tax_cents": sum(order["tax_cents"] for order in shipped),
        "gross_cents": sum(order["gross_cents"] for order in shipped),
        "charged_cents": sum(payment["cents"] for payment in state.get("payments", [])),
        "shipped_by_country": dict(sorted(Counter(order["country"] for order in shipped).items())),
        "declined": [order["order_id"] for order in state["declined"]],
        "rejected": state["rejections"],
    }
