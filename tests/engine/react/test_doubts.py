"""A10, E23: calls of which nobody knows whether they did anything, and the key that makes them the same call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.exceptions import LangChainException
from langchain_core.tools import tool

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import (
    AgentRunRecord,
    AgentSpec,
    AgentStatus,
    Deadlines,
    InjectedIdempotencyKey,
    Retry,
    ToolPolicy,
)
from langgraph_ext.errors import ConflictError, InvalidArgument, LangGraphExtError, NotFound
from langgraph_ext.ledger.not_done import EffectNotDone
from langgraph_ext.testing import FixedClock, call, calls
from tests.support.reacting import FREEZES, Notes, agent, begun_and_left, operations, output_of, results, scripted

Engines = Callable[..., AgentGraphEngine]


class Busy(LangChainException):
    """A tool's error that says that another call may help."""

    is_retryable = True


class Paying:
    """A tool that notes the keys that it is called with, and fails at its first calls."""

    def __init__(self, *, failing: int = 0) -> None:
        self.keys: list[str] = []
        self.failing = failing

        @tool
        async def pay(x: int, key: Annotated[str, InjectedIdempotencyKey]) -> str:
            """Pay."""
            self.keys.append(key)
            if len(self.keys) <= self.failing:
                raise Busy("busy")
            return f"paid {x}"

        self.tool = pay


def left_in_doubt(engines: Engines, paying: Paying, **policy: Any) -> tuple[AgentGraphEngine, AgentSpec, Any]:
    """An agent whose tool was called, and whose worker died before the result was stored; and a second worker."""
    policies = {"pay": ToolPolicy(**policy)} if policy else {}
    spec = agent([call("pay", {"x": 1}), "done"], paying.tool, tool_policies=policies)
    run = begun_and_left(engines(), spec, "call-raw:", "before", at=2)
    assert 1 == len(paying.keys)
    return engines(), spec, run


# -- the key


def test_a10_a_tool_is_given_its_key_and_no_model_sees_it(engine: AgentGraphEngine) -> None:
    """What the model gives for it is dropped."""
    paying, model = Paying(), scripted(call("pay", {"x": 1, "key": "mine"}), "done")
    run = engine.run(agent(model, paying.tool), "go")
    [operation] = operations(engine, run, "tool")
    assert ("done", [operation.idempotency_key]) == (output_of(run), paying.keys)
    [shown] = model.calls[0].request["tools"]
    assert ["x"] == list(shown["function"]["parameters"]["properties"])


def test_a10_a_key_is_the_same_over_retries_and_another_for_another_call(engine: AgentGraphEngine) -> None:
    """Be its arguments the same."""
    paying = Paying(failing=1)
    script = [call("pay", {"x": 1}), call("pay", {"x": 1}), "done"]
    output_of(engine.run(agent(script, paying.tool, retry=Retry(wait_seconds=0.0)), "go"))
    first, again, other = paying.keys
    assert first == again != other


@pytest.mark.parametrize("effect", ["keyed", "repeatable"])
def test_a10_what_may_be_called_again_is_with_the_key_that_it_had(engines: Engines, effect: str) -> None:
    paying = Paying()
    engine, spec, run = left_in_doubt(engines, paying, effect=effect)
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert (["paid 1"], 2, 1) == (results(engine, run), len(paying.keys), len(set(paying.keys)))
    assert ["interrupted", "settled"] == [str(each.state) for each in operations(engine, run, "tool")[0].calls]


# -- once


def test_a10_what_is_done_once_is_asked_about_and_not_called_again(engines: Engines) -> None:
    """However often the run is driven; a tool without a hint is such a one."""
    paying = Paying()
    engine, spec, run = left_in_doubt(engines, paying)
    for _ in range(2):
        assert AgentStatus.RUNNING is engine.drive(run.agent_run_id, spec).status
        assert engine.get_run(run.agent_run_id).paused_at is not None
    [doubt] = engine.doubts(run.agent_run_id)
    assert (True, "pay", paying.keys) == (doubt.in_doubt, doubt.name, [doubt.idempotency_key])
    assert {"x": 1} == doubt.request["args"]


