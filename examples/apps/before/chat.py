"""A chat with tools: the model answers, or calls a tool, until it is done."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from examples.apps.shop import stock, weather


def build(model: BaseChatModel) -> Any:
    tools = [stock, weather]
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
