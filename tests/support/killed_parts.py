"""What the processes do that make two tool calls side by side: the first time one of them kills the process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from langgraph_ext import LedgerSaver, durable, frame
from langgraph_ext.testing import EffectLog
from tests.support.faults import kill_myself

CONFIG: Any = {"configurable": {"thread_id": "tools"}}

ORDERS = ("a", "b")


def build(folder: str, form: str, first: str) -> Any:
    """A tool that pays for an order; that of `first` comes half a second before the other."""
    log, killed = EffectLog(Path(folder) / "effects.log"), Path(folder) / "killed"

    def act(order: str) -> str:
        receipt = str(frame().once("pay", {}, lambda key: (log.record(order), f"paid {order}")[1]))
        if not killed.exists():
            killed.touch()
            kill_myself()
        return receipt

    if form == "sync":

        @durable(effect="write")
        def pay(order: str) -> str:
            return act(order)

        @tool
        def buy(order: str) -> str:
            """Buy it."""
            time.sleep(0 if order == first else 0.5)
            return pay(order)
    else:

        @durable(effect="write")
        async def pay(order: str) -> str:
            return act(order)

        @tool
        async def buy(order: str) -> str:
            """Buy it."""
            await asyncio.sleep(0 if order == first else 0.5)
            return await pay(order)  # type: ignore[misc,no-any-return]

    builder = StateGraph(MessagesState).add_node("tools", ToolNode([buy], handle_tool_errors=False))
    return builder.add_edge(START, "tools")


def run(folder: str, form: str, first: str, resume: bool) -> tuple[dict[str, str], list[str]]:
    """Run or resume; what each call was told, and what was paid, in all processes."""
    calls = [{"name": "buy", "args": {"order": order}, "id": f"call {order}"} for order in ORDERS]
    given: Any = None if resume else {"messages": [AIMessage("", tool_calls=calls)]}
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = build(folder, form, first).compile(checkpointer=saver)
        if form == "sync":
            end = app.invoke(given, CONFIG, durability="sync")
        else:
            end = asyncio.run(app.ainvoke(given, CONFIG, durability="sync"))
        assert saver.ledger.verify() == []
    log = EffectLog(Path(folder) / "effects.log")
    told = {each.tool_call_id: str(each.content) for each in end["messages"][1:]}
    return told, [order for order in ORDERS for _ in range(log.count(order))]
