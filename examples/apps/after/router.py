"""A router with subgraphs: each desk is a durable agent."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph

from examples.apps.shop import refund, weather
from langgraph_ext import AgentNode


def build(model: BaseChatModel) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("billing", _desk(model, [refund]).compile())
    builder.add_node("small_talk", _desk(model, [weather]).compile())
    builder.add_conditional_edges(START, _about, ["billing", "small_talk"])
    return builder


def _about(state: MessagesState) -> str:
    return "billing" if "money" in state["messages"][-1].text else "small_talk"


def _desk(model: BaseChatModel, tools: list[Any]) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node(AgentNode(name="answer", model=model, tools=tools))
    builder.add_edge(START, "answer")
    return builder
