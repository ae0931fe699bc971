"""E12, A12: what is looked at before a new loop starts, and what is counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langchain_core.exceptions import ModelRateLimitError

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentStatus, Compaction, Deadlines, Limits, Retry
from langgraph_ext.errors import StoreError
from langgraph_ext.testing import FixedClock, ScriptedChatModel, call, calls, fails, say
from tests.support.bench import Once
from tests.support.reacting import (
    FREEZES,
    Notes,
    agent,
    begun_and_left,
    crash_at,
    operations,
    output_of,
    results,
    scripted,
    strikes_of,
)

Engines = Callable[..., AgentGraphEngine]
LONG = "word " * 200


# -- E12


def test_e12_the_last_decision_that_counted_has_its_calls_run(engine: AgentGraphEngine) -> None:
    """And the next loop does not start: there is no other call of the model."""
    notes, model = Notes(), scripted(calls(call("t", {"x": 1}), call("t", {"x": 2})), "never")
    run = engine.run(agent(model, notes.tool("t"), limits=Limits(loops=1)), "go")
    assert (AgentStatus.EXHAUSTED, "loops_exhausted") == (run.status, run.reason)
    assert ([("t", 1), ("t", 2)], ["1!", "2!"]) == (sorted(notes), results(engine, run))
    assert (1, 1, 1) == (len(model.calls), run.loops_used, run.model_calls)


def test_e12_an_answer_may_take_the_last_loop(engine: AgentGraphEngine) -> None:
    assert "done" == output_of(engine.run(agent(["done"], limits=Limits(loops=1)), "go"))


def test_e12_an_exhausted_limit_closes_before_any_compaction(engine: AgentGraphEngine) -> None:
    """No summary is paid for that nobody would read."""
    summaries = scripted("never")
    spec = agent(
        [call("t", {"x": 1}), "never"],
        Notes().tool("t", lambda x: LONG),
        limits=Limits(loops=1),
        compaction=Compaction(soft_tokens=100, model=summaries),
    )
    run = engine.run(spec, LONG)
    assert (AgentStatus.EXHAUSTED, "loops_exhausted") == (run.status, run.reason)
    assert ([], 1) == (summaries.calls, run.model_calls)


@pytest.mark.parametrize("soft", [None, 100])
def test_e12_a_deadline_that_has_passed_starts_no_loop(
    engine: AgentGraphEngine, clock: FixedClock, soft: int | None
) -> None:
    """No compaction either. What the last decision's tool has found is kept."""
    summaries = scripted("never")
    spec = agent(
        [call("t", {"x": 1}), "never"],
        Notes().tool("t", lambda x: str(clock.advance(11))),
        deadlines=Deadlines(run_seconds=10.0),
        compaction=Compaction(soft_tokens=soft, model=summaries),
    )
    run = engine.run(spec, LONG)
    assert (AgentStatus.FAILED, "deadline_exceeded") == (run.status, run.reason)
    assert ([str(clock())], 1, []) == (results(engine, run), run.model_calls, summaries.calls)


def test_e12_a_stop_before_the_first_loop_lets_it_never_start(engine: AgentGraphEngine) -> None:
    model = scripted("never")
    run = engine.start(agent(model), "go")
    engine.cancel(run.agent_run_id)
    assert AgentStatus.CANCELLED is engine.drive(run.agent_run_id).status
    assert [] == model.calls


def test_e12_a_stop_between_two_loops_lets_the_next_never_start(engine: AgentGraphEngine) -> None:
    """It came when the tool had returned, and its result was not stored yet; that is kept."""
    model, notes = scripted(call("t", {"x": 1}), "never"), Notes()
    run = engine.start(agent(model, notes.tool("t")), "go")
    strikes_of(engine).append(Once("before", "call-raw:", lambda: engine.cancel(run.agent_run_id), at=2))
    run = engine.drive(run.agent_run_id)
    assert (AgentStatus.CANCELLED, "stopped") == (run.status, run.reason)
    assert (1, [("t", 1)], ["1!"]) == (len(model.calls), notes, results(engine, run))


# -- A12


def test_a12_a_retry_is_a_model_call_more_and_no_loop_more(engine: AgentGraphEngine) -> None:
    model = ScriptedChatModel(script=[call("t", {"x": 1}), fails(ModelRateLimitError("busy"))])
    spec = agent(
        model, Notes().tool("t"), retry=Retry(calls=3, wait_seconds=0.0), limits=Limits(model_calls=3, loops=50)
    )
    run = engine.run(spec, "go")
    assert (AgentStatus.EXHAUSTED, "model_calls_exhausted") == (run.status, run.reason)
    assert (3, 3, 1, 1) == (len(model.calls), run.model_calls, run.loops_used, run.tool_calls)
    assert ["consumed", "released"] == [str(each.state) for each in engine.tickets(run.agent_run_id)]


