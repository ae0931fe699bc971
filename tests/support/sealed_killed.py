"""A run in which much is said, in an encrypted database, that is killed in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from langgraph_ext import AgentNode, CapabilityNode, LedgerSaver, with_ledger
from langgraph_ext.database import open_database
from langgraph_ext.engine import Limits
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import CONFIG
from tests.support.ciphers import KEYS
from tests.support.faults import Points, faulty, kill_myself
from tests.support.sealed import MARK

__all__ = ["talk", "told"]


class State(MessagesState):
    order: str
    receipt: Any


def pay(order: str) -> str:
    """Pay."""
    get_stream_writer()({"paying": f"{MARK} {order}"})
    return f"{MARK}, paid {order}"


@tool
def look(what: str) -> str:
    """Look something up."""
    get_stream_writer()({"looking": f"{MARK} {what}"})
    return f"{MARK}, {what}, found"


def build(saver: LedgerSaver) -> Any:
    script: list[Any] = [call("look", {"what": f"{MARK} {n}"}) for n in range(2)]
    agent = AgentNode(
        name="support",
        model=ScriptedChatModel(script=[*script, f"done, {MARK}"], by=_answers),
        tools=[look],
        system_prompt=f"Mind the {MARK}.",
        limits=Limits(model_calls=1, on_limit="ask"),
    )
    builder: Any = StateGraph(State)
    builder.add_node(CapabilityNode(pay, input=_order, output="receipt", interrupt_on=True)).add_node(agent)
    builder.add_edge(START, "pay").add_edge("pay", "support").add_edge("support", END)
    return with_ledger(builder.compile(checkpointer=saver))


def _order(state: Any) -> dict[str, str]:
    return {"order": state["order"]}


def _answers(messages: Any) -> int:
    return sum(each.type == "ai" for each in messages)


def talk(folder: str, kind: str, at: int) -> tuple[list[str], list[Any]]:
    """Have the run from its start to its end, or be killed at a point; the points passed, and what was streamed.

    Each limit is raised by a person, who says something, too.
    """
    points = Points(kill_myself, kind=kind, at=at)
    database = open_database(Path(folder, "runs.db"), connection=faulty(points), encryption=KEYS)
    streamed: list[Any] = []
    with LedgerSaver(database) as saver:
        app = build(saver)
        given: Any = {"messages": [("user", MARK)], "order": MARK}
        while given is not None:
            streamed += app.stream(given, CONFIG, stream_mode=["custom", "updates"], durability="sync")
            asked = app.get_state(CONFIG).interrupts
            given = Command(resume={"decisions": [{"type": "approve", "message": MARK}]}) if asked else None
    return points.passed, streamed


def told(folder: str) -> str:
    """What a saver with the key reads of it."""
    with LedgerSaver(Path(folder, "runs.db"), encryption=KEYS) as saver:
        assert [] == saver.ledger.verify()
        return repr([list(saver.list(None)), saver.ledger.interrupts(limit=50), saver.ledger.effects(limit=50)])
