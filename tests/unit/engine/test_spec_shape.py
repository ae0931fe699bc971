"""Specs as they are made: immutable, with no unknown fields, and one error for all that has the wrong shape."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.engine import (
    AgentSpec,
    Approval,
    Deadlines,
    Executor,
    Hook,
    Hooks,
    Limits,
    PlanExecute,
    ReAct,
    Retry,
    ToolPolicy,
)
from langgraph_ext.errors import SpecInvalid
from tests.support.agent_specs import everything, pay, search, told


def test_everything_of_the_wrong_shape_is_told_at_once_with_its_place() -> None:
    """Also inside of parts that were given as dicts, and without the values that were given."""
    wrong = told(
        lambda: AgentSpec(
            model=3,  # type: ignore[arg-type]
            tools=[search, "search"],  # type: ignore[list-item]
            strategy={"kind": "plan", "executors": {"a": {"description": 3}}},
            limits={"loops": "sk-secret", "spare": 1},
            deadlines={"per_tool": {"x/y": "soon"}},
            hooks={"before_tool": [pay, 3]},
            tool_policies={"pay": {"effect": "twice", "on_unknown": "guess"}},
            output_schema=str,
            subagents=[{"model": 4}],
        )
    )
    assert [
        "/deadlines/per_tool/x~1y",
        "/hooks/before_tool/1",
        "/limits/loops",
        "/limits/spare",
        "/model",
        "/output_schema",
        "/strategy/executors/a/description",
        "/subagents/0/model",
        "/tool_policies/pay/effect",
        "/tool_policies/pay/on_unknown",
        "/tools/1",
    ] == [path for path, _ in wrong]
    assert "sk-secret" not in str(wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limits(loops=True),
        lambda: Limits(loops=1.0),
        lambda: Limits(tokens="7"),
        lambda: Limits(on_limit="stop"),
        lambda: Deadlines(run_seconds="60"),
        lambda: Deadlines(run_seconds=True),
        lambda: Retry(calls=None),
        lambda: AgentSpec(model=""),
        lambda: AgentSpec(name=None),
        lambda: AgentSpec(parallel_tools="yes"),
        lambda: AgentSpec(strategy="react"),
        lambda: AgentSpec(tools=[int]),
        PlanExecute,
        Executor,
        lambda: Approval(allowed_decisions=["approve", "shrug"]),
        lambda: Approval(description=3),
        lambda: Hook(call="audit"),
    ],
)
def test_a_value_of_another_type_is_refused_not_converted(make: Any) -> None:
    with pytest.raises(SpecInvalid):
        make()


def test_a_spec_never_changes() -> None:
    """Neither its fields nor what was handed over to make it."""
    schema: dict[str, Any] = {"type": "object", "required": ["a"]}
    policies = {"search": ToolPolicy()}
    spec = AgentSpec(model="m", tools=[search], tool_policies=policies, output_schema=schema)
    schema["required"].append("b")
    policies.clear()
    with pytest.raises(ValueError, match="frozen"):
        spec.model = "n"
    with pytest.raises(TypeError):
        spec.tool_policies["pay"] = ToolPolicy()  # type: ignore[index]
    assert (["search"], ["a"]) == (list(spec.tool_policies), spec.output_schema["required"])  # type: ignore[index]


def test_defaults_are_those_that_the_documents_promise() -> None:
    spec = AgentSpec(model="m")
    assert (ReAct(), True, None, 100) == (spec.strategy, spec.parallel_tools, spec.retry, spec.limits.loops)
    seconds = spec.deadlines
    assert (3600, 60, 120, 60) == (
        seconds.run_seconds, seconds.tool_seconds, seconds.model_seconds, seconds.model_idle_seconds
    )  # fmt: skip
    assert (2, 2.0) == (Retry().calls, Retry().wait_seconds)
    plan = PlanExecute(executors={})
    assert (False, 2, False, 3) == (plan.parallel, plan.max_parallel, plan.review_plan, plan.max_replans)
    assert (None, "ask") == (ToolPolicy().effect, ToolPolicy().on_unknown)


def test_true_asks_for_every_decision_and_false_for_none() -> None:
    spec = AgentSpec(model="m", interrupt_on={"pay": True, "search": False, "x": {"allowed_decisions": ["approve"]}})

    assert {"pay": Approval(), "x": Approval(allowed_decisions=frozenset({"approve"}))} == dict(spec.interrupt_on)


def test_a_function_is_a_hook_that_is_required() -> None:
    assert (Hook(call=pay),) == Hooks(before_tool=[pay]).before_tool


def test_parts_of_a_spec_make_another_one() -> None:
    """A spec hands out what can be handed in again."""
    spec = everything()
    again = AgentSpec(**{name: getattr(spec, name) for name in AgentSpec.model_fields})

    assert spec == again
