"""A6, A12: a limit that is reached is a request of its own, if its spec says so; a person raises it, or does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentSpec, Hooks, Limits, RequestRecord
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.reacting import Notes, agent, answers, output_of, scripted

Engines = Callable[..., AgentGraphEngine]

APPROVE = {"type": "approve"}


def asking(notes: Notes, rounds: int = 4, **limits: Any) -> tuple[AgentSpec, ScriptedChatModel]:
    """An agent that calls its tool so many times, one after the other."""
    model = scripted(*(call("t", {"x": number}) for number in range(rounds)), "done")
    return agent(model, notes.tool("t"), limits=Limits(on_limit="ask", **limits)), model


def asked(engine: AgentGraphEngine, spec: AgentSpec) -> tuple[AgentRunRecord, RequestRecord]:
    run = engine.run(spec, "go")
    assert "running" == run.status
    [request] = engine.requests(run.agent_run_id, pending=True)
    return run, request


def decide(engine: AgentGraphEngine, run: AgentRunRecord, decision: Any) -> AgentRunRecord:
    [request] = engine.requests(run.agent_run_id, pending=True)
    engine.answer(run.agent_run_id, request.request_id, {"decisions": [decision]})
    return engine.drive(run.agent_run_id)


@pytest.mark.parametrize(
    ("limits", "limit", "used"),
    [
        ({"model_calls": 2}, "model_calls", 2),
        ({"tool_calls": 2}, "tool_calls", 2),
        ({"loops": 2}, "loops", 2),
        ({"tokens": 1}, "tokens", None),
    ],
)
def test_a6_at_a_limit_a_person_is_asked_and_raises_it(
    engine: AgentGraphEngine, limits: Any, limit: str, used: int | None
) -> None:
    """Nothing more is called before; then it goes on where it was, and asks again at the next."""
    notes = Notes()
    spec, model = asking(notes, **limits)
    run, request = asked(engine, spec)
    [action] = request.payload["action_requests"]
    most = limits[limit]
    assert ("limit", {"limit": limit, "to": 2 * most}, most) == (request.kind, action["args"], request.payload["most"])
    assert used in (None, request.payload["used"])
    made = (len(model.calls), len(notes))
    assert "running" == engine.drive(run.agent_run_id).status
    assert made == (len(model.calls), len(notes))
    assert "paused" == engine.ledger.runs()[0].status

    rest = {"type": "edit", "edited_action": {"name": "raise_limit", "args": {"limit": limit, "to": 10_000}}}
    assert "done" == output_of(decide(engine, run, rest))
    assert [("t", number) for number in range(4)] == notes
    assert 5 == len(model.calls)
    assert [] == engine.ledger.verify()


def test_a6_an_approval_doubles_it_and_the_next_is_asked_about_again(engine: AgentGraphEngine) -> None:
    notes = Notes()
    spec, model = asking(notes, model_calls=1)
    run, _ = asked(engine, spec)
    for calls_made in (2, 4):
        assert "running" == decide(engine, run, APPROVE).status
        assert calls_made == len(model.calls)
    assert "done" == output_of(decide(engine, run, APPROVE))
    assert ["answered"] * 3 == [each.state for each in engine.requests(run.agent_run_id)]
    assert 3 == len({each.request_id for each in engine.requests(run.agent_run_id)})


def test_a6_a_rejection_ends_the_run_as_the_limit_would(engine: AgentGraphEngine) -> None:
    notes = Notes()
    spec, model = asking(notes, loops=2)
    run, _ = asked(engine, spec)
    ended = decide(engine, run, {"type": "reject", "message": "that is enough"})
    assert ("exhausted", "loops_exhausted", "that is enough") == (ended.status, ended.reason, ended.message)
    assert 2 == len(model.calls)


@pytest.mark.parametrize("to", [2, 0, "9", None, 2**60])
def test_a6_a_limit_is_only_raised(engine: AgentGraphEngine, to: Any) -> None:
    spec, _ = asking(Notes(), model_calls=2)
    run, request = asked(engine, spec)
    edit = {"type": "edit", "edited_action": {"name": "raise_limit", "args": {"limit": "model_calls", "to": to}}}
    with pytest.raises(InvalidArgument, match="above 2"):
        engine.answer(run.agent_run_id, request.request_id, {"decisions": [edit]})
    assert 1 == len(engine.requests(run.agent_run_id, pending=True))


def test_a6_of_calls_at_once_those_that_fit_are_made_and_the_others_wait(engine: AgentGraphEngine) -> None:
    notes = Notes()
    model = scripted(calls(*(call("t", {"x": number}) for number in range(4))), "done")
    run, _ = asked(engine, agent(model, notes.tool("t"), limits=Limits(on_limit="ask", tool_calls=3)))
    assert 3 == len(notes)
    assert "done" == output_of(decide(engine, run, APPROVE))
    assert [("t", number) for number in range(4)] == sorted(notes)
    assert [f"{number}!" for number in range(4)] == [text for _, text in answers(engine, run)]


@pytest.mark.parametrize("parallel", [True, False])
def test_e18_hooks_are_not_asked_again_when_a_limit_was_raised(engines: Engines, parallel: bool) -> None:
    """What they have decided of the call that waited is kept, also for another worker."""
    seen: list[Any] = []
    notes = Notes()
    model = scripted(call("t", {"x": 1}), "done")
    hooks = Hooks(
        before_model=[lambda request: seen.append("model")], before_tool=[lambda request: seen.append("tool")]
    )
    limits = Limits(on_limit="ask", model_calls=1, tool_calls=1)
    spec = agent(model, notes.tool("t"), limits=limits, hooks=hooks, parallel_tools=parallel)
    run, request = asked(engines(), spec)
    assert ["model", "tool", "model"] == seen
    engine = engines()
    engine.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert ["model", "tool", "model"] == seen


def test_a6_cancelling_ends_a_run_that_waits_at_a_limit(engine: AgentGraphEngine) -> None:
    spec, _ = asking(Notes(), model_calls=2)
    run, _ = asked(engine, spec)
    assert "cancelled" == engine.cancel(run.agent_run_id).status
    assert ["cancelled"] == [each.state for each in engine.requests(run.agent_run_id)]
