"""Agent graph: the small graph inside an agent node, by which it suspends the graph around it (rule A1).

    ask ──▶ run ──┬─▶ (end)     a person is asked; each question is a task of its own, so that LangGraph, which knows
    ▲ │           │             answers by their order in a task, has one at a time
    └─┘ ◀─────────┘             an answer that was none is asked for again

It is run when the agent run has come to a question, or its graph was resumed behind one. It has no checkpointer of its
own, and keeps what is asked; everything else is on record already.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

from langgraph_ext.nodes.agent_questions import Question
from langgraph_ext.nodes.agent_visits import AT

__all__ = ["inner_graph"]


class _Asking(TypedDict, total=False):
    question: Question | None


def _run(state: _Asking) -> _Asking:
    return {"question": AT.get().drive()}


async def _arun(state: _Asking) -> _Asking:
    return {"question": await AT.get().adrive()}


def _ask(state: _Asking) -> _Asking:
    question = state["question"]
    return {"question": None if question is None else AT.get().ask(question)}


async def _aask(state: _Asking) -> _Asking:
    question = state["question"]
    return {"question": None if question is None else await AT.get().aask(question)}


@cache
def inner_graph() -> Any:
    """The compiled graph; one for all agent nodes."""
    builder = StateGraph(_Asking)
    builder.add_node("run", RunnableLambda(_run, afunc=_arun))
    builder.add_node("ask", RunnableLambda(_ask, afunc=_aask))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("run", lambda state: "ask" if state.get("question") else END, ["ask", END])
    builder.add_conditional_edges("ask", lambda state: "ask" if state.get("question") else "run", ["ask", "run"])
    return builder.compile()
