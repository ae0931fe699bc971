"""An approval flow: a person decides on each refund before it is made."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from examples.apps.shop import refund


def build(model: BaseChatModel) -> Any:
    bound = model.bind_tools([refund])

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def approve(state: MessagesState) -> Command[Literal["tools", "answer"]]:
        asked = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        actions = [{"name": each["name"], "args": each["args"]} for each in asked]
        decisions = interrupt({"action_requests": actions})["decisions"]
        if all(each["type"] == "approve" for each in decisions):
            return Command(goto="tools")
        refused = [ToolMessage("It was not approved.", tool_call_id=each["id"]) for each in asked]
        return Command(goto="answer", update={"messages": refused})

    builder: Any = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("approve", approve)
    builder.add_node("tools", ToolNode([refund]))
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", tools_condition, {"tools": "approve", "__end__": "__end__"})
    builder.add_edge("tools", "answer")
    return builder
