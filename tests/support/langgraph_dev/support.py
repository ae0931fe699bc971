"""The agent that `langgraph dev` serves: it pays when a person has approved, which takes a minute if `SLOW` is set."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

from langgraph_ext import AgentNode, with_ledger
from langgraph_ext.testing import ScriptedChatModel, call


async def pay(order: str) -> str:
    """Pay."""

    def record() -> None:
        with open(f"{os.environ['RUNS']}/effects", "a") as file:
            file.write(f"pay {order}\n")

    await asyncio.to_thread(record)
    if "SLOW" in os.environ:
        await asyncio.sleep(60)
    return f"paid {order}"


model = ScriptedChatModel(script=[call("pay", {"order": "a"}), "It is paid."])
builder: Any = StateGraph(MessagesState)
builder.add_node(AgentNode(name="clerk", model=model, tools=[pay], interrupt_on={"pay": True}))
builder.add_edge(START, "clerk")
graph = with_ledger(builder.compile())
