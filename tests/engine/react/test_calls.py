"""E15, E19, E20, E22, A9, A11: what becomes of the tool calls of a decision."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException, tool

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import Deadlines, Deny, Hooks, ToolPolicy
from langgraph_ext.testing import call, calls, say, scripted_tool
from tests.support.reacting import (
    Notes,
    agent,
    answers,
    begun_and_left,
    history,
    operations,
    output_of,
    results,
    scripted,
)

Engines = Callable[..., AgentGraphEngine]


def codes(engine: AgentGraphEngine, run: Any) -> list[str]:
    """What each slot's result begins with."""
    return [(text or "").split(":")[0] for text in results(engine, run)]


# -- E15


def role_graph(model: Any, tools: list[Any], allowed: list[str]) -> dict[str, Any]:
    """An agent whose role may not call all of its tools."""
    return {
        "kind": "react",
        "entry": "one",
        "roles": [{"name": "one", "role": "react", "model": "m", "tools": allowed}],
        "bindings": [{"role": "one", "behaviour": "react", "version": 1}],
        "models": {"m": model},
        "tools": tools,
    }


def test_e15_calls_that_cannot_be_made_are_told_and_the_others_go_on(engine: AgentGraphEngine) -> None:
    """For none of them is there an operation; the model reads why, and goes on."""
    notes = Notes()
    model = scripted(
        calls(
            call("gone", {"x": 1}),
            call("secret", {"x": 2}),
            call("t", {"x": "three"}),
            call("t", {"x": 4}),
            call("t", "{x: 5"),
        ),
        "done",
    )
    run = engine.run(role_graph(model, [notes.tool("t"), notes.tool("secret")], ["t"]), "go")
    assert ("done", [("t", 4)], 1) == (output_of(run), notes, run.tool_calls)
    refused = ["tool_unknown", "tool_not_allowed", "tool_arguments_invalid", "4!", "tool_arguments_invalid"]
    assert refused == codes(engine, run)
    slots = engine.slots(run.agent_run_id)
    assert [True, True, True, False, True] == [each.operation_id is None for each in slots]
    assert ["tool:1:3"] == [each.purpose for each in operations(engine, run, "tool")]
    assert {"error", "success"} == {each.result.status for each in slots if isinstance(each.result, ToolMessage)}
    assert ["t"] == model.calls[0].tools


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (call("gone"), "'gone'; there are: t"),
        (call("t", {"x": "three"}), "/x"),
        (call("t", {}), "/x"),
        (call("t", "[1]"), "JSON of an object"),
    ],
)
def test_e15_a_model_is_told_what_is_wrong_with_its_call(engine: AgentGraphEngine, step: Any, told: str) -> None:
    run = engine.run(agent([step, "done"], Notes().tool("t")), "go")
    assert "done" == output_of(run)
    [text] = results(engine, run)
    assert told in (text or "")


def test_e15_a_batch_of_rejected_calls_alone_is_answered_at_once(engine: AgentGraphEngine) -> None:
    run = engine.run(agent([calls(call("gone"), call("lost")), "done"], parallel_tools=False), "go")
    assert ("done", 0) == (output_of(run), run.tool_calls)
    assert ["tool_unknown"] * 2 == codes(engine, run)


def test_e15_nothing_is_dispatched_for_a_rejected_call(engine: AgentGraphEngine) -> None:
    """No hook sees it either."""
    asked: list[Any] = []
    run = engine.run(agent([calls(call("gone")), "done"], hooks=Hooks(before_tool=[asked.append])), "go")
    assert ("done", []) == (output_of(run), asked)


# -- E19, E20, E22


def test_e19_a_decisions_calls_are_frozen_in_its_order(engine: AgentGraphEngine) -> None:
    """Under the decision's operation, each with its ordinal and its call id."""
    run = engine.run(agent([calls(*(call("t", {"x": n}) for n in range(4))), "done"], Notes().tool("t")), "go")
    [first, _] = operations(engine, run, "model")
    slots = engine.slots(run.agent_run_id)
    assert {first.operation_id} == {each.batch_id for each in slots}
    assert [(n, f"call-0-{n}", "settled") for n in range(4)] == [(s.ordinal, s.call_id, s.state) for s in slots]


