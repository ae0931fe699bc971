"""Scenarios 18, 19, 22, 23: tools that end together, workers that meet, models that die, answers that are cut off."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from langgraph_ext import RunLedger
from langgraph_ext.engine import AgentGraphEngine, AgentSpec, ToolPolicy
from langgraph_ext.testing import ScriptedChatModel, call, say, truncated
from tests.faults.children import noted
from tests.support import killed_react as story
from tests.support import react_processes as children
from tests.support.faults import run
from tests.support.processes import at_once


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def results_of(engine: AgentGraphEngine, run_id: str) -> list[str]:
    """What the model was told of its calls, in their order."""
    messages = [each.message for each in engine.transcript(run_id)]
    return [each.text for each in messages if isinstance(each, ToolMessage)]


@pytest.mark.parametrize("stored", [0, 5])
def test_scenario_18_no_tool_that_acts_once_acts_twice(path: str, stored: int) -> None:
    """Eight tools act, and their process is killed behind the last: what nobody knows is asked, and told, once."""
    assert run(children.end_with_the_last, path, "once", stored).killed
    with story.opened(path) as engine:
        agent = children.eight(f"{path}.log", "once")
        run_id = engine.start(agent, "Go.", key="run").agent_run_id
        assert "running" == engine.drive(run_id, agent).status
        doubts = engine.doubts(run_id)
        for each in doubts:
            engine.resolve(run_id, each.operation_id, happened=True, result=f"acted {each.request['args']['number']}")
        assert "done" == engine.drive(run_id, agent).output
        assert [f"acted {number}" for number in range(children.TOOLS)] == results_of(engine, run_id)

    assert children.TOOLS - stored == len(doubts)
    assert {f"act {number}": 1 for number in range(children.TOOLS)} == Counter(noted(f"{path}.log"))


@pytest.mark.parametrize("effect", ["repeatable", "keyed"])
@pytest.mark.parametrize("stored", [0, 5])
def test_scenario_18_of_tools_that_may_be_repeated_the_unfinished_are(path: str, stored: int, effect: Any) -> None:
    """Once more each, and nobody is asked; those with a stored result are not called again."""
    assert run(children.end_with_the_last, path, effect, stored).killed
    with story.opened(path) as engine:
        agent = children.eight(f"{path}.log", effect)
        run_id = engine.start(agent, "Go.", key="run").agent_run_id
        assert "done" == engine.drive(run_id, agent).output
        assert [f"acted {number}" for number in range(children.TOOLS)] == results_of(engine, run_id)

    times = {f"act {number}": 1 if number < stored else 2 for number in range(children.TOOLS)}
    assert times == Counter(noted(f"{path}.log"))


@pytest.mark.parametrize("killed_at", [None, ("before", "accept-model"), ("after", "consume-batch")])
@pytest.mark.parametrize("workers", [2, 3])
def test_scenario_19_workers_that_drive_one_run_at_once_act_once(
    path: str, workers: int, killed_at: tuple[str, str] | None
) -> None:
    """One of them drives it, from its beginning or from where a killed process left it; the others are told."""
    if killed_at is not None:
        assert run(story.drive_and_be_killed, path, True, *killed_at, 1).killed

    told = at_once(children.drive_one_of_many, *[(path, workers)] * workers)

    assert ["succeeded"] + ["thread_busy"] * (workers - 1) == sorted(told)
    assert dict.fromkeys(story.WHOLE, 1) == story.outside(f"{path}.log")
    with story.opened(path) as engine:
        (done,) = engine.runs()
        operations = engine.operations(done.agent_run_id)
        assert [f"{each}: done" for each in story.CALLS] == results_of(engine, done.agent_run_id)
    assert 11 == len({each.purpose for each in operations}) == len(operations)
    assert [1] * 11 == [sum(call.state == "settled" for call in each.calls) for each in operations]
    with RunLedger(path) as ledger:
        assert [] == ledger.verify()


@pytest.mark.parametrize("moment", ["middle", "after"])
def test_scenario_22_crashes_inside_a_model_do_not_raise_its_limit(path: str, moment: str) -> None:
    """Calls that a crash has ended count: there are three, and the fourth worker ends the run instead."""
    assert [True] * 3 == [run(children.drive_a_dying_model, path, moment).killed for _ in range(3)]
    assert ["model_calls_exhausted"] * 2 == [run(children.drive_a_dying_model, path, moment).value() for _ in range(2)]

    assert ["model"] * 3 == noted(f"{path}.log")
    with story.opened(path) as engine:
        (done,) = engine.runs()
    assert ("exhausted", 3, 0) == (done.status, done.model_calls, done.loops_reserved)


@pytest.mark.parametrize("parallel", [True, False])
def test_scenario_23_no_call_of_an_answer_that_is_cut_off_is_made(path: str, parallel: bool) -> None:
    """Neither the one that breaks off nor those before it; the model is told, and may do better."""

    def pay(order: str) -> str:
        """Pay an order."""
        raise AssertionError("none of them is made")

    cut_off = truncated("Both.", call("pay", {"order": "a"}), call("pay", {"order": "b"}))
    agent = AgentSpec(
        model=ScriptedChatModel(script=[cut_off, say("done")]),
        tools=[pay],
        tool_policies={"pay": ToolPolicy(effect="repeatable")},
        parallel_tools=parallel,
    )
    with story.opened(path) as engine:
        done = engine.run(agent, "Go.")
        told = results_of(engine, done.agent_run_id)
        kinds = [each.kind for each in engine.operations(done.agent_run_id)]

    assert ("done", 0, ["model", "model"]) == (done.output, done.tool_calls, kinds)
    assert 2 == len(told)
    assert all(each.startswith("response_truncated: ") for each in told)
