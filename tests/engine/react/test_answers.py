"""E14, E16, A9, R03, R04: which answers of a model count, and as what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentStatus, Hooks, Limits, Replace, Retry
from langgraph_ext.testing import breaks_after, call, calls, fixed_ids, nothing, refuses, say, tries, truncated
from tests.support.reacting import (
    Notes,
    agent,
    begun_and_left,
    history,
    operations,
    output_of,
    purposes,
    results,
    scripted,
    sent,
    told,
)

Engines = Callable[..., AgentGraphEngine]


# -- R01, E14


def test_r01_two_tool_rounds_then_the_answer(engine: AgentGraphEngine) -> None:
    """One agent run, one task, three tickets consumed, two tool operations."""
    notes = Notes()
    run = engine.run(agent([call("t", {"x": 1}), call("t", {"x": 2}), "done"], notes.tool("t")), "go")
    assert "done" == output_of(run)
    assert (1, 1) == (len(engine.runs()), len(engine.tasks(run.agent_run_id)))
    tickets = engine.tickets(run.agent_run_id)
    assert [("consumed", "decision")] * 3 == [(str(each.state), each.reason) for each in tickets]
    assert ["tool:1:0", "tool:2:0"] == purposes(engine, run, "tool")
    assert ["business-model:1", "business-model:2", "business-model:3"] == purposes(engine, run, "model")
    assert [("t", 1), ("t", 2)] == notes


def test_e14_text_beside_calls_is_no_answer(engine: AgentGraphEngine) -> None:
    notes = Notes()
    run = engine.run(agent([calls("It is 4.", call("t", {"x": 1})), "It is 5."], notes.tool("t")), "go")
    assert ("It is 5.", [("t", 1)]) == (output_of(run), notes)
    assert ("decision", "It is 4.") in history(engine, run)


@pytest.mark.parametrize("step", [nothing(), refuses(), call("", '{"x": 1}'), calls("Well", call("", "{}"))])
def test_e14_an_answer_that_is_none_is_a_protocol_error(engine: AgentGraphEngine, step: Any) -> None:
    """Neither text nor calls, or fragments that belong to no call: no loop is used up by it, and no tool runs."""
    run = engine.run(agent([step], Notes().tool("t")), "go")
    assert (AgentStatus.FAILED, "model_protocol_error") == (run.status, run.reason)
    assert (0, 0, 1) == (run.loops_used, run.tool_calls, run.model_calls)
    assert ["released"] == [str(each.state) for each in engine.tickets(run.agent_run_id)]
    assert [("input", "go")] == history(engine, run)


def test_e14_an_answer_is_looked_at_again_behind_the_hooks(engine: AgentGraphEngine) -> None:
    empty = {"value": {"message": {"type": "ai", "data": {"content": ""}}}}
    run = engine.run(agent(["done"], hooks=Hooks(after_model=[lambda outcome: Replace(empty)])), "go")
    assert (AgentStatus.FAILED, "model_protocol_error", 0) == (run.status, run.reason, run.loops_used)


def test_e14_an_answer_that_counted_is_never_asked_for_again(engines: Engines) -> None:
    """It is stored before it is interpreted, and whoever goes on begins there."""
    model, notes = scripted(call("t", {"x": 1}), "done"), Notes()
    spec = agent(model, notes.tool("t"))
    run = begun_and_left(engines(), spec, "accept-model:", "before")
    assert "done" == output_of(engines().drive(run.agent_run_id, spec))
    assert ([("t", 1)], 2) == (notes, len(model.calls))


# -- R03


def test_r03_a_stream_that_breaks_in_a_tool_call_runs_nothing(engine: AgentGraphEngine) -> None:
    """What had come is kept with its call, in the parts in which it came, and is taken for no answer."""
    notes = Notes()
    run = engine.run(agent([breaks_after("So", call("t", {"x": 1}))], notes.tool("t")), "go")
    assert (AgentStatus.FAILED, "model_call_failed", None, []) == (run.status, run.reason, run.output, notes)
    assert run.message is not None
    assert "the stream broke" in run.message
    [made] = operations(engine, run)[0].calls
    assert "So" == made.partial["data"]["content"]
    parts = made.partial["data"]["tool_call_chunks"]
    assert ("t", '{"x"') == (parts[0]["name"], "".join(each["args"] for each in parts))
    assert [] == made.partial["data"]["tool_calls"]
    assert [("input", "go")] == history(engine, run)


def test_r03_e14_another_call_after_it_is_of_the_same_operation_and_ticket(engine: AgentGraphEngine) -> None:
    """Each call keeps its own fragments; no fragment is joined to the answer."""
    lost = ModelConnectionError("lost")
    broken = (breaks_after(word, call("t", {"x": 1}), error=lost) for word in ("one", "two"))
    notes = Notes()
    spec = agent([tries(*broken, say("done"))], notes.tool("t"), retry=Retry(calls=3, wait_seconds=0.0))
    run = engine.run(spec, "go")
    assert ("done", [], 1) == (output_of(run), notes, run.loops_used)
    [operation] = operations(engine, run)
    assert ["failed", "failed", "settled"] == [str(each.state) for each in operation.calls]
    assert ["one", "two"] == [each.partial["data"]["content"] for each in operation.calls[:2]]
    assert [operation.operation_id] == [each.operation_id for each in engine.tickets(run.agent_run_id)]
    assert [("input", "go"), ("decision", "done")] == history(engine, run)


# -- A9


def test_a9_of_an_answer_that_was_cut_off_no_call_is_made(engine: AgentGraphEngine) -> None:
    """Not even those that came whole; the model is told, and may ask for less."""
    notes, model = Notes(), scripted(truncated(call("t", {"x": 1}), call("t", {"x": 2})), "done")
    run = engine.run(agent(model, notes.tool("t")), "go")
    assert ("done", [], 0) == (output_of(run), notes, run.tool_calls)
    assert ["response_truncated"] * 2 == [text.split(":")[0] for text in results(engine, run) if text]
    assert [None, None] == [each.operation_id for each in engine.slots(run.agent_run_id)]


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS"])
def test_a9_providers_say_it_in_their_words(engine: AgentGraphEngine, reason: str) -> None:
    notes = Notes()
    output_of(engine.run(agent([call("t", {"x": 1}, finish_reason=reason), "done"], notes.tool("t")), "go"))
    assert [] == notes


def test_a9_calls_without_an_id_or_with_one_that_is_taken_get_their_own(engine: AgentGraphEngine) -> None:
    """The decision, the slots and the results name each call by the same one."""
    step = calls(
        call("t", {"x": 1}, id=None), call("t", {"x": 2}, id="c"), call("t", {"x": 3}, id="c"), call("u", "{", id=None)
    )
    model = scripted(step, "done")
    run = engine.run(agent(model, Notes().tool("t")), "go")
    ids = [each.call_id for each in engine.slots(run.agent_run_id)]
    assert (4, "c", True) == (len(set(ids)), ids[1], all(ids))
    [decision] = [each for each in model.calls[-1].messages if each["type"] == "ai"]
    assert ids == [each["id"] for each in decision["tool_calls"]]
    assert ids == [each["tool_call_id"] for each in model.calls[-1].messages if each["type"] == "tool"]


def test_a9_ids_that_are_given_follow_from_the_operation_and_the_place(tmp_path: Path) -> None:
    """Another call of the same operation names its tool calls as the first one did."""
    spec = agent([calls(call("t", {"x": 1}, id=None), call("t", {"x": 2}, id=None)), "done"], Notes().tool("t"))
    found = []
    for name in ("one", "two"):
        with AgentGraphEngine(tmp_path / f"{name}.db", ids=fixed_ids()) as engine:
            run = engine.run(spec, "go")
            found.append([each.call_id for each in engine.slots(run.agent_run_id)])
    assert found[0] == found[1]
    assert 2 == len(set(found[0]))


# -- R04, E16


class Point(BaseModel):
    """What the agent is to answer."""

    x: int
    y: int


SCHEMAS: dict[str, Any] = {
    "pydantic": Point,
    "JSON Schema": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x", "y"],
    },
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_r04_e16_three_answers_do_not_fit_and_the_fourth_does(engine: AgentGraphEngine, schema: str) -> None:
    """Four loops are used up, and the output is the fourth alone: what the others held is not joined to it."""
    model = scripted('{"x": 1}', "x is 1", '{"x": "one", "y": 2}', '{"x": 3, "y": 4}')
    run = engine.run(agent(model, output_schema=SCHEMAS[schema]), "go")
    assert ({"x": 3, "y": 4}, 4) == (output_of(run), run.loops_used)
    assert ["consumed"] * 4 == [str(each.state) for each in engine.tickets(run.agent_run_id)]
    assert ["input", *["decision", "feedback"] * 3, "decision"] == [kind for kind, _ in history(engine, run)]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_e16_what_is_wrong_is_told_by_where_it_is(engine: AgentGraphEngine, schema: str) -> None:
    model = scripted('{"y": "two", "x": "one"}', '{"x": 3, "y": 4}')
    output_of(engine.run(agent(model, output_schema=SCHEMAS[schema]), "go"))
    lines = [line for line in told(model).splitlines() if line.startswith("- ")]
    assert ["- /x", "- /y"] == [line.split(":")[0] for line in lines]
    assert ("ai", '{"y": "two", "x": "one"}') == sent(model)[-2]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_e16_a_model_is_told_what_the_answer_is_to_be(engine: AgentGraphEngine, schema: str) -> None:
    """Beside its own prompt, in every request."""
    model = scripted('{"x": 3, "y": 4}')
    output_of(engine.run(agent(model, output_schema=SCHEMAS[schema], system_prompt="Be brief."), "go"))
    kind, text = sent(model)[0]
    assert "system" == kind
    assert text.startswith("Be brief.")
    assert '"required":["x","y"]' in text


def test_e16_what_is_told_of_an_answer_is_bounded(engine: AgentGraphEngine) -> None:
    """At most 20 faults, in the order of where they are, each at most 512 characters."""
    schema = {"type": "object", "additionalProperties": {"type": "integer", "description": "d" * 2000}}
    long = "n" * 1000
    wrong = "{" + ", ".join(f'"{number:02}{long}": "x"' for number in range(40, 0, -1)) + "}"
    model = scripted(wrong, "{}", chunk_characters=10_000)
    assert {} == output_of(engine.run(agent(model, output_schema=schema), "go"))
    lines = [line.removeprefix("- ") for line in told(model).splitlines() if line.startswith("- ")]
    assert [f"/{number:02}" for number in range(1, 21)] == [line[:3] for line in lines]
    assert {512} == {len(line) for line in lines}


def test_e16_corrections_use_up_the_limit_of_loops(engine: AgentGraphEngine) -> None:
    run = engine.run(agent(["no"] * 5, output_schema=Point, limits=Limits(loops=2)), "go")
    assert (AgentStatus.EXHAUSTED, 2, 2, None) == (run.status, run.loops_used, run.model_calls, run.output)


def test_e16_an_agent_may_call_tools_before_it_answers_as_it_is_to(engine: AgentGraphEngine) -> None:
    notes = Notes()
    script = [call("t", {"x": 1}), "no", call("t", {"x": 2}), '```json\n{"x": 1, "y": 2}\n```']
    run = engine.run(agent(script, notes.tool("t"), output_schema=Point), "go")
    assert ({"x": 1, "y": 2}, [("t", 1), ("t", 2)]) == (output_of(run), notes)


def test_e16_text_is_the_answer_where_no_schema_is_given(engine: AgentGraphEngine) -> None:
    """Without what is no text in it."""
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "done"}]

    def thinks(outcome: Any) -> Replace:
        outcome["value"]["message"]["data"]["content"] = blocks
        return Replace(outcome)

    run = engine.run(agent(["?"], hooks=Hooks(after_model=[thinks])), "go")
    assert "done" == output_of(run)
    [decision] = [each.message for each in engine.transcript(run.agent_run_id) if each.kind == "decision"]
    assert isinstance(decision, AIMessage)
    assert blocks == decision.content
