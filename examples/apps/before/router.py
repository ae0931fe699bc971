"""A router with subgraphs: what a message is about decides who answers it."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from examples.apps.shop import refund, weather


def build(model: BaseChatModel) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("billing", _desk(model, [refund]).compile())
    builder.add_node("small_talk", _desk(model, [weather]).compile())
    builder.add_conditional_edges(START, _about, ["billing", "small_talk"])
    return builder


def _about(state: MessagesState) -> str:
    return "billing" if "money" in state["messages"][-1].text else "small_talk"


def _desk(model: BaseChatModel, tools: list[Any]) -> Any:
    bound = model.bind_tools(tools)

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", tools_condition)
    builder.add_edge("tools", "answer")
    return builder
