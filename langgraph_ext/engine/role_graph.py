"""Role graphs: the explicit form of an agent spec. Roles, what drives each, and who may give work to whom.

`AgentSpec` says the same in the words of its strategy. This form is for behaviours of one's own, and for agents that
are written by a program.
"""

from __future__ import annotations

from typing import Literal

from langgraph_ext.engine.spec import SpecBase
from langgraph_ext.engine.spec_parts import Count, Flag, Model, Named, Part, Text

__all__ = ["Binding", "Dispatch", "Role", "RoleGraph", "RoleKind"]

RoleKind = Literal["react", "planner", "executor"]


class Role(Part):
    """Prompt, model and tools of one role; its history is its own."""

    name: Text
    role: RoleKind
    model: Text | None = None
    """The name of one of the graph's models."""
    system_prompt: Text | None = None
    tools: tuple[Text, ...] = ()
    """Names of the graph's tools."""
    description: Text = ""
    """What a planner is told of it."""


class Binding(Part):
    """Which behaviour drives a role."""

    role: Text
    behaviour: Text
    version: Count


class Dispatch(Part):
    """One role may give work to another."""

    source: Text
    target: Text


class RoleGraph(SpecBase):
    """An agent as a graph of roles.

    Raises:
        SpecInvalid: A field is missing, unknown, or of another type.
    """

    kind: Literal["react", "plan"]
    entry: Text
    """The root: the role that is given the input and whose answer is the agent's."""
    roles: tuple[Role, ...]
    bindings: tuple[Binding, ...]
    """One for each role."""
    models: Named[Model]
    dispatches: tuple[Dispatch, ...] = ()
    parallel: Flag = False
    max_parallel: Count = 2
    review_plan: Flag = False
    max_replans: Count = 3
