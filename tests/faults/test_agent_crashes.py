"""A2, A5, A10: a graph with an agent node, killed at every commit, ends as if nothing had been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from langgraph_ext import AgentNode, LedgerSaver, with_ledger
from langgraph_ext.testing import EffectLog, ScriptedChatModel, call, calls, crash_at_every_commit
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import full

TOOLS = 4


def build(effects: EffectLog) -> Any:
    """An agent that acts four times at once, once a person has approved of two of them, and then once more."""

    def act(number: int) -> str:
        """Act on the outside world, which does not look whether that was done before."""
        effects.record(f"act {number}")
        return f"acted {number}"

    def refund(number: int) -> str:
        """As `act`, with a person's approval."""
        effects.record(f"refund {number}")
        return f"refunded {number}"

    first = [call("act" if number % 2 else "refund", {"number": number}) for number in range(TOOLS)]
    model = ScriptedChatModel(script=[calls(*first), call("act", {"number": TOOLS}), "done"])
    node = AgentNode(name="support", model=model, tools=[act, refund], interrupt_on={"refund": True})
    return graph_of(node)


def person(question: dict[str, Any], effects: EffectLog) -> dict[str, Any]:
    """Approves, and knows what came of a call that is in doubt, as they look at what was done outside."""
    if question["kind"] == "approval":
        return {"decisions": [{"type": "approve"} for _ in question["action_requests"]]}
    [action] = question["action_requests"]
    number = action["args"]["number"]
    if not effects.count(f"{action['name']} {number}"):
        return {"decisions": [{"type": "approve"}]}
    past = "acted" if action["name"] == "act" else "refunded"
    return {"request_id": question["request_id"], "decisions": [{"type": "respond", "message": f"{past} {number}"}]}


def given(state: Any, effects: EffectLog) -> Any:
    """What the graph is gone on with."""
    if state.created_at is None:
        return {"messages": [HumanMessage("go", id="go")]}
    if state.interrupts:
        return Command(resume=person(state.interrupts[0].value, effects))
    return None


def scenario(db_url: str, effects: EffectLog) -> None:
    """Start the run, or go on with it, until it has ended."""
    with LedgerSaver(db_url) as saver:
        app = build(effects).compile(checkpointer=saver)
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            app.invoke(given(state, effects), CONFIG, durability="sync")


async def attached(db_url: str, effects: EffectLog) -> None:
    """The same, of an attached graph, in its async form."""
    async with LedgerSaver(db_url) as saver:
        app = with_ledger(build(effects).compile(checkpointer=saver))
        while (state := await app.aget_state(CONFIG)).created_at is None or state.tasks:
            await app.ainvoke(given(state, effects), CONFIG, durability="sync")


def check(report: Any) -> None:
    report.assert_sound()
    assert report.ended["t"] == "succeeded"


POINTS = ["before", "inside", "after"] if full() else ["after"]


@pytest.mark.slow
@pytest.mark.parametrize("story", ["scenario", "attached"])
def test_a5_a_graph_with_an_agent_survives_a_kill_at_every_commit(tmp_path: Path, story: str) -> None:
    """Tools that act once have acted once, no approval is lost, and the state at the end is the same."""
    ids = ["messages"]  # of messages that a model has not named
    report = crash_at_every_commit(
        f"{__name__}:{story}", db=tmp_path / "c.db", points=POINTS, ignore_state=ids, timeout_seconds=60
    )
    check(report)
