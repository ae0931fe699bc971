"""An approval flow: an answer is used once, for its own question, and a bad one is asked for again."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph

from examples.apps.shop import refund
from langgraph_ext import AgentNode


def build(model: BaseChatModel) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node(AgentNode(name="answer", model=model, tools=[refund], interrupt_on={"refund": True}))
    builder.add_edge(START, "answer")
    return builder
