"""The compiler: whatever is wrong with a spec is told at once, with its place; what is sound becomes a release."""

from __future__ import annotations

import copy
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel

from langgraph_ext.engine import (
    AgentSpec,
    Compaction,
    Deadlines,
    Executor,
    Hook,
    Hooks,
    InjectedIdempotencyKey,
    Limits,
    PlanExecute,
    Retry,
    RoleGraph,
    ToolPolicy,
    compile_spec,
)
from langgraph_ext.errors import Diagnostic, InvalidArgument, SpecInvalid
from tests.support.agent_specs import Scripted, everything, found_in, graph, pay, search

Found = list[tuple[str, str, tuple[str, ...]]]
BOSS, HAND = graph()["roles"]
BOSS_BOUND, HAND_BOUND = graph()["bindings"]


class Unwritable:
    """A type without a JSON Schema."""


def undescribed(question: str) -> str:
    return question


def unwritable(thing: Unwritable) -> None:
    """Take what no schema describes."""


def oddly_keyed(key: Annotated[int, InjectedIdempotencyKey]) -> None:
    """Take the key as a number."""


class Shown(BaseModel):
    """A schema that shows the key."""

    order: str
    key: str


EXPOSED = StructuredTool.from_function(pay, name="pay", description="Pay.", args_schema=Shown)
HINTED = StructuredTool.from_function(search.func, name="put", description="Put.", metadata={"idempotentHint": True})
ODD = StructuredTool.from_function(search.func, name="odd", description="Odd.", metadata={"effect": "sometimes"})
OTHER_SEARCH = StructuredTool.from_function(pay, name="search", description="Not the same.")


def with_schema(schema: dict[str, Any]) -> BaseTool:
    return StructuredTool.from_function(search.func, name="raw", description="Raw.", args_schema=schema)


def agent(**fields: Any) -> AgentSpec:
    return AgentSpec(**{"model": "openai:big"} | fields)


def test_c01_three_independent_faults_are_told_together_and_nothing_is_called() -> None:
    """A role twice, a dispatch that leads nowhere, an executor in a ReAct agent: three places, no release, no call."""
    called: list[str] = []
    wrong = {
        "kind": "react",
        "entry": "main",
        "roles": [
            {"name": "main", "role": "react", "model": "big"},
            {"name": "main", "role": "react", "model": "big"},
            {"name": "hand", "role": "executor", "model": "big"},
        ],
        "bindings": [
            {"role": "main", "behaviour": "react", "version": 1},
            {"role": "hand", "behaviour": "executor", "version": 1},
        ],
        "dispatches": [{"source": "main", "target": "ghost"}],
        "models": {"big": Scripted(during=lambda: called.append("model"))},
        "hooks": {"before_model": [lambda *_: called.append("hook")]},
    }
    with pytest.raises(SpecInvalid) as raised:
        compile_spec(wrong)
    assert [
        ("dangling_reference", "/dispatches/0/target", ()),
        ("duplicate_name", "/roles/1/name", ("/roles/0/name",)),
        ("react_has_executor", "/roles/2", ()),
    ] == [(each.code, each.path, each.related) for each in raised.value.diagnostics]
    assert all(each.message for each in raised.value.diagnostics)
    assert [] == called


