"""E23: another call of what has failed, and how long things may take."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.exceptions import (
    LangChainException,
    ModelInvalidRequestError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentSpec, AgentStatus, Deadlines, Retry
from langgraph_ext.testing import FixedClock, call, fails, hangs, say, tries
from tests.support.reacting import Notes, agent, operations, output_of, results, scripted

AGAIN = Retry(wait_seconds=0.0)


class Busy(LangChainException):
    """A tool's error that says that another call may help."""

    is_retryable = True


def busy(notes: Notes, error: Exception, *, times: int = 1) -> Any:
    """A tool that raises at its first calls."""

    def act(x: int) -> str:
        if len(notes) <= times:
            raise error
        return f"{x}!"

    return notes.tool("t", act)


# -- retry


def test_e23_nothing_is_called_a_second_time_unless_the_spec_says_so(engine: AgentGraphEngine) -> None:
    notes, model = Notes(), scripted(fails(ModelRateLimitError("busy")))
    run = engine.run(agent(model), "go")
    assert (AgentStatus.FAILED, "model_call_failed", 1) == (run.status, run.reason, len(model.calls))
    run = engine.run(agent([call("t", {"x": 1}), "done"], busy(notes, Busy("busy"))), "go")
    assert ("done", [("t", 1)]) == (output_of(run), notes)
    assert ["call_failed: Busy: busy"] == results(engine, run)


@pytest.mark.parametrize("error", [ModelRateLimitError("busy"), ModelTimeoutError("slow"), TimeoutError("socket")])
def test_e23_a_model_whose_error_says_that_it_may_help_is_called_again(
    engine: AgentGraphEngine, error: Exception
) -> None:
    """It is another call of the same operation, with the same ticket."""
    run = engine.run(agent([tries(fails(error), say("done"))], retry=AGAIN), "go")
    [operation] = operations(engine, run)
    assert ("done", ["failed", "settled"]) == (output_of(run), [str(each.state) for each in operation.calls])
    assert (2, 1) == (run.model_calls, len(engine.tickets(run.agent_run_id)))
    assert str(error) in str(operation.calls[0].error)


def test_e23_a_tool_whose_error_says_that_it_may_help_is_called_again(engine: AgentGraphEngine) -> None:
    notes = Notes()
    run = engine.run(agent([call("t", {"x": 1}), "done"], busy(notes, Busy("busy")), retry=AGAIN), "go")
    assert ("done", ["1!"], 2) == (output_of(run), results(engine, run), run.tool_calls)
    assert ["tool:1:0"] == [each.purpose for each in operations(engine, run, "tool")]


def test_e23_two_calls_are_all_unless_the_spec_says_more(engine: AgentGraphEngine) -> None:
    assert (2, 2.0) == (Retry().calls, Retry().wait_seconds)
    notes = Notes()
    output_of(engine.run(agent([call("t", {"x": 1}), "done"], busy(notes, Busy(""), times=9), retry=AGAIN), "go"))
    assert 2 == len(notes)
    retry = Retry(calls=4, wait_seconds=0.0)
    output_of(engine.run(agent([call("t", {"x": 1}), "done"], busy(Notes(), Busy(""), times=3), retry=retry), "go"))


@pytest.mark.parametrize("error", [ModelInvalidRequestError("bad"), ValueError("bad")])
def test_e23_what_says_nothing_of_it_is_not_called_again(engine: AgentGraphEngine, error: Exception) -> None:
    notes, model = Notes(), scripted(fails(error))
    assert AgentStatus.FAILED is engine.run(agent(model, retry=AGAIN), "go").status
    output_of(engine.run(agent([call("t", {"x": 1}), "done"], busy(notes, error), retry=AGAIN), "go"))
    assert (1, 1) == (len(model.calls), len(notes))


def test_e23_a_protocol_error_is_not_called_again(engine: AgentGraphEngine) -> None:
    model = scripted(say(""))
    run = engine.run(agent(model, retry=AGAIN), "go")
    assert ("model_protocol_error", 1) == (run.reason, len(model.calls))


def test_e23_there_is_a_wait_before_the_second_call(engine: AgentGraphEngine) -> None:
    times: list[float] = []

    def act(x: int) -> str:
        times.append(time.monotonic())
        if len(times) == 1:
            raise Busy("busy")
        return "ok"

    spec = agent([call("t", {"x": 1}), "done"], Notes().tool("t", act), retry=Retry(wait_seconds=0.05))
    assert "done" == output_of(engine.run(spec, "go"))
    assert 0.05 <= times[1] - times[0]


# -- how long


