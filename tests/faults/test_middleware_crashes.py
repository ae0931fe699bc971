"""A12, A14: an agent with middlewares, killed at every commit, has each call on record that was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ModelRetryMiddleware, PIIMiddleware, dynamic_prompt
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.messages import HumanMessage

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver
from langgraph_ext.testing import EffectLog, ScriptedChatModel, call, crash_at_every_commit, fails, tries
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import full


@dynamic_prompt
def prompt(request: Any) -> str:
    return f"Messages: {len(request.messages)}."


def scenario(db_url: str, effects: EffectLog) -> None:
    """A model that fails before each answer and is asked again; what is private is not sent to it."""

    def act(number: int) -> str:
        """Act on the outside world, which does not look whether that was done before."""
        effects.record(f"act {number}")
        return "ask ann@example.org"

    busy = fails(ModelRateLimitError("busy"))
    model = ScriptedChatModel(script=[tries(busy, call("act", {"number": 1})), tries(busy, "done")], log=effects)
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
    middleware = [prompt, PIIMiddleware("email", apply_to_tool_results=True), retry]
    node = AgentNode(
        name="support", model=model, tools=[act], middleware=middleware, tool_policies={"act": {"effect": "repeatable"}}
    )
    with LedgerSaver(db_url) as saver:
        app = graph_of(node).compile(checkpointer=saver)
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            begins = state.created_at is None
            app.invoke({"messages": [HumanMessage("go", id="go")]} if begins else None, CONFIG, durability="sync")
        [run] = AgentGraphEngine(saver.ledger).runs()
        assert run.model_calls >= len(model.calls), "each was on record before it was made"
        assert not [each for made in model.calls for each in made.messages if "@" in str(each["content"])]


POINTS = ["before", "inside", "after"] if full() else ["after"]


@pytest.mark.slow
def test_a14_a_call_of_a_middleware_is_on_record_wherever_its_worker_dies(tmp_path: Path) -> None:
    """The run ends as it would have; no call was made that does not count."""
    report = crash_at_every_commit(
        f"{__name__}:scenario",
        db=tmp_path / "c.db",
        points=POINTS,
        at_most={"act 1": 2},  # it may be repeated, and is where its worker dies behind it
        ignore_state=["messages"],
        timeout_seconds=60,
    )
    report.assert_sound()
    assert "succeeded" == report.ended["t"]
