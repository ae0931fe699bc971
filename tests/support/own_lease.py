"""What processes do with durable nodes in a graph that is not attached: each attempt takes the thread by itself."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import Frame, LedgerSaver, durable
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import leases
from langgraph_ext.testing import EffectLog
from tests.support.faults import Line

CONFIG: Any = {"configurable": {"thread_id": "own"}}

TTL_SECONDS = 0.6
"""Of leases here: short, so that one that is not renewed is soon over."""


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def build(saver: LedgerSaver, form: str, act: Any) -> Any:
    """One durable node that does `act(frame)`, on the loop's own thread: an event loop is blocked meanwhile."""
    if form == "sync":

        @durable(effect="write")
        def body(state: State, frame: Frame) -> Any:
            return act(frame)
    else:

        @durable(effect="write")
        async def body(state: State, frame: Frame) -> Any:
            return act(frame)

    return StateGraph(State).add_node("body", body).add_edge(START, "body").compile(checkpointer=saver)


def call(app: Any, given: Any, form: str) -> str:
    """Invoke; "done", or the error's code."""
    try:
        if form == "sync":
            app.invoke(given, CONFIG, durability="sync")
        else:
            asyncio.run(app.ainvoke(given, CONFIG, durability="sync"))
    except LangGraphExtError as error:
        return error.code
    return "done"


def hold(folder: str, form: str, line: Line) -> str:
    """Run; the body says that it has begun, waits for a word, and then acts."""
    leases.DEFAULT_TTL_US = round(TTL_SECONDS * 1e6)
    log = EffectLog(Path(folder) / "effects.log")

    def act(frame: Frame) -> Any:
        line.tell("begun")
        line.hear()
        frame.once("act", {}, lambda key: log.record("stale"))
        return {"log": ["stale"]}

    with LedgerSaver(f"{folder}/runs.db") as saver:
        return call(build(saver, form, act), {"log": ["in"]}, form)


def take(folder: str, form: str) -> str:
    """Go on with the run."""
    leases.DEFAULT_TTL_US = round(TTL_SECONDS * 1e6)
    log = EffectLog(Path(folder) / "effects.log")

    def act(frame: Frame) -> Any:
        frame.once("act", {}, lambda key: log.record("fresh"))
        return {"log": ["fresh"]}

    with LedgerSaver(f"{folder}/runs.db") as saver:
        return call(build(saver, form, act), None, form)