@pytest.mark.parametrize("kind", ["accept-model:", "consume-batch:"])
def test_e19_e22_a_batch_is_frozen_and_consumed_once(engines: Engines, kind: str) -> None:
    """Whoever dies at that commit, and whoever goes on."""
    notes, model = Notes(), scripted(calls(call("t", {"x": 1}), call("t", {"x": 2})), "done")
    spec = agent(model, notes.tool("t"), tool_policies={"t": ToolPolicy(effect="repeatable")})
    run = begun_and_left(engines(), spec, kind)
    engine = engines()
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert [("call-0-0", "1!"), ("call-0-1", "2!")] == answers(engine, run)
    assert ([("t", 1), ("t", 2)], 2) == (sorted(notes), len(model.calls))


def test_e20_tools_run_side_by_side(engine: AgentGraphEngine) -> None:
    """Each of these waits for the other."""
    here = {1: asyncio.Event(), 2: asyncio.Event()}

    async def meets(x: int) -> str:
        here[x].set()
        await here[3 - x].wait()
        return f"{x}!"

    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    run = engine.run(agent(script, Notes().tool("t", meets), deadlines=Deadlines(tool_seconds=5.0)), "go")
    assert ("done", ["1!", "2!"]) == (output_of(run), results(engine, run))


def test_e20_one_after_the_other_if_they_are_not_to_be_parallel(engine: AgentGraphEngine) -> None:
    """The next begins only when the one before is settled, hooks and all, and what was rejected holds up nobody."""
    notes = Notes()

    async def after(outcome: Any) -> None:
        await asyncio.sleep(0)
        notes.append(("after", outcome["value"]["message"]["data"]["content"]))

    def before(request: Any) -> None:
        notes.append(("before", request["args"]["x"]))

    script = [calls(call("t", {"x": 1}), call("gone"), call("t", {"x": 2}), call("t", {"x": 3})), "done"]
    hooks = Hooks(before_tool=[before], after_tool=[after])
    run = engine.run(agent(script, notes.tool("t"), hooks=hooks, parallel_tools=False), "go")
    assert "done" == output_of(run)
    assert [each for x in (1, 2, 3) for each in (("before", x), ("t", x), ("after", f"{x}!"))] == notes


