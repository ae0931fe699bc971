"""Processes that go on with one graph of an agent node, for tests of answers and workers at once."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langgraph_ext import AgentNode, LedgerSaver, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.react_processes import note

__all__ = ["CONFIG", "TOOLS", "begin", "built", "go_on"]

CONFIG: Any = {"configurable": {"thread_id": "t"}}
TOOLS = 4


def built(log: str) -> Any:
    """A graph whose agent acts four times at once, if a person approves."""

    def act(number: int) -> str:
        """Act on the outside world."""
        note(log, f"act {number}")
        return f"acted {number}"

    model = ScriptedChatModel(script=[calls(*(call("act", {"number": n}) for n in range(TOOLS))), "done"])
    node = AgentNode(name="support", model=model, tools=[act], interrupt_on={"act": True})
    return StateGraph(MessagesState).add_node(node).add_edge(START, "support")  # type: ignore[arg-type]


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
