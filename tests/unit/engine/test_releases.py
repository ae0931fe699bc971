"""Releases: what a run is pinned to. One digest in every process, and no secret or live thing in the descriptor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool
from pydantic import Field, SecretStr

from langgraph_ext import canonical
from langgraph_ext.engine import (
    AgentSpec,
    Approval,
    Compaction,
    Deadlines,
    Executor,
    Hook,
    Hooks,
    Limits,
    PlanExecute,
    Planner,
    Retry,
    ToolPolicy,
    compile_spec,
)
from langgraph_ext.engine.spec_parts import Part
from langgraph_ext.engine.spec_policies import HOOK_KINDS
from tests.support.agent_specs import Answer, Scripted, allow, audit, everything, found_out, pay, search

ROOT = Path(__file__).resolve().parents[3]


class Hosted(Scripted):
    """A model with all that must not be stored."""

    api_key: SecretStr = SecretStr("sk-hidden")
    params: Any = Field(default_factory=dict)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "big", **self.params}


def params_of(**params: Any) -> dict[str, Any]:
    found: dict[str, Any] = compile_spec(AgentSpec(model=Hosted(params=params))).descriptor["models"]["(main)"][
        "params"
    ]
    return {key: value for key, value in found.items() if key != "model_name"}


@pytest.mark.parametrize("seed", ["1", "2"])
def test_c01_two_processes_get_the_same_digest(seed: str) -> None:
    """Whatever order their sets have, and whether the code was imported there or run as a program."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.agent_specs"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert compile_spec(everything()).digest == ran.stdout.strip()


def test_c01_the_descriptor_is_canonical_and_the_digest_is_of_it() -> None:
    release = compile_spec(everything())
    assert canonical.encode(release.descriptor) == release.body
    assert canonical.digest(release.body) == release.digest
    release.descriptor["name"] = "other"
    assert "clerk" == release.descriptor["name"]


def test_c01_hooks_keep_their_order() -> None:
    """It decides what they see of each other, so another order is another release."""
    one, other = (
        compile_spec(AgentSpec(model="m", hooks=Hooks(before_tool=hooks))) for hooks in ([allow, audit], [audit, allow])
    )
    assert ["allow", "audit"] == [each["name"] for each in one.descriptor["hooks"]["before_tool"]]
    assert one.digest != other.digest


def test_what_lives_is_found_by_the_names_of_the_descriptor() -> None:
    release = compile_spec(everything())
    told, live = release.descriptor, release.live
    assert set(told["models"]) == set(live.models)
    assert set(told["tools"]) == set(live.tools)
    assert {(kind, each["name"]) for kind, hooks in told["hooks"].items() for each in hooks} == set(live.hooks)
    assert ({"pay": found_out}, {"payer": found_out}, Answer) == (live.reconcile, live.approval_when, live.output_type)
    assert {"(main)", "reader", "(summary)"} == set(live.models)
    assert (search, pay) == (live.tools["search"], live.tools["pay"].func)  # type: ignore[attr-defined]


def test_a_descriptor_holds_those_of_its_subagents() -> None:
    release = compile_spec(everything())

    assert {"helper": release.subagents["helper"].descriptor} == release.descriptor["subagents"]


def test_releases_are_equal_if_their_digests_are() -> None:
    one, same, other = (compile_spec(AgentSpec(model=model)) for model in ("m", "m", "n"))
    assert one == same != other
    assert 2 == len({one, same, other})


def test_a_release_shows_nothing_of_what_lives() -> None:
    assert "Plan." not in repr(compile_spec(everything()))


def test_a_model_is_told_by_class_name_and_parameters() -> None:
    [told] = compile_spec(AgentSpec(model=Scripted(max_tokens=7))).descriptor["models"].values()

    assert {"class": "Scripted", "type": "scripted", "params": {"max_tokens": 7, "model_name": "scripted"}} == told


@pytest.mark.parametrize(
    "secret",
    [
        {"openai_api_key": "hush"},
        {"nested": {"auth_token": "hush", "kept": 1}},
        {"headers": {"Authorization": "hush"}},
        {"wrapped": SecretStr("hush")},
        {"elsewhere": "Bearer sk-hidden"},
        {"base_url": "https://me:hush@host/v1?sig=hush"},
        {"anything": object()},
    ],
)
def test_no_secret_of_a_model_is_in_the_descriptor(secret: dict[str, Any]) -> None:
    """By name, by type, by value, or in a URL; nor what only this process can tell."""
    text = str(params_of(**secret))
    assert not {"hush", "sk-hidden", "0x"} & {part for part in ("hush", "sk-hidden", "0x") if part in text}


def test_plain_parameters_are_kept() -> None:
    """Names that only look like secrets', sets in one order, and numbers that JSON does not know."""
    kept = params_of(max_tokens=5, top_k=3, base_url="http://host:1/v1", words={"b", "a"}, odd=float("inf"), seed=2**70)
    assert (["a", "b"], "inf", str(2**70)) == (kept["words"], kept["odd"], kept["seed"])
    assert ("http://host:1/v1", 5, 3) == (kept["base_url"], kept["max_tokens"], kept["top_k"])


