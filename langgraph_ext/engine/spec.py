"""Agent specs: what an agent is, as its user writes it. Immutable; `compile_spec` makes a release of one.

A spec is checked twice. Making one checks its shape (fields and types); compiling it checks what it says (names,
references, roles, tools, ranges), and reports everything at once. Both raise `SpecInvalid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from langgraph_ext.engine.spec_parts import Count, Flag, Model, Named, OutputSchema, Part, Text, Tool
from langgraph_ext.engine.spec_policies import (
    Approval,
    Compaction,
    Deadlines,
    Hooks,
    Limits,
    Retry,
    ToolPolicy,
    asked,
)

__all__ = ["AgentSpec", "Executor", "PlanExecute", "Planner", "ReAct", "SpecBase"]


class ReAct(Part):
    """One role that calls its model and tools in turn, until the model answers."""

    kind: Literal["react"] = "react"


class Planner(Part):
    """The planner of a `PlanExecute`, where it is not the agent itself: what is None is the agent's."""

    model: Model | None = None
    system_prompt: Text | None = None
    tools: tuple[Tool, ...] | None = None


class Executor(Part):
    """Whom a planner gives work to. Its history is its own."""

    description: Text
    """What the planner is told of it."""
    model: Model | None = None
    """None: the agent's."""
    system_prompt: Text | None = None
    """None: none; it does not see the agent's."""
    tools: tuple[Tool, ...] | None = None
    """None: the agent's."""


class PlanExecute(Part):
    """A planner that decides, and executors that it gives work to."""

    kind: Literal["plan"] = "plan"
    executors: Named[Executor]
    planner: Planner = Planner()
    parallel: Flag = False
    """Whether executors may be active side by side; else one after the other (rule E20)."""
    max_parallel: Count = 2
    """If they may: how many."""
    review_plan: Flag = False
    """Whether a person sees the plan before it is followed."""
    max_replans: Count = 3


def _a_strategy(given: object) -> ReAct | PlanExecute:
    if isinstance(given, ReAct | PlanExecute):
        return given
    kinds: dict[object, type[ReAct | PlanExecute]] = {"react": ReAct, "plan": PlanExecute}
    if isinstance(given, Mapping) and given.get("kind") in kinds:
        return kinds[given["kind"]](**given)
    raise ValueError("a strategy is ReAct(…) or PlanExecute(…)")


class SpecBase(Part):
    """What the two forms of a spec have in common."""

    version: Count = 1
    """Of this form, not of the agent."""
    name: Text = "agent"
    description: Text = ""
    """What others are told of it, if it is one of their `subagents`."""
    tools: tuple[Tool, ...] = ()
    """langchain-core tools, or functions with a docstring. Their order means nothing."""
    output_schema: OutputSchema | None = None
    """What the answer is to be: a pydantic model or a JSON Schema. None: text."""
    limits: Limits = Limits()
    deadlines: Deadlines = Deadlines()
    retry: Retry | None = None
    """None: no operation is called a second time because it failed."""
    tool_policies: Named[ToolPolicy] = Field(default_factory=lambda: MappingProxyType({}))
    """By tool name."""
    interrupt_on: Annotated[Named[Approval], BeforeValidator(asked)] = Field(
        default_factory=lambda: MappingProxyType({})
    )
    """By the name of a tool, an executor or a subagent: what a person decides before each call. True: everything."""
    hooks: Hooks = Hooks()
    compaction: Compaction = Compaction()
    parallel_tools: Flag = True
    """Whether the tool calls of one decision run side by side."""
    subagents: tuple[AgentSpec, ...] = ()
    """Agents that this one may call, by their names, each as an agent run of its own."""


class AgentSpec(SpecBase):
    """An agent: its strategy, model, prompt and tools, and what bounds them.

    Raises:
        SpecInvalid: A field is missing, unknown, or of another type.
    """

    strategy: Annotated[ReAct | PlanExecute, PlainValidator(_a_strategy)] = ReAct()
    model: Model | None = None
    """A chat model, or the name of one. It may be left out where every role has its own."""
    system_prompt: Text | None = None


SpecBase.model_rebuild(_types_namespace={"AgentSpec": AgentSpec, "Any": Any})
AgentSpec.model_rebuild()
