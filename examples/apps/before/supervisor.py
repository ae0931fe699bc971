"""A supervisor with two agents: it names who works next, until it is done."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph

from examples.apps.shop import refund, stock


def build(supervisor: BaseChatModel, storekeeper: BaseChatModel, cashier: BaseChatModel) -> Any:
    def supervise(state: MessagesState) -> dict[str, Any]:
        return {"messages": [supervisor.invoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("supervise", supervise)
    builder.add_node("storekeeper", create_agent(storekeeper, tools=[stock], name="storekeeper"))
    builder.add_node("cashier", create_agent(cashier, tools=[refund], name="cashier"))
    builder.add_edge(START, "supervise")
    builder.add_conditional_edges("supervise", _next, ["storekeeper", "cashier", "__end__"])
    builder.add_edge("storekeeper", "supervise")
    builder.add_edge("cashier", "supervise")
    return builder


def _next(state: MessagesState) -> str:
    said = state["messages"][-1].text
    return next((each for each in ("storekeeper", "cashier") if said.startswith(each)), "__end__")