def test_e20_in_a_serial_batch_a_failure_or_a_denial_lets_the_next_begin(engine: AgentGraphEngine) -> None:
    notes = Notes()
    hooks = Hooks(before_tool=[lambda request: Deny("no") if request["args"]["x"] == 2 else None])
    script = [calls(*(call("t", {"x": n}) for n in (1, 2, 3))), "done"]
    spec = agent(script, notes.tool("t", lambda x: 1 // (x - 1)), hooks=hooks, parallel_tools=False)
    run = engine.run(spec, "go")
    assert ("done", [("t", 1), ("t", 3)]) == (output_of(run), notes)
    assert ["call_failed", "denied", "0"] == codes(engine, run)


def test_e22_results_are_in_the_order_of_the_calls_whichever_ends_first(engine: AgentGraphEngine) -> None:
    second = asyncio.Event()
    notes = Notes()

    async def waits(x: int) -> str:
        if x == 1:
            await second.wait()
        second.set()
        notes.append(f"end {x}")
        return f"{x}!"

    model = scripted(calls(call("t", {"x": 1}), call("t", {"x": 2})), "done")
    run = engine.run(agent(model, notes.tool("t", waits)), "go")
    assert ["end 2", "end 1"] == notes[-2:]
    assert [("call-0-0", "1!"), ("call-0-1", "2!")] == answers(engine, run)
    assert ["1!", "2!"] == [each["content"] for each in model.calls[-1].messages if each["type"] == "tool"]


def test_e22_one_failure_is_its_own_result_and_the_others_go_on(engine: AgentGraphEngine) -> None:
    notes = Notes()
    script = [calls(*(call("t", {"x": n}) for n in range(3))), "done"]
    run = engine.run(agent(script, notes.tool("t", lambda x: 6 // (x - 1))), "go")
    assert ("done", 3) == (output_of(run), len(notes))
    assert ["-6", "call_failed: ZeroDivisionError: integer division or modulo by zero", "6"] == results(engine, run)


# -- A9


def test_a9_a_sync_tool_that_takes_too_long_is_unknown_and_not_failed(engine: AgentGraphEngine) -> None:
    """It goes on in its thread, and is not called a second time."""
    over, made = threading.Event(), []

    def slow(x: int) -> str:
        """Slow."""
        made.append(x)
        over.wait(10)
        return "late"

    model = scripted(call("slow", {"x": 1}), say("done", during=over.set))
    run = engine.run(
        agent(
            model,
            slow,
            deadlines=Deadlines(tool_seconds=0.02),
            tool_policies={"slow": ToolPolicy(effect="repeatable")},
        ),
        "go",
    )
    assert ("done", ["outcome_unknown"], [1]) == (output_of(run), codes(engine, run), made)
    assert ["unknown"] == [str(each.state) for each in operations(engine, run, "tool")]


# -- A11


def test_a11_what_langchain_injects_is_there(engine: AgentGraphEngine) -> None:
    """And what the model gives for it is dropped; it never sees it."""
    given: list[Any] = []

    @tool
    async def t(
        x: int,
        config: RunnableConfig,
        call_id: Annotated[str, InjectedToolCallId],
        secret: Annotated[str, InjectedToolArg] = "ours",
    ) -> str:
        """A tool."""
        given.append((x, call_id, secret, sorted(config["metadata"])))
        return "ok"

    made_up = {"x": 1, "call_id": "theirs", "secret": "theirs", "config": {"metadata": {"a": 1}}}
    model = scripted(call("t", made_up), "done")
    run = engine.run(agent(model, t), "go")
    assert ("done", ["ok"]) == (output_of(run), results(engine, run))
    assert [(1, "call-0-0", "ours", ["agent_run_id", "operation_id"])] == given
    [shown] = model.calls[0].request["tools"]
    assert ["x"] == list(shown["function"]["parameters"]["properties"])


class Bare:
    """What JSON cannot hold."""


@pytest.mark.parametrize(
    ("artifact", "stored"),
    [({"rows": [1, 2]}, {"rows": [1, 2]}), (None, None), (Bare(), {"not_stored": "Bare"}), (1.5, 1.5)],
)
def test_a11_content_and_artifact_are_kept(engine: AgentGraphEngine, artifact: Any, stored: Any) -> None:
    """An artifact that JSON cannot hold is named instead: the call was made, and its content counts."""
    made = scripted_tool("t", lambda: ("seen", artifact), args={}, response_format="content_and_artifact")
    run = engine.run(agent([call("t"), "done"], made), "go")
    assert "done" == output_of(run)
    [result] = [each.result for each in engine.slots(run.agent_run_id)]
    assert isinstance(result, ToolMessage)
    assert ("seen", stored) == (result.content, result.artifact)


@pytest.mark.parametrize("artifact", [float("nan"), b"\xff", {1, 2}, 2**70, {3: "x"}], ids=repr)
def test_a11_no_artifact_makes_a_call_fail_that_was_made(engine: AgentGraphEngine, artifact: Any) -> None:
    made = scripted_tool("t", lambda: ("seen", artifact), args={}, response_format="content_and_artifact")
    run = engine.run(agent([call("t"), "done"], made), "go")
    assert ("done", ["seen"]) == (output_of(run), results(engine, run))


def test_a11_a_tools_result_may_be_given_back_as_it_is(engine: AgentGraphEngine) -> None:
    """The model is not asked again, and no loop is used up for that."""
    model = scripted(calls("So:", call("t", {"x": 1})), "never")
    run = engine.run(agent(model, Notes().tool("t", return_direct=True)), "go")
    assert ("1!", 1, 1) == (output_of(run), len(model.calls), run.loops_used)
    assert [("input", "go"), ("decision", "So:"), ("result", "1!")] == history(engine, run)


@pytest.mark.parametrize("other", ["u", "gone"])
def test_a11_only_where_all_results_are_to_be(engine: AgentGraphEngine, other: str) -> None:
    notes = Notes()
    script = [calls(call("t", {"x": 1}), call(other, {"x": 2})), "done"]
    run = engine.run(agent(script, notes.tool("t", return_direct=True), notes.tool("u")), "go")
    assert "done" == output_of(run)


def fails(x: int) -> str:
    """Fail."""
    raise ToolException("no such thing")


@pytest.mark.parametrize("handles", [True, False])
def test_a11_a_failure_is_told_to_the_model_and_not_given_back(engine: AgentGraphEngine, handles: bool) -> None:
    """Whether the tool tells it itself or raises."""
    made = StructuredTool.from_function(fails, return_direct=True, handle_tool_error=handles)
    run = engine.run(agent([call("fails", {"x": 1}), "done"], made), "go")
    assert "done" == output_of(run)
    [text] = results(engine, run)
    assert "no such thing" in (text or "")


def test_a11_a_tool_may_answer_with_a_message_of_its_own(engine: AgentGraphEngine) -> None:
    """Its call id is that of the call."""
    made = scripted_tool("t", lambda: ToolMessage("seen", tool_call_id="another", name="t"), args={})
    run = engine.run(agent([call("t"), "done"], made), "go")
    assert ("done", [("call-0-0", "seen")]) == (output_of(run), answers(engine, run))
