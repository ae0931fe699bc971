"""The application: an order is charged, and an agent sees to what its customer says of it.

    charge ─▶ support (an agent; a person approves each refund)

`charge` is a durable node, `support` an agent node. Nothing here knows about databases or crashes but the two functions
that ask the bank what became of a call whose answer never came.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_ext import AgentNode, InjectedIdempotencyKey, ToolPolicy, durable, frame
from langgraph_ext.demo.payments import Payments

__all__ = ["Case", "build"]

PROMPT = (
    "You are the support desk of a shop for office furniture. Look the order up before you do anything. Refund what "
    "arrived broken, in full, and say so in one sentence."
)


class Case(MessagesState, total=False):
    """One order and what is said about it."""

    order: str
    cents: int
    receipt: str
    """The bank's number of the charge."""


def build(payments: Payments, model: BaseChatModel | str) -> StateGraph[Case, None, Case, Case]:
    """The graph, not yet compiled: the caller chooses the checkpointer.

    Args:
        payments: The bank.
        model: The agent's chat model, or the name of one.
    """

    @durable(effect="write", on_unknown="probe", probe=payments.find)
    def charge(state: Case) -> dict[str, Any]:
        order, cents = state["order"], state["cents"]
        pay = partial(payments.charge, order_id=order, cents=cents)
        return {"receipt": frame().once("charge", {"order": order, "cents": cents}, pay)}

    def find_order(order: str) -> str:
        """Look up an order: what was paid for it, in cents."""
        return f"{order}: one desk lamp, 4200 cents, paid"

    def refund(order: str, cents: int, key: Annotated[str, InjectedIdempotencyKey]) -> str:
        """Give the customer of an order this much of its money back, in cents."""
        return f"refunded {cents} cents: {payments.charge(key, order_id=order, cents=-cents)}"

    def find_refund(args: dict[str, Any], key: str) -> str:
        return f"refunded {args['cents']} cents: {payments.find(key)}"

    support = AgentNode(
        name="support",
        model=model,
        system_prompt=PROMPT,
        tools=[find_order, refund],
        tool_policies={
            "find_order": ToolPolicy(effect="repeatable"),
            "refund": ToolPolicy(effect="once", on_unknown=find_refund),
        },
        interrupt_on={"refund": True},
    )
    builder: Any = StateGraph(Case)
    builder.add_node("charge", charge)
    builder.add_node(support)
    builder.add_edge(START, "charge")
    builder.add_edge("charge", "support")
    return builder  # type: ignore[no-any-return]