def test_a12_a_limit_of_model_calls_holds_over_crashes(engines: Engines) -> None:
    """Each call is counted before it leaves the process, and never given back."""
    model = scripted("done")
    spec = agent(model, limits=Limits(model_calls=3))
    run = engines().start(spec, "go")
    for _ in range(3):
        engine = engines()
        crash_at(engine, "call-raw:", "before")
        with pytest.raises(StoreError):
            engine.drive(run.agent_run_id, spec)
    run = engines().drive(run.agent_run_id, spec)
    assert (AgentStatus.EXHAUSTED, "model_calls_exhausted") == (run.status, run.reason)
    assert (3, 3, 0) == (len(model.calls), run.model_calls, run.loops_used)


def test_a12_a_call_that_was_permitted_and_never_made_counts(engines: Engines) -> None:
    model = scripted("never")
    spec = agent(model, limits=Limits(model_calls=1))
    run = begun_and_left(engines(), spec, FREEZES)
    run = engines().drive(run.agent_run_id, spec)
    assert (AgentStatus.EXHAUSTED, 1, []) == (run.status, run.model_calls, model.calls)


def test_a12_a_limit_of_tool_calls_ends_the_run(engine: AgentGraphEngine) -> None:
    """Before the first call of a decision that asks for more than are left: none is stopped half-way."""
    notes, script = Notes(), [call("t", {"x": 0}), calls(call("t", {"x": 1}), call("t", {"x": 2})), "never"]
    run = engine.run(agent(script, notes.tool("t"), limits=Limits(tool_calls=2)), "go")
    assert (AgentStatus.EXHAUSTED, "tool_calls_exhausted") == (run.status, run.reason)
    assert ([("t", 0)], 1, 2) == (notes, run.tool_calls, run.model_calls)
    assert "0!" == results(engine, run)[0]
    assert all(each.startswith("tool_calls_exhausted") for each in results(engine, run)[1:])


def test_a12_a_rejected_call_is_no_tool_call(engine: AgentGraphEngine) -> None:
    script = [calls(call("gone"), call("t", {"x": 1})), "done"]
    run = engine.run(agent(script, Notes().tool("t"), limits=Limits(tool_calls=1)), "go")
    assert ("done", 1) == (output_of(run), run.tool_calls)


def test_a12_tokens_that_are_used_up_let_no_model_be_called_again(engine: AgentGraphEngine) -> None:
    notes, script = Notes(), [call("t", {"x": 1}, usage=(50, 60)), "never"]
    run = engine.run(agent(script, notes.tool("t"), limits=Limits(tokens=110)), "go")
    assert (AgentStatus.EXHAUSTED, "tokens_exhausted") == (run.status, run.reason)
    assert (50, 60, 1, [("t", 1)]) == (run.tokens_in, run.tokens_out, run.model_calls, notes)


def test_a12_one_token_less_than_the_limit_is_not_used_up(engine: AgentGraphEngine) -> None:
    script = [call("t", {"x": 1}, usage=(50, 60)), "done"]
    assert "done" == output_of(engine.run(agent(script, Notes().tool("t"), limits=Limits(tokens=111)), "go"))


def test_a12_usage_is_what_the_model_says(engine: AgentGraphEngine) -> None:
    run = engine.run(agent([say("done", usage=(120, 4))]), "go")
    [made] = operations(engine, run)[0].calls
    assert (120, 4, False) == (made.tokens_in, made.tokens_out, made.tokens_estimated)
    assert (120, 4) == (run.tokens_in, run.tokens_out)


def test_a12_usage_that_a_model_does_not_say_is_estimated_and_marked(engine: AgentGraphEngine) -> None:
    """Of what was sent, too: four characters are about a token."""
    run = engine.run(agent([say("x" * 400, usage=None)]), "y" * 800)
    [made] = operations(engine, run)[0].calls
    assert made.tokens_estimated
    assert 200 <= (made.tokens_in or 0) <= 220
    assert 100 <= (made.tokens_out or 0) <= 120
    assert (made.tokens_in, made.tokens_out) == (run.tokens_in, run.tokens_out)


def test_a12_what_was_estimated_counts_towards_the_limit(engine: AgentGraphEngine) -> None:
    script = [call("t", {"x": 1}, usage=None), "never"]
    run = engine.run(agent(script, Notes().tool("t"), limits=Limits(tokens=100)), "y" * 800)
    assert (AgentStatus.EXHAUSTED, "tokens_exhausted") == (run.status, run.reason)


def test_a12_a_run_without_limits_counts_all_the_same(engine: AgentGraphEngine) -> None:
    run = engine.run(agent([call("t", {"x": 1}, usage=(5, 6)), say("done", usage=(7, 8))], Notes().tool("t")), "go")
    assert (2, 1, 12, 14) == (run.model_calls, run.tool_calls, run.tokens_in, run.tokens_out)
