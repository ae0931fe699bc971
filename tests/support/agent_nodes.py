"""Agent nodes for tests: an agent that plays a script, graphs of such nodes, and what is in the states of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, convert_to_openai_messages
from langgraph.graph import END, START, MessagesState, StateGraph

from langgraph_ext import AgentGraphEngine, AgentNode
from langgraph_ext.testing import ScriptedChatModel
from tests.support.acted import Acts
from tests.support.message_rules import openai_faults

__all__ = ["APPROVE", "agent", "check_history", "engine_of", "graph", "question", "said", "texts"]

APPROVE = {"decisions": [{"type": "approve"}]}


def agent(script: Sequence[Any], *tools: Any, name: str = "support", **more: Any) -> AgentNode:
    return AgentNode(name=name, model=ScriptedChatModel(script=list(script)), tools=tools, **more)


def graph(saver: Any, *nodes: Any, state: Any = MessagesState, **options: Any) -> Any:
    """A graph of these nodes, one after the other."""
    builder: Any = StateGraph(state)
    before = START
    for node in nodes:
        builder.add_node(node, **options)
        builder.add_edge(before, node.name)
        before = node.name
    return builder.add_edge(before, END).compile(checkpointer=saver)


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def texts(state: Any) -> list[tuple[str, str]]:
    return [(each.type, each.text) for each in state["messages"]]


def question(state: Any) -> Any:
    [asked] = state["__interrupt__"]
    return asked.value


def engine_of(acts: Acts) -> AgentGraphEngine:
    return AgentGraphEngine(acts.saver.ledger)


def check_history(messages: Sequence[AnyMessage]) -> None:
    """One result for each tool call, right behind its decision: what OpenAI and Anthropic ask for."""
    assert [] == openai_faults(convert_to_openai_messages(messages))