@pytest.mark.parametrize(
    ("metadata", "policy", "effect"),
    [
        (None, None, "once"),
        ({"readOnlyHint": True}, None, "repeatable"),
        ({"annotations": {"readOnlyHint": True}}, None, "repeatable"),
        ({"idempotentHint": True}, None, "keyed"),
        ({"readOnlyHint": False, "idempotentHint": None}, None, "once"),
        ({"effect": "once", "readOnlyHint": True}, None, "once"),
        ({"effect": "repeatable"}, ToolPolicy(on_unknown="error"), "repeatable"),
        ({"readOnlyHint": True}, ToolPolicy(effect="once"), "once"),
    ],
)
def test_a10_a_tool_is_once_unless_somebody_says_otherwise(metadata: Any, policy: Any, effect: str) -> None:
    """Its policy, then its own word, then MCP's hints."""
    tool = StructuredTool.from_function(search.func, name="t", description="T.", metadata=metadata)
    spec = AgentSpec(model="m", tools=[tool], tool_policies={"t": policy} if policy else {})

    assert effect == compile_spec(spec).descriptor["tools"]["t"]["effect"]


def test_functions_are_told_by_name() -> None:
    spec = AgentSpec(
        model="m",
        tools=[search],
        tool_policies={"search": ToolPolicy(on_unknown=found_out)},
        interrupt_on={"search": Approval(description=found_out)},
        hooks=Hooks(after_tool=[Hook(call=lambda: None, name="mine")]),
    )
    told = compile_spec(spec).descriptor
    assert {"function": "found_out"} == told["tools"]["search"]["on_unknown"]
    assert {"function": "found_out"} == told["interrupt_on"]["search"]["description"]
    assert [{"name": "mine", "required": True}] == told["hooks"]["after_tool"]


def plain() -> dict[str, Any]:
    """A spec with one of every part, as plain values."""
    return {
        "model": "m",
        "tools": [search, pay],
        "strategy": {"kind": "plan", "executors": {"e": {"description": "E"}}, "planner": {}},
        "limits": {},
        "deadlines": {},
        "retry": {},
        "tool_policies": {"pay": {}},
        "interrupt_on": {"pay": {}},
        "hooks": {"before_tool": [{"call": allow}]},
        "compaction": {},
    }


CHANGES: dict[str, tuple[type[Part], dict[str, Any]]] = {
    "": (
        AgentSpec,
        {
            "name": "other", "description": "other", "model": "other", "system_prompt": "other",
            "tools": [search, pay, audit], "strategy": {"kind": "react"}, "output_schema": {"type": "array"},
            "limits": {"loops": 9}, "deadlines": {"run_seconds": 9}, "retry": None,
            "tool_policies": {"pay": {"effect": "repeatable"}}, "interrupt_on": {}, "hooks": {},
            "compaction": {"soft_tokens": 9}, "parallel_tools": False, "subagents": [{"name": "s", "model": "m"}],
        },
    ),
    "strategy": (
        PlanExecute,
        {
            "executors": {}, "planner": {"model": "n"}, "parallel": True, "max_parallel": 9, "review_plan": True,
            "max_replans": 9,
        },
    ),
    "strategy.planner": (Planner, {"model": "m", "system_prompt": "other", "tools": [pay]}),
    "strategy.executors.e": (
        Executor, {"description": "other", "model": "m", "system_prompt": "other", "tools": [pay]}
    ),
    "limits": (
        Limits,
        {"model_calls": 9, "tool_calls": 9, "tokens": 9, "cost_usd": 9, "loops": 9, "on_limit": "finish"},
    ),
    "deadlines": (
        Deadlines,
        {
            "run_seconds": None, "tool_seconds": None, "model_seconds": None, "model_idle_seconds": None,
            "per_tool": {"pay": None},
        },
    ),
    "retry": (Retry, {"calls": 9, "wait_seconds": 9}),
    "tool_policies.pay": (ToolPolicy, {"effect": "keyed", "on_unknown": "error"}),
    "interrupt_on.pay": (
        Approval, {"allowed_decisions": ["edit"], "description": "other", "when": found_out}
    ),
    "hooks": (Hooks, {kind: [audit] for kind in HOOK_KINDS}),
    "hooks.before_tool.0": (Hook, {"call": audit, "name": "other", "required": False}),
    "compaction": (
        Compaction, {"soft_tokens": 9, "hard_tokens": 9, "model": "m", "system_prompt": "other"}
    ),
}  # fmt: skip
"""By part: what it is, and another value for each of its fields."""


@pytest.mark.parametrize(
    ("part", "field"), [(part, field) for part, (_, fields) in CHANGES.items() for field in fields]
)
def test_c01_a_change_of_any_field_of_any_part_changes_the_digest(part: str, field: str) -> None:
    """None can change unseen under a run that is pinned to its release."""
    changed = plain()
    inner: Any = changed
    for step in part.split(".") if part else []:
        inner = inner[int(step) if isinstance(inner, list) else step]
    inner[field] = CHANGES[part][1][field]

    assert compile_spec(plain()).digest != compile_spec(changed).digest


@pytest.mark.parametrize("part", CHANGES)
def test_c01_no_field_is_forgotten(part: str) -> None:
    """Who adds a field to a part of a spec adds it to the descriptor, and here."""
    kind, changed = CHANGES[part]

    assert set(kind.model_fields) - {"version", "kind"} == set(changed)