def test_a10_or_the_model_is_told_that_nobody_knows(engines: Engines) -> None:
    paying = Paying()
    engine, spec, run = left_in_doubt(engines, paying, on_unknown="error")
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert ["outcome_unknown: nobody knows whether it was done"] == results(engine, run)
    assert (1, []) == (len(paying.keys), engine.doubts(run.agent_run_id))


class Finding:
    """A function that finds out: notes what it was asked, and returns or raises something."""

    def __init__(self, found: Any, *, is_async: bool = False) -> None:
        self.asked: list[Any] = []
        self.found = found
        self.is_async = is_async

    def function(self) -> Callable[..., Any]:
        def find_out(args: Any, key: str) -> Any:
            self.asked.append((args, key))
            if isinstance(self.found, Exception):
                raise self.found
            return self.found

        async def find_out_soon(args: Any, key: str) -> Any:
            await asyncio.sleep(0)
            return find_out(args, key)

        return find_out_soon if self.is_async else find_out


@pytest.mark.parametrize("is_async", [True, False])
def test_a10_a_function_finds_out_what_it_came_to(engines: Engines, is_async: bool) -> None:
    """It is given the arguments and the key, and what it returns is the tool's result."""
    paying, finding = Paying(), Finding("paid after all", is_async=is_async)
    engine, spec, run = left_in_doubt(engines, paying, on_unknown=finding.function())
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert ["paid after all"] == results(engine, run)
    assert [({"x": 1}, key) for key in paying.keys] == finding.asked


def test_a10_a_function_that_knows_that_nothing_was_done_has_it_called_again(engines: Engines) -> None:
    paying, finding = Paying(), Finding(EffectNotDone("no such payment"))
    engine, spec, run = left_in_doubt(engines, paying, on_unknown=finding.function())
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert (["paid 1"], 2, 1) == (results(engine, run), len(paying.keys), len(set(paying.keys)))


@pytest.mark.parametrize("found", [None, ValueError("no network"), {1, 2}], ids=["nothing", "an error", "no JSON"])
def test_a10_if_the_function_cannot_tell_a_person_is_asked(engines: Engines, found: Any) -> None:
    """And the function not again."""
    paying, finding = Paying(), Finding(found)
    engine, spec, run = left_in_doubt(engines, paying, on_unknown=finding.function())
    for _ in range(2):
        assert AgentStatus.RUNNING is engine.drive(run.agent_run_id, spec).status
    [doubt] = engine.doubts(run.agent_run_id)
    assert (1, 1) == (len(paying.keys), len(finding.asked))
    engine.resolve(run.agent_run_id, doubt.operation_id, happened=True, result="paid")
    assert "done" == output_of(engine.drive(run.agent_run_id))


@pytest.mark.parametrize("effect", ["once", "repeatable"])
def test_a9_a10_an_async_tool_that_takes_too_long_was_ended(engine: AgentGraphEngine, effect: str) -> None:
    """One that is done once may have been done before that; another one has failed, and the model may ask again."""
    notes = Notes()
    spec = agent(
        [call("t", {"x": 1}), "done"],
        notes.tool("t", lambda x: asyncio.sleep(30)),
        deadlines=Deadlines(tool_seconds=0.02),
        tool_policies={"t": ToolPolicy(effect=effect)},
    )
    run = engine.run(spec, "go")
    assert [("t", 1)] == notes
    if effect == "once":
        assert (AgentStatus.RUNNING, 1) == (run.status, len(engine.doubts(run.agent_run_id)))
    else:
        assert "done" == output_of(run)
        assert (results(engine, run)[0] or "").startswith("deadline_exceeded: ")


# -- resolve


