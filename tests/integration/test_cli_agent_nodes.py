"""What `show` tells of a graph whose node is an agent: the tree of both, what is asked, and what was decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from typer.testing import CliRunner

from langgraph_ext import AgentNode, LedgerSaver
from langgraph_ext.cli.app import app
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import CONFIG, graph_of
from tests.support.reacting import Notes


@pytest.fixture(autouse=True)
def _of_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "2000")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def go(db: Path, given: Any) -> str:
    """Go on with the graph; the id of its run."""
    model = ScriptedChatModel(script=[call("refund", {"x": 7}), "done"])
    node = AgentNode(name="support", model=model, tools=[Notes().tool("refund")], interrupt_on={"refund": True})
    with LedgerSaver(db) as saver:
        graph_of(node).compile(checkpointer=saver).invoke(given, CONFIG)
        return saver.ledger.runs(thread_id="t")[0].run_id


def show(db: Path, run_id: str, *options: str) -> str:
    found = CliRunner().invoke(app, ["show", run_id, "--db", str(db), *options])
    assert 0 == found.exit_code, found.output
    return found.output


def test_a5_a_run_shows_the_agent_runs_that_it_is_made_of(db: Path) -> None:
    """While a person is asked, and behind the answer; with the slots, and what was decided."""
    run_id = go(db, {"messages": [HumanMessage("go")]})
    told = show(db, run_id)
    assert "agent run " in told
    assert "request approval  open  id approval:" in told
    assert '{"x":7}' in told
    go(db, Command(resume={"decisions": [{"type": "approve"}]}))
    told = show(db, run_id, "--transcript")
    assert "request approval  answered" in told
    assert "slot call-0-0 refund  settled" in told
    assert "done" in told
    assert "visit:" not in told


def test_a5_programs_are_told_the_same(db: Path) -> None:
    run_id = go(db, {"messages": [HumanMessage("go")]})
    [agent] = json.loads(show(db, run_id, "--json"))["agents"]
    assert ("approval", "open") == (agent["requests"][0]["kind"], agent["requests"][0]["state"])
    [hidden] = json.loads(show(db, run_id, "--json", "--no-payloads"))["agents"]
    assert "payload" not in hidden["requests"][0]
    assert [run_id] == [each["parent_run_id"] for each in json.loads(runs(db))["runs"] if each["parent_run_id"]]


def runs(db: Path) -> str:
    return CliRunner().invoke(app, ["runs", "--db", str(db), "--json"]).output