class Stalls(BaseChatModel):
    """Says so much at once, and then nothing more."""

    pieces: int = 1

    @property
    def _llm_type(self) -> str:
        return "stalls"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for _ in range(self.pieces):
            yield ChatGenerationChunk(message=AIMessageChunk("so "))
            await asyncio.sleep(0.02)
        await asyncio.sleep(30)


def stalled(engine: AgentGraphEngine, pieces: int, **deadlines: float) -> tuple[Any, Any]:
    """How a run of it ends, and its call."""
    begun = time.monotonic()
    run = engine.run(AgentSpec(model=Stalls(pieces=pieces), deadlines=Deadlines(**deadlines)), "go")
    assert time.monotonic() - begun < 4
    assert (AgentStatus.FAILED, "model_call_failed") == (run.status, run.reason)
    return run.message, operations(engine, run)[0].calls[0]


def test_e23_a_model_that_says_nothing_is_given_up(engine: AgentGraphEngine) -> None:
    message, made = stalled(engine, 0, model_seconds=0.03)
    assert "deadline_exceeded: the model said nothing for 0.03 s" in message
    assert made.partial is None


def test_e23_a_model_that_falls_silent_is_given_up(engine: AgentGraphEngine) -> None:
    """Later than it may take from one output to the next; what it had said is kept."""
    message, made = stalled(engine, 3, model_seconds=5.0, model_idle_seconds=0.04)
    assert "deadline_exceeded: the model said nothing more for 0.04 s" in message
    assert "so so so " == made.partial["data"]["content"]


def test_e23_a_model_that_streams_may_take_longer_than_its_first_output(engine: AgentGraphEngine) -> None:
    message, made = stalled(engine, 4, model_seconds=0.05, model_idle_seconds=0.06)
    assert "said nothing more for 0.06 s" in message
    assert "so so so so " == made.partial["data"]["content"]


def test_e23_a_model_that_was_given_up_may_be_called_again(engine: AgentGraphEngine) -> None:
    model = scripted(tries(hangs(), say("done")))
    run = engine.run(agent(model, retry=AGAIN, deadlines=Deadlines(model_seconds=0.1)), "go")
    assert ("done", 2) == (output_of(run), run.model_calls)


def test_e23_a_tool_has_its_own_time_if_it_is_given_one(engine: AgentGraphEngine) -> None:
    notes, late = Notes(), asyncio.Event()

    async def waits(x: int) -> str:
        await late.wait()
        return "late"

    async def then(x: int) -> str:
        await asyncio.sleep(0.05)
        late.set()
        return "then"

    spec = agent(
        [call("quick", {"x": 1}), "done"],
        notes.tool("quick", waits, metadata={"effect": "repeatable"}),
        notes.tool("patient", then),
        deadlines=Deadlines(tool_seconds=5.0, per_tool={"quick": 0.02}),
    )
    run = engine.run(spec, "go")
    assert "done" == output_of(run)
    assert (results(engine, run)[0] or "").startswith("deadline_exceeded: tool 'quick' took longer than 0.02 s")
    spec = agent(
        [call("patient", {"x": 1}), "done"],
        notes.tool("patient", then),
        deadlines=Deadlines(tool_seconds=0.02, per_tool={"patient": None}),
    )
    run = engine.run(spec, "go")
    assert ("done", ["then"]) == (output_of(run), results(engine, run))


def test_e23_the_time_of_the_whole_run_ends_a_call_that_is_under_way(
    engine: AgentGraphEngine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had begun is closed, each call with a result."""
    monkeypatch.setattr("langgraph_ext.engine.driver._LOOK_SECONDS", 0.02)
    begun = threading.Event()

    async def waits(x: int) -> str:
        clock.advance(11)
        begun.set()
        await asyncio.sleep(30)
        return "late"

    tool = Notes().tool("t", waits, metadata={"effect": "repeatable"})
    run = engine.run(agent([call("t", {"x": 1}), "never"], tool, deadlines=Deadlines(run_seconds=10.0)), "go")
    assert (AgentStatus.FAILED, "deadline_exceeded") == (run.status, run.reason)
    assert begun.is_set()
    assert ["cancelled: it was stopped while it ran"] == results(engine, run)


def test_e23_a_run_may_have_no_deadline(engine: AgentGraphEngine, clock: FixedClock) -> None:
    tool = Notes().tool("t", lambda x: str(clock.advance(10**6)))
    run = engine.run(agent([call("t", {"x": 1}), "done"], tool, deadlines=Deadlines(run_seconds=None)), "go")
    assert ("done", None) == (output_of(run), run.deadline_at)
