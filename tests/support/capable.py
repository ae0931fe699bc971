"""Graphs of one capability node, in both forms, a payment that notes its calls, and what is on record of them."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import START, StateGraph

from langgraph_ext import InjectedIdempotencyKey, LedgerSaver
from langgraph_ext.nodes.capability_node import CapabilityNode
from tests.support.acted import Acts
from tests.support.driver import Form

__all__ = ["Late", "Order", "Payments", "Shop", "Unheard"]


class Order(TypedDict, total=False):
    order: str
    receipt: Any
    log: Annotated[list[Any], operator.add]


class Unheard(ConnectionError):
    """The answer was lost; whether anything was done nobody can tell."""


class Late(ConnectionError):
    """As `Unheard`; another call may help, as langchain-core's errors say it."""

    is_retryable = True


class Payments(list[tuple[str, str]]):
    """Order and idempotency key of each payment that was asked for; `act(number)` says what comes of it, from 1."""

    def __init__(self, act: Callable[[int], Any] = lambda number: f"receipt {number}") -> None:
        self.act = act

    def tool(self, *, awaited: bool = True) -> BaseTool:
        """A tool that pays, as a coroutine or as a function that is called in a thread."""

        def pay(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> Any:
            """Pay."""
            self.append((order, key))
            return self.act(len(self))

        async def apay(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> Any:
            """Pay."""
            came = pay(order, key)
            return await came if hasattr(came, "__await__") else came

        if awaited:
            return StructuredTool.from_function(coroutine=apay, name="pay")
        return StructuredTool.from_function(pay, name="pay")

    @property
    def keys(self) -> set[str]:
        """The keys that were used."""
        return {key for _, key in self}


class Shop(Acts):
    """Runs graphs of one capability node, in one form."""

    def __init__(self, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop, durability: str) -> None:
        super().__init__(saver, form, durability, loop)

    def app(self, node: Any, state: Any = Order, **options: Any) -> Any:
        """A graph of a node, under the name it has; `options` are `add_node`'s."""
        builder: Any = StateGraph(state)
        return builder.add_node(node, **options).add_edge(START, node.name).compile(checkpointer=self.saver)

    def paying(self, payments: Payments, *, awaited: bool = True, **options: Any) -> CapabilityNode:
        """A node that pays the state's order."""
        given = {"input": lambda state: {"order": state["order"]}, "output": "receipt", **options}
        return CapabilityNode(payments.tool(awaited=awaited), **given)

    def effects(self) -> list[tuple[str, str, int]]:
        """Name, status and number of calls of every effect, the oldest first."""
        return [(each.name, str(each.status), each.tries) for each in self.saver.ledger.effects()]

    def outcomes(self) -> list[str]:
        """The status of every attempt, the oldest first."""
        return [status for _, _, status in self.attempts()]