@pytest.fixture
def doubt(engines: Engines) -> Any:
    """A run with a call in doubt: its engine, its paying tool, itself and the operation's id."""
    paying = Paying()
    engine, spec, run = left_in_doubt(engines, paying)
    run = engine.drive(run.agent_run_id, spec)
    return engine, paying, run.agent_run_id, engine.doubts(run.agent_run_id)[0].operation_id


@pytest.mark.parametrize(("result", "told"), [("paid", "paid"), ({"sum": 5}, '{"sum":5}'), (0, "0"), ("", "")])
def test_a10_what_a_person_says_it_came_to_is_its_result(doubt: Any, result: Any, told: str) -> None:
    engine, paying, run_id, operation_id = doubt
    resolved = engine.resolve(run_id, operation_id, happened=True, result=result)
    assert (False, "completed") == (resolved.in_doubt, str(resolved.state))
    run = engine.drive(run_id)
    assert ("done", [told], 1) == (output_of(run), results(engine, run), len(paying.keys))


def test_a10_if_a_person_says_that_it_did_not_happen_it_is_called_again(doubt: Any) -> None:
    """With the key that it had."""
    engine, paying, run_id, operation_id = doubt
    resolved = engine.resolve(run_id, operation_id, happened=False)
    assert (False, "ready", None) == (resolved.in_doubt, str(resolved.state), resolved.outcome)
    run = engine.drive(run_id)
    assert ("done", ["paid 1"], 1) == (output_of(run), results(engine, run), len(set(paying.keys)))
    assert 2 == run.tool_calls


async def test_a10_resolve_has_an_async_form(doubt: Any) -> None:
    engine, _, run_id, operation_id = doubt
    [found] = await engine.adoubts(run_id)
    assert operation_id == found.operation_id
    assert not (await engine.aresolve(run_id, operation_id, happened=True, result="paid")).in_doubt
    assert "done" == output_of(await engine.adrive(run_id))


@pytest.mark.parametrize(
    "bad",
    [
        {"happened": False, "result": "paid"},
        {"happened": True, "result": object()},
        {"happened": True, "result": float("nan")},
        {"happened": "yes", "result": "paid"},
        {"happened": None, "result": "paid"},
    ],
    ids=lambda bad: f"{bad['happened']} {type(bad.get('result')).__name__}",
)
def test_a10_what_is_said_of_a_call_is_looked_at(doubt: Any, bad: Any) -> None:
    engine, _, run_id, operation_id = doubt
    with pytest.raises(InvalidArgument):
        engine.resolve(run_id, operation_id, **bad)
    assert [operation_id] == [each.operation_id for each in engine.doubts(run_id)]


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(LangGraphExtError) as refused:
        act()
    return refused.value.code


def test_a10_only_what_is_in_doubt_is_resolved_and_once(doubt: Any) -> None:
    engine, _, run_id, operation_id = doubt
    said = {"happened": True, "result": "paid"}
    [model] = [each.operation_id for each in engine.operations(run_id) if each.kind == "model"]
    other = engine.start(agent(["done"]), "go").agent_run_id
    assert "operation_not_in_doubt" == code_of(lambda: engine.resolve(run_id, model, **said))
    assert "operation_not_found" == code_of(lambda: engine.resolve(run_id, "gone", **said))
    assert "operation_not_found" == code_of(lambda: engine.resolve(other, operation_id, **said))
    assert "operation_not_found" == code_of(lambda: engine.resolve("gone", operation_id, **said))
    with pytest.raises(InvalidArgument):
        engine.resolve(run_id, 5, **said)
    engine.resolve(run_id, operation_id, **said)
    assert "completed" == str(engine.resolve(run_id, operation_id, **said).state)  # the same again
    assert "idempotency_conflict" == code_of(lambda: engine.resolve(run_id, operation_id, happened=False))


