"""Inner graph: the small graph inside a node that asks, by which it suspends the graph around it (rule A1).

    ask ──▶ run ──┬─▶ (end)     a person is asked; each question is a task of its own, so that LangGraph, which knows
    ▲ │           │             answers by their order in a task, has one at a time
    └─┘ ◀─────────┘             an answer that was none is asked for again

It is run when what the node drives has come to a question, or its graph was resumed behind one. It has no checkpointer
of its own, and keeps what is asked; everything else is on record already. `_AT` leads from its nodes to the attempt
that they run in.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

from langgraph_ext.nodes.questions import Question

__all__ = ["Driven", "athrough", "through"]


class Driven(Protocol):
    """One attempt, and what it drives: on record, so that it goes on where it stands."""

    @property
    def has_ended(self) -> bool:
        """Whether that was seen to have ended, by this attempt."""

    @property
    def was_asked(self) -> bool:
        """Whether the graph was resumed behind a question of this visit: what with is that question's (rule A2)."""

    def drive(self) -> Question | None:
        """Drive it as far as it goes; what a person is asked then, if anything."""

    def ask(self, question: Question) -> Question | None:
        """Ask, and commit the answer; what is asked again, if it was none."""

    async def adrive(self) -> Question | None:
        """As `drive`."""

    async def aask(self, question: Question) -> Question | None:
        """As `ask`."""


def through(at: Driven) -> None:
    """Drive it to its end, and ask a person what it comes to."""
    token = _AT.set(at)
    try:
        question = at.drive()
        if question is not None or at.was_asked:
            _inner_graph().invoke({"question": question})
        while not at.has_ended:  # the inner graph had come to its end before, and was not run again
            question = at.drive()
            while question is not None:
                question = at.ask(question)
    finally:
        _AT.reset(token)


async def athrough(at: Driven) -> None:
    """As `through`."""
    token = _AT.set(at)
    try:
        question = await at.adrive()
        if question is not None or at.was_asked:
            await _inner_graph().ainvoke({"question": question})
        while not at.has_ended:
            question = await at.adrive()
            while question is not None:
                question = await at.aask(question)
    finally:
        _AT.reset(token)


_AT: ContextVar[Driven] = ContextVar("langgraph_ext_driven")


class _Asking(TypedDict, total=False):
    question: Question | None


def _run(state: _Asking) -> _Asking:
    return {"question": _AT.get().drive()}


async def _arun(state: _Asking) -> _Asking:
    return {"question": await _AT.get().adrive()}


def _ask(state: _Asking) -> _Asking:
    question = state["question"]
    return {"question": None if question is None else _AT.get().ask(question)}


async def _aask(state: _Asking) -> _Asking:
    question = state["question"]
    return {"question": None if question is None else await _AT.get().aask(question)}


@cache
def _inner_graph() -> Any:
    """The compiled graph; one for all nodes."""
    builder = StateGraph(_Asking)
    builder.add_node("run", RunnableLambda(_run, afunc=_arun))
    builder.add_node("ask", RunnableLambda(_ask, afunc=_aask))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("run", lambda state: "ask" if state.get("question") else END, ["ask", END])
    builder.add_conditional_edges("ask", lambda state: "ask" if state.get("question") else "run", ["ask", "run"])
    return builder.compile()
