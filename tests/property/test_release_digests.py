"""The digest of a release against a model of what a spec means: order of keys and sets never changes it, all else does.

The model is the spec's own fields as plain values, with sets as sets and hooks as lists. Two specs have one digest if
and only if the model says that they are one.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, tool

from langgraph_ext.engine import compile_spec
from tests.support.agent_specs import allow, audit, fetch, graph, pay, search

TOOLS: dict[str, BaseTool] = {"search": search, "pay": tool(pay), "fetch": tool(fetch)}
TEXT = st.sampled_from(["", "a", "b"])
SOME_TOOLS = st.lists(st.sampled_from(sorted(TOOLS)), unique=True)
SECONDS = st.none() | st.sampled_from([1, 60, 0.5])
DECISIONS = st.lists(st.sampled_from(["approve", "edit", "reject", "respond"]), unique=True, min_size=1)
MODELS = st.sampled_from(["big", "small"])

EXECUTORS = st.dictionaries(
    st.sampled_from(["e1", "e2", "e3"]),
    st.fixed_dictionaries(
        {"description": TEXT}, optional={"model": MODELS, "system_prompt": TEXT, "tools": SOME_TOOLS}
    ),
)
STRATEGIES = st.just({"kind": "react"}) | st.fixed_dictionaries(
    {"kind": st.just("plan"), "executors": EXECUTORS},
    optional={"parallel": st.booleans(), "max_parallel": st.integers(1, 3), "max_replans": st.integers(0, 3)},
)
HOOKS = st.lists(st.sampled_from(["allow", "audit"]), unique=True)
SPECS = st.fixed_dictionaries(
    {"model": MODELS, "tools": st.just(sorted(TOOLS)), "strategy": STRATEGIES},
    optional={
        "name": st.sampled_from(["x", "y"]),
        "system_prompt": TEXT,
        "limits": st.fixed_dictionaries(
            {}, optional={"loops": st.integers(1, 3), "on_limit": st.sampled_from(["ask", "finish", "error"])}
        ),
        "deadlines": st.fixed_dictionaries(
            {},
            optional={"run_seconds": SECONDS, "per_tool": st.dictionaries(st.sampled_from(sorted(TOOLS)), SECONDS)},
        ),
        "tool_policies": st.dictionaries(
            st.sampled_from(sorted(TOOLS)),
            st.fixed_dictionaries({"effect": st.sampled_from(["once", "repeatable"])}),
        ),
        "interrupt_on": st.dictionaries(
            st.sampled_from(sorted(TOOLS)), st.fixed_dictionaries({"allowed_decisions": DECISIONS})
        ),
        "hooks": st.fixed_dictionaries({}, optional={"before_tool": HOOKS, "after_tool": HOOKS}),
        "parallel_tools": st.booleans(),
        "output_schema": st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={"required": st.lists(st.sampled_from("abc"), unique=True), "title": TEXT},
        ),
    },
)
CHANCES = st.integers(0, 2**32).map(Random)
SETS = {"tools", "allowed_decisions", "required"}
FUNCTIONS = {**TOOLS, "allow": allow, "audit": audit}


def given_as(spec: Any, chance: Random, key: str = "") -> Any:
    """The same spec, with keys and sets in another order, and names of functions as functions."""
    if isinstance(spec, dict):
        keys = list(spec)
        chance.shuffle(keys)
        return {key: given_as(spec[key], chance, key) for key in keys}
    if isinstance(spec, list):
        parts = [part if key == "required" else FUNCTIONS.get(part, part) for part in spec]
        if key in SETS:
            chance.shuffle(parts)
        return parts
    return spec


def meant(spec: Any, key: str = "") -> Any:
    """What a spec means, as far as order goes."""
    if isinstance(spec, dict):
        return {key: meant(part, key) for key, part in spec.items()}
    return frozenset(spec) if key in SETS else spec


def digest(spec: dict[str, Any], chance: Random) -> str:
    return compile_spec(given_as(spec, chance)).digest


def without_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    """What a spec means, once what it may leave out is filled in."""
    full: dict[str, Any] = {
        "name": "agent", "system_prompt": None, "limits": {}, "deadlines": {}, "tool_policies": {}, "interrupt_on": {},
        "hooks": {}, "parallel_tools": True, "output_schema": None,
    } | meant(spec)  # fmt: skip
    full["limits"] = {"loops": 100, "on_limit": "error"} | full["limits"]
    full["deadlines"] = {"run_seconds": 3600, "per_tool": {}} | full["deadlines"]
    full["hooks"] = {"before_tool": [], "after_tool": []} | full["hooks"]
    full["tool_policies"] = {name: each for name, each in full["tool_policies"].items() if each != {"effect": "once"}}
    if full["strategy"]["kind"] == "plan":
        inherited = {"model": None, "system_prompt": None, "tools": frozenset(TOOLS)}
        plan = {"parallel": False, "max_parallel": 2, "max_replans": 3} | full["strategy"]
        plan["executors"] = {name: inherited | each for name, each in plan["executors"].items()}
        full["strategy"] = plan
    return full


@settings(deadline=None)
@given(SPECS, CHANCES)
def test_c01_the_order_of_keys_and_sets_never_changes_a_digest(spec: dict[str, Any], chance: Random) -> None:
    assert digest(spec, chance) == digest(spec, chance)


@settings(deadline=None)
@given(SPECS, SPECS, CHANCES)
def test_c01_two_specs_have_one_digest_only_if_they_mean_the_same(
    one: dict[str, Any], other: dict[str, Any], chance: Random
) -> None:
    same = without_defaults(one) == without_defaults(other)

    assert same == (digest(one, chance) == digest(other, chance))


def test_c01_an_order_that_is_none_is_none_in_the_explicit_form_either() -> None:
    sound = graph()
    turned = {key: part[::-1] if isinstance(part, list) else part for key, part in sound.items()}

    assert compile_spec(sound) == compile_spec(turned)