def test_a10_a_doubt_is_not_forgotten_when_its_run_ends(doubt: Any) -> None:
    """Its history says that nobody knows; nothing more is done about it, and whoever asks is told of it."""
    engine, paying, run_id, operation_id = doubt
    engine.cancel(run_id)
    assert [operation_id] == [each.operation_id for each in engine.doubts(run_id)]
    with pytest.raises(ConflictError) as refused:
        engine.resolve(run_id, operation_id, happened=False)
    assert ("run_closed", 1) == (refused.value.code, len(paying.keys))
    assert "outcome_unknown" in engine.transcript(run_id)[-1].message.text


def test_a10_unknown_runs_have_no_doubts(engine: AgentGraphEngine) -> None:
    with pytest.raises(NotFound):
        engine.doubts("gone")


# -- E23: clocks stand while a person is waited for


def in_doubt(engines: Engines, *steps: Any, tools: list[Any]) -> tuple[AgentGraphEngine, AgentRunRecord]:
    """An agent that has ten seconds, and waits for a person."""
    spec = agent([*steps, "done"], *tools, deadlines=Deadlines(run_seconds=10.0))
    run = begun_and_left(engines(), spec, "call-raw:", "before", at=2)
    engine = engines()
    return engine, engine.drive(run.agent_run_id, spec)


def test_e23_the_clock_stands_while_a_person_is_waited_for(engines: Engines, clock: FixedClock) -> None:
    engine, run = in_doubt(engines, call("pay", {"x": 1}), tools=[Paying().tool])
    clock.advance(100)
    assert AgentStatus.RUNNING is engine.drive(run.agent_run_id).status
    [doubt] = engine.doubts(run.agent_run_id)
    engine.resolve(run.agent_run_id, doubt.operation_id, happened=True, result="paid")
    resolved = engine.get_run(run.agent_run_id)
    assert resolved.paused_at is None
    assert resolved.deadline_at is not None
    assert run.deadline_at is not None
    assert 100.0 == (resolved.deadline_at - run.deadline_at).total_seconds()
    assert "done" == output_of(engine.drive(run.agent_run_id))


def test_e23_when_the_person_has_answered_it_goes_on(engines: Engines, clock: FixedClock) -> None:
    engine, run = in_doubt(engines, call("pay", {"x": 1}), tools=[Paying().tool])
    clock.advance(100)
    [doubt] = engine.doubts(run.agent_run_id)
    engine.resolve(run.agent_run_id, doubt.operation_id, happened=True, result="paid")
    clock.advance(11)
    run = engine.drive(run.agent_run_id)
    assert (AgentStatus.FAILED, "deadline_exceeded") == (run.status, run.reason)


def test_e23_it_stands_until_the_last_of_several_doubts_is_settled(engines: Engines, clock: FixedClock) -> None:
    notes = Notes()
    step = calls(call("t", {"x": 1}), call("t", {"x": 2}))
    engine, run = in_doubt(engines, step, tools=[notes.tool("t")])
    first, second = engine.doubts(run.agent_run_id)
    for each in (first, second):
        clock.advance(100)
        engine.resolve(run.agent_run_id, each.operation_id, happened=True, result="ok")
    assert "done" == output_of(engine.drive(run.agent_run_id))


def test_e23_a_takeover_resets_no_clock(engines: Engines, clock: FixedClock) -> None:
    """Nor does the time between two workers stand still."""
    model = scripted("done")
    spec = agent(model, deadlines=Deadlines(run_seconds=10.0))
    run = begun_and_left(engines(), spec, FREEZES, "before")
    clock.advance(11)
    run = engines().drive(run.agent_run_id, spec)
    assert (AgentStatus.FAILED, "deadline_exceeded", []) == (run.status, run.reason, model.calls)


def test_a10_a_person_may_say_that_nobody_will_find_out(doubt: Any) -> None:
    """It is not called again, and the model is told."""
    engine, paying, run_id, operation_id = doubt
    engine.resolve(run_id, operation_id, happened=None)
    run = engine.drive(run_id)
    assert "done" == output_of(run)
    assert 1 == len(paying.keys)
    [told] = results(engine, run)
    assert "outcome_unknown" in (told or "")
