"""A2, W01: several processes that answer one agent's question, and go on with its thread, at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage

from langgraph_ext import AgentGraphEngine, LedgerSaver, RunLedger
from tests.support import agent_processes as children
from tests.support.apps import CONFIG
from tests.support.processes import at_once
from tests.support.react_processes import noted


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A database whose graph waits for a person."""
    made = str(tmp_path / "runs.db")
    children.begin(made)
    return made


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "plain"])
@pytest.mark.parametrize("decisions", [("approve", "approve"), ("approve", "reject"), ("approve",) * 3])
def test_a2_scenario_19_workers_that_answer_at_once_act_once(
    path: str, decisions: tuple[str, ...], attached: bool
) -> None:
    """One of them goes on, by its own answer or the one that was first; the others are told, and nothing is lost."""
    told = at_once(children.go_on, *((path, decision, attached) for decision in decisions))

    with LedgerSaver(path) as saver:
        app = children.built(f"{path}.log").compile(checkpointer=saver)
        state = app.get_state(CONFIG)
        while state.tasks:  # whoever was last may have left something to do
            assert "__interrupt__" not in app.invoke(None, CONFIG, durability="sync")
            state = app.get_state(CONFIG)
    with RunLedger(f"{path}") as ledger:
        engine = AgentGraphEngine(ledger)
        [run] = engine.runs()
        [request] = engine.requests(run.agent_run_id)
        approved = [each["type"] == "approve" for each in request.answer["decisions"]]
        assert [] == ledger.verify()
    acted = Counter(noted(f"{path}.log"))
    assert {f"act {number}": 1 for number in range(children.TOOLS) if approved[number]} == acted
    results = [each for each in state.values["messages"] if isinstance(each, ToolMessage)]
    assert children.TOOLS == len(results)
    assert "done" == state.values["messages"][-1].text
    assert "done" in told
