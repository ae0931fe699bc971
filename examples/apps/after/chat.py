"""A chat with tools: each model answer and each tool result is kept, and none is asked for twice."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph

from examples.apps.shop import stock, weather
from langgraph_ext import AgentNode


def build(model: BaseChatModel) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node(AgentNode(name="answer", model=model, tools=[stock, weather]))
    builder.add_edge(START, "answer")
    return builder