GRAPHS: dict[str, tuple[dict[str, Any], Found]] = {
    "sound": (graph(), []),
    "version": (graph(version=2), [("version_unsupported", "/version", ())]),
    "a model that is not there": (
        graph(roles=[BOSS | {"model": "huge"}, HAND]),
        [("dangling_reference", "/roles/0/model", ())],
    ),
    "a tool that is not there": (
        graph(roles=[BOSS | {"tools": ["search", "guess"]}, HAND]),
        [("dangling_reference", "/roles/0/tools/1", ())],
    ),
    "an entry that is not there": (graph(entry="ghost"), [("dangling_reference", "/entry", ())]),
    "a binding of nobody": (
        graph(bindings=[BOSS_BOUND, HAND_BOUND, BOSS_BOUND | {"role": "ghost"}]),
        [("dangling_reference", "/bindings/2/role", ())],
    ),
    "a source that is not there": (
        graph(dispatches=[{"source": "ghost", "target": "hand"}]),
        [("dangling_reference", "/dispatches/0/source", ())],
    ),
    "no model": (graph(roles=[BOSS | {"model": None}, HAND]), [("model_missing", "/roles/0/model", ())]),
    "no behaviour": (graph(bindings=[BOSS_BOUND]), [("role_unbound", "/roles/1", ())]),
    "two behaviours": (
        graph(bindings=[BOSS_BOUND, HAND_BOUND, HAND_BOUND | {"version": 2}]),
        [("role_bound_again", "/bindings/2", ("/bindings/1",))],
    ),
    "another role's behaviour": (
        graph(bindings=[BOSS_BOUND | {"behaviour": "react"}, HAND_BOUND]),
        [("behaviour_mismatch", "/bindings/0", ("/roles/0",))],
    ),
    "a behaviour of one's own": (graph(bindings=[BOSS_BOUND | {"behaviour": "mine"}, HAND_BOUND]), []),
    "no version of a behaviour": (
        graph(bindings=[BOSS_BOUND | {"version": 0}, HAND_BOUND]),
        [("out_of_range", "/bindings/0/version", ())],
    ),
    "a plan without planner": (
        graph(roles=[HAND], bindings=[HAND_BOUND], entry="hand", dispatches=[]),
        [("entry_role", "/entry", ("/roles/0",)), ("planner_count", "", ())],
    ),
    "two planners": (
        graph(
            roles=[BOSS, HAND, BOSS | {"name": "b2"}], bindings=[BOSS_BOUND, HAND_BOUND, BOSS_BOUND | {"role": "b2"}]
        ),
        [("planner_count", "/roles/2", ("/roles/0",))],
    ),
    "a react role in a plan": (
        graph(
            roles=[BOSS, HAND, BOSS | {"name": "r", "role": "react"}],
            bindings=[BOSS_BOUND, HAND_BOUND, {"role": "r", "behaviour": "react", "version": 1}],
        ),
        [("plan_has_react", "/roles/2", ())],
    ),
    "a planner that is not the entry": (graph(entry="hand", dispatches=[]), [("entry_role", "/entry", ("/roles/1",))]),
    "a dispatch to the root": (
        graph(dispatches=[{"source": "boss", "target": "boss"}]),
        [("dispatch_to_root", "/dispatches/0/target", ("/entry",))],
    ),
    "an executor that dispatches": (
        graph(dispatches=[{"source": "hand", "target": "hand"}]),
        [("dispatch_from_other", "/dispatches/0/source", ("/roles/1",))],
    ),
    "both ends are looked at": (
        graph(dispatches=[{"source": "hand", "target": "boss"}, {"source": "hand", "target": "ghost"}]),
        [
            ("dangling_reference", "/dispatches/1/target", ()),
            ("dispatch_from_other", "/dispatches/0/source", ("/roles/1",)),
            ("dispatch_from_other", "/dispatches/1/source", ("/roles/1",)),
            ("dispatch_to_root", "/dispatches/0/target", ("/entry",)),
        ],
    ),
    "a dispatch to no executor": (
        graph(
            roles=[BOSS, HAND, BOSS | {"name": "b2"}],
            bindings=[BOSS_BOUND, HAND_BOUND, BOSS_BOUND | {"role": "b2"}],
            dispatches=[{"source": "boss", "target": "b2"}],
        ),
        [("dispatch_to_other", "/dispatches/0/target", ("/roles/2",)), ("planner_count", "/roles/2", ("/roles/0",))],
    ),
    "a dispatch twice": (
        graph(dispatches=[{"source": "boss", "target": "hand"}] * 2),
        [("duplicate_dispatch", "/dispatches/1", ("/dispatches/0",))],
    ),
    "a react agent without roles": (
        graph(kind="react", roles=[], bindings=[], dispatches=[]),
        [("dangling_reference", "/entry", ()), ("react_count", "", ())],
    ),
    "two react roles, and a dispatch between them": (
        graph(
            kind="react",
            entry="a",
            roles=[{"name": name, "role": "react", "model": "big"} for name in "ab"],
            bindings=[{"role": name, "behaviour": "react", "version": 1} for name in "ab"],
            dispatches=[{"source": "a", "target": "b"}],
        ),
        [("react_count", "/roles/1", ("/roles/0",)), ("react_dispatches", "/dispatches/0", ())],
    ),
    "a planner in a react agent": (
        graph(kind="react", dispatches=[]),
        [("react_count", "", ()), ("react_has_executor", "/roles/1", ()), ("react_has_planner", "/roles/0", ())],
    ),
    "an executor that is called as a tool is": (
        graph(
            roles=[BOSS, HAND | {"name": "search"}],
            bindings=[BOSS_BOUND, HAND_BOUND | {"role": "search"}],
            dispatches=[{"source": "boss", "target": "search"}],
        ),
        [("duplicate_name", "/roles/1/name", ("/roles/0/tools/0",))],
    ),
    "a role without a name": (
        graph(
            roles=[BOSS | {"name": ""}, HAND], bindings=[BOSS_BOUND | {"role": ""}, HAND_BOUND], entry="", dispatches=[]
        ),
        [("name_invalid", "/roles/0/name", ())],
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_c01_each_fault_of_a_role_graph_is_told_alone_and_in_its_place(case: str) -> None:
    wrong, expected = GRAPHS[case]

    assert expected == found_in(wrong)


TWO_HELPERS = [agent(name="helper"), agent(name="helper")]
AGENTS: dict[str, tuple[AgentSpec, Found]] = {
    "sound": (everything(), []),
    "no model": (AgentSpec(), [("model_missing", "/model", ())]),
    "no model for one of its roles": (
        AgentSpec(strategy=PlanExecute(planner={"model": "m"}, executors={"e": Executor(description="E")})),
        [("model_missing", "/model", ())],
    ),
    "a tool twice": (agent(tools=[search, search]), [("duplicate_name", "/tools/1", ("/tools/0",))]),
    "two tools of one name": (
        agent(
            tools=[search],
            strategy=PlanExecute(executors={"a/b": Executor(description="A", tools=[OTHER_SEARCH])}),
        ),
        [
            ("duplicate_name", "/strategy/executors/a~1b/tools/0", ("/tools/0",)),
            ("name_invalid", "/strategy/executors/a~1b", ()),
        ],
    ),
    "an executor named as the planner is": (
        agent(strategy=PlanExecute(executors={"planner": Executor(description="P")})),
        [("duplicate_name", "/strategy/executors/planner", ("/strategy/planner",))],
    ),
    "two subagents of one name": (
        agent(subagents=TWO_HELPERS),
        [("duplicate_name", "/subagents/1/name", ("/subagents/0/name",))],
    ),
    "a subagent that is called as a tool is": (
        agent(tools=[search], subagents=[agent(name="search")]),
        [("duplicate_name", "/subagents/0/name", ("/tools/0",))],
    ),
    "faults of a subagent, seen from the whole": (
        agent(subagents=[agent(name="a b", tools=[search, search], limits=Limits(loops=0))]),
        [
            ("duplicate_name", "/subagents/0/tools/1", ("/subagents/0/tools/0",)),
            ("name_invalid", "/subagents/0/name", ()),
            ("out_of_range", "/subagents/0/limits/loops", ()),
        ],
    ),
    "a hook twice": (
        agent(hooks=Hooks(before_tool=[pay, pay], after_tool=[pay, Hook(call=pay, name="again")])),
        [("duplicate_name", "/hooks/before_tool/1", ("/hooks/before_tool/0",))],
    ),
    "policies of tools that are not there": (
        agent(
            tools=[search],
            tool_policies={"guess": ToolPolicy(), "search": ToolPolicy()},
            deadlines=Deadlines(per_tool={"guess": 1}),
            interrupt_on={"guess": True, "never": False},
        ),
        [
            ("dangling_reference", "/deadlines/per_tool/guess", ()),
            ("dangling_reference", "/interrupt_on/guess", ()),
            ("dangling_reference", "/tool_policies/guess", ()),
        ],
    ),
    "a function without a description": (agent(tools=[undescribed]), [("tool_invalid", "/tools/0", ())]),
    "and a policy for it, which has no other fault": (
        agent(tools=[undescribed], tool_policies={"undescribed": ToolPolicy(effect="keyed")}),
        [("tool_invalid", "/tools/0", ())],
    ),
    "arguments without a schema": (agent(tools=[unwritable]), [("tool_schema_invalid", "/tools/0", ())]),
    "a schema of no object": (
        agent(tools=[with_schema({"type": "string"})]),
        [("tool_schema_invalid", "/tools/0", ())],
    ),
    "a schema that is none": (
        agent(tools=[with_schema({"type": "object", "properties": {"a": {"type": "text"}}})]),
        [("tool_schema_invalid", "/tools/0", ())],
    ),
    "a key that the model sees": (agent(tools=[EXPOSED]), [("injected_argument_exposed", "/tools/0", ())]),
    "a key that is no text": (agent(tools=[oddly_keyed]), [("injected_argument_type", "/tools/0", ())]),
    "keyed, without taking the key": (
        agent(tools=[search], tool_policies={"search": ToolPolicy(effect="keyed")}),
        [("keyed_without_key", "/tool_policies/search/effect", ("/tools/0",))],
    ),
    "keyed, as its hint says": (agent(tools=[HINTED], tool_policies={"put": ToolPolicy(effect="keyed")}), []),
    "an effect that is none": (agent(tools=[ODD]), [("effect_invalid", "/tools/0", ())]),
    "an effect that is none, overruled": (agent(tools=[ODD], tool_policies={"odd": ToolPolicy(effect="once")}), []),
    "windows the wrong way round": (
        agent(compaction=Compaction(soft_tokens=10, hard_tokens=10)),
        [("window_order", "/compaction/soft_tokens", ("/compaction/hard_tokens",))],
    ),
    "an output schema that is none": (
        agent(output_schema={"properties": {"a/b": {"$ref": "#/$defs/Missing"}}, "required": "a"}),
        [
            ("output_schema_invalid", "/output_schema/properties/a~1b/$ref", ()),
            ("output_schema_invalid", "/output_schema/required", ()),
        ],
    ),
    "half a character": (agent(system_prompt="\ud800"), [("not_json", "", ())]),
}


@pytest.mark.parametrize("case", AGENTS)
def test_c01_each_fault_of_an_agent_spec_is_told_where_its_user_wrote_it(case: str) -> None:
    wrong, expected = AGENTS[case]

    assert expected == found_in(wrong)


INF, NAN = float("inf"), float("nan")
RANGES: list[tuple[str, AgentSpec]] = [
    *((f"/limits/{name}", agent(limits=Limits(**{name: value})))
      for name, value in [("loops", 0), ("loops", 10**9), ("model_calls", 0), ("tool_calls", -1), ("tokens", 10**5000),
                          ("cost_usd", 0), ("cost_usd", INF), ("cost_usd", NAN)]),
    *((f"/deadlines/{name}_seconds", agent(deadlines=Deadlines(**{f"{name}_seconds": value})))
      for name, value in [("run", 0), ("tool", -1), ("model", INF), ("model_idle", NAN)]),
    ("/deadlines/per_tool/search", agent(tools=[search], deadlines=Deadlines(per_tool={"search": 0}))),
    ("/retry/calls", agent(retry=Retry(calls=0))),
    ("/retry/wait_seconds", agent(retry=Retry(wait_seconds=NAN))),
    ("/compaction/soft_tokens", agent(compaction=Compaction(soft_tokens=0))),
    ("/compaction/hard_tokens", agent(compaction=Compaction(hard_tokens=-5))),
    ("/strategy/max_parallel", agent(strategy=PlanExecute(executors={}, max_parallel=0))),
    ("/strategy/max_replans", agent(strategy=PlanExecute(executors={}, max_replans=-1))),
]  # fmt: skip


@pytest.mark.parametrize(("at", "wrong"), RANGES)
def test_c01_a_number_that_is_not_finite_or_out_of_range_is_told(at: str, wrong: AgentSpec) -> None:
    assert [("out_of_range", at, ())] == found_in(wrong)


def test_c01_no_limit_but_that_of_loops_is_needed_and_no_deadline() -> None:
    unlimited = Deadlines(run_seconds=None, tool_seconds=None, model_seconds=None, model_idle_seconds=None)

    assert [] == found_in(agent(deadlines=unlimited, limits=Limits(tool_calls=0)))


def test_c01_diagnostics_are_sorted_by_code_path_and_related() -> None:
    unsorted = [
        Diagnostic(code=code, path=path, related=related, message="m")
        for code in "ba"
        for path in ("/b", "/a")
        for related in (("/z",), ())
    ]
    error = SpecInvalid(unsorted)
    assert sorted((each.code, each.path, each.related) for each in unsorted) == [
        (each.code, each.path, each.related) for each in error.diagnostics
    ]


def test_c01_the_error_is_one_of_the_family_and_survives_a_copy() -> None:
    """`except InvalidArgument` has it; a copy says the same."""
    with pytest.raises(InvalidArgument) as raised:
        compile_spec(agent(limits=Limits(loops=0)))
    error = raised.value
    assert ("spec_invalid", False) == (error.code, error.retryable)
    assert [{"code": "out_of_range", "path": "/limits/loops"}] == [
        {key: each[key] for key in ("code", "path")} for each in error.details["diagnostics"]  # type: ignore[attr-defined]
    ]  # fmt: skip
    assert "/limits/loops: is 0; it must be at least 1" in str(error)
    assert str(error) == str(copy.copy(error))


def test_c01_a_spec_may_come_as_a_dict_of_either_form() -> None:
    assert compile_spec(agent()) == compile_spec({"model": "openai:big"})
    assert compile_spec(RoleGraph(**graph())) == compile_spec(graph())


@pytest.mark.parametrize("given", [None, 3, "agent", {3: 4}])
def test_c01_what_is_no_spec_at_all_is_told_so(given: Any) -> None:
    assert [("schema_invalid", "", ())] == found_in(given)


def test_c01_both_forms_of_one_agent_describe_the_same_roles() -> None:
    """The explicit form says nothing that the strategy's words do not mean."""
    short = agent(tools=[search], strategy=PlanExecute(executors={"hand": Executor(description="Works.", tools=[pay])}))
    explicit = graph(
        entry="planner",
        roles=[
            {"name": "planner", "role": "planner", "model": "(main)", "tools": ["search"]},
            HAND | {"model": "(main)", "description": "Works."},
        ],
        bindings=[BOSS_BOUND | {"role": "planner"}, HAND_BOUND],
        dispatches=[{"source": "planner", "target": "hand"}],
        models={"(main)": "openai:big"},
    )
    assert compile_spec(short) == compile_spec(explicit)


class Hidden(InjectedToolArg):
    """An injection of somebody else's."""


def test_injected_arguments_stand_in_no_schema_and_are_listed() -> None:
    def act(order: str, key: Annotated[str, InjectedIdempotencyKey], own: Annotated[Any, Hidden]) -> None:
        """Act."""

    told = compile_spec(agent(tools=[act])).descriptor["tools"]["act"]
    assert (["key", "own"], ["order"]) == (told["injected"], list(told["arguments"]["properties"]))
