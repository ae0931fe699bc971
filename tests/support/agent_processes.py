"""Processes that go on with one graph of an agent node, for tests of answers and workers at once."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from langgraph_ext import AgentNode, LedgerSaver, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import kill_myself
from tests.support.react_processes import note, settled

__all__ = ["TOOLS", "begin", "built", "go_on", "pay_and_die", "paying"]

TOOLS = 4


def built(log: str) -> Any:
    """A graph whose agent acts four times at once, if a person approves."""

    def act(number: int) -> str:
        """Act on the outside world."""
        note(log, f"act {number}")
        return f"acted {number}"

    model = ScriptedChatModel(script=[calls(*(call("act", {"number": n}) for n in range(TOOLS))), "done"])
    node = AgentNode(name="support", model=model, tools=[act], interrupt_on={"act": True})
    return graph_of(node)


def begin(path: str) -> None:
    """Run the graph until it asks."""
    with LedgerSaver(path) as saver:
        app = built(f"{path}.log").compile(checkpointer=saver)
        app.invoke({"messages": [HumanMessage("go")]}, CONFIG, durability="sync")


def go_on(path: str, decision: str, attached: bool = True) -> str:
    """Answer every call so, and go on; what came of it."""
    answer = {"decisions": [{"type": decision}] * TOOLS}
    with LedgerSaver(path) as saver:
        app: Any = built(f"{path}.log").compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        try:
            found = app.invoke(Command(resume=answer), CONFIG, durability="sync")
        except LangGraphExtError as error:
            return error.code
        return "asked" if "__interrupt__" in found else str(found["messages"][-1].content)


def paying(path: str, *, dies: bool = False) -> Any:
    """A graph whose agent pays twice at once; if so, its process dies behind the second payment."""

    async def pay(order: str) -> str:
        """Pay an order."""
        while order == "b" and not settled(path):  # the first has its result first
            await asyncio.sleep(0.005)
        note(f"{path}.log", order)
        if order == "b" and dies:
            kill_myself()
        return f"paid {order}"

    model = ScriptedChatModel(script=[calls(call("pay", {"order": "a"}), call("pay", {"order": "b"})), "done", "hm"])
    node = AgentNode(name="clerk", model=model, tools=[pay])
    return graph_of(node)


def pay_and_die(path: str, durability: str, attached: bool) -> None:
    """Say that something is to be paid, and die with it."""
    with LedgerSaver(path) as saver:
        app: Any = paying(path, dies=True).compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        app.invoke({"messages": [HumanMessage("Pay a and b.", id="first")]}, CONFIG, durability=durability)
