"""Drafts: both forms of a spec as one graph of roles, in which every part knows where it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from langgraph_ext.engine.diagnostics import pointer
from langgraph_ext.engine.role_graph import RoleGraph
from langgraph_ext.engine.spec import AgentSpec, Executor, PlanExecute, Planner, SpecBase

__all__ = ["SUMMARY", "Draft", "DraftBinding", "DraftModel", "DraftRole", "DraftTool", "Ref", "drafted", "name_of"]

MAIN = "(main)"
SUMMARY = "(summary)"
"""Models that no executor's name can be taken for."""

BUILT_IN_VERSIONS: Mapping[str, int] = {"react": 1, "planner": 1, "executor": 1}
"""Which version of each behaviour an `AgentSpec` is compiled to."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A name, and where it was written."""

    name: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRole:
    """One role; `at` is where it was written."""

    at: str
    name: Ref
    role: str
    model: Ref | None
    """None: nobody has said which."""
    model_at: str
    system_prompt: str | None
    description: str
    tools: tuple[Ref, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftBinding:
    """Which behaviour drives a role."""

    at: str
    role: Ref
    behaviour: str
    version: int


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A model, and where it was written."""

    at: str
    model: BaseChatModel | str


@dataclass(frozen=True, slots=True)
class DraftTool:
    """A tool, or a function that is to be one; its name is None if it has none."""

    at: str
    name: str | None
    raw: BaseTool | Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A spec as a graph of roles, unchecked."""

    spec: SpecBase
    """For what is written in the same places in both forms."""
    kind: str
    entry: Ref
    roles: tuple[DraftRole, ...]
    bindings: tuple[DraftBinding, ...]
    dispatches: tuple[tuple[str, Ref, Ref], ...]
    """Where, from whom, to whom."""
    models: Mapping[str, DraftModel]
    tools: tuple[DraftTool, ...]
    """Each once, however many roles have it."""
    plan_at: str
    """Where `plan` was written."""
    plan: PlanExecute | RoleGraph | None

    def role(self, name: str) -> DraftRole | None:
        """The role of this name; None if there is none, or if nobody knows which of several is meant."""
        found = [each for each in self.roles if each.name.name == name]
        return found[0] if len(found) == 1 else None


def name_of(function: object) -> str | None:
    """The name of a function, without its module: the same whether that was imported or run as a program."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else None


def drafted(spec: AgentSpec | RoleGraph) -> Draft:
    """The graph of roles that a spec describes."""
    return _of_graph(spec) if isinstance(spec, RoleGraph) else _of_agent(spec)


def _tool_name(raw: BaseTool | Callable[..., Any]) -> str | None:
    name = raw.name if isinstance(raw, BaseTool) else getattr(raw, "__name__", None)
    return name if isinstance(name, str) else None


def _same(one: object, other: object) -> bool:
    """Bound methods are made anew whenever they are looked up, tools are not."""
    return one is other or (not isinstance(one, BaseTool) and one == other)


@dataclass(slots=True)
class _Tools:
    """Tools as they are come across: the same one, in another role, is no second one."""

    found: list[DraftTool] = field(default_factory=list)

    def take(self, at: str, raws: tuple[BaseTool | Callable[..., Any], ...]) -> tuple[Ref, ...]:
        drafts = [DraftTool(at + pointer(n), _tool_name(raw), raw) for n, raw in enumerate(raws)]
        for draft in drafts:
            if not any(_same(draft.raw, known.raw) for known in self.found):
                self.found.append(draft)
        return tuple(Ref(draft.name, draft.at) for draft in drafts if draft.name is not None)


def _of_agent(spec: AgentSpec) -> Draft:
    tools, models = _Tools(), dict(_shared_models(spec))
    common = tools.take("/tools", spec.tools)
    plan = spec.strategy if isinstance(spec.strategy, PlanExecute) else None
    if plan is None:
        roles = [_role("react", "/strategy", "react", spec, Planner(), models, common, tools)]
    else:
        at = "/strategy/planner"
        roles = [_role("planner", at, "planner", spec, plan.planner, models, common, tools)]
        for name, executor in plan.executors.items():
            at = "/strategy" + pointer("executors", name)
            roles.append(_role(name, at, "executor", spec, executor, models, common, tools))
    entry = roles[0].name
    return Draft(
        spec=spec,
        kind=spec.strategy.kind,
        entry=entry,
        roles=tuple(roles),
        bindings=tuple(
            DraftBinding(at=each.at, role=each.name, behaviour=each.role, version=BUILT_IN_VERSIONS[each.role])
            for each in roles
        ),
        dispatches=tuple((each.at, entry, each.name) for each in roles[1:]),
        models=models,
        tools=tuple(tools.found),
        plan_at="/strategy",
        plan=plan,
    )


def _shared_models(spec: SpecBase) -> Iterator[tuple[str, DraftModel]]:
    if isinstance(spec, AgentSpec) and spec.model is not None:
        yield MAIN, DraftModel("/model", spec.model)
    if spec.compaction.model is not None:
        yield SUMMARY, DraftModel("/compaction/model", spec.compaction.model)


def _role(
    name: str,
    at: str,
    role: str,
    spec: AgentSpec,
    written: Planner | Executor,
    models: dict[str, DraftModel],
    common: tuple[Ref, ...],
    tools: _Tools,
) -> DraftRole:
    """A role of an `AgentSpec`; it inherits what is not written for it."""
    model = MAIN
    if written.model is not None:
        model = name
        models[name] = DraftModel(at + "/model", written.model)
    inherited = spec.system_prompt if role != "executor" else None
    return DraftRole(
        at=at,
        name=Ref(name, at),
        role=role,
        model=Ref(model, at + "/model") if model in models else None,
        model_at="/model",
        system_prompt=inherited if written.system_prompt is None else written.system_prompt,
        description=written.description if isinstance(written, Executor) else "",
        tools=common if written.tools is None else tools.take(at + "/tools", written.tools),
    )


def _of_graph(spec: RoleGraph) -> Draft:
    tools = _Tools()
    tools.take("/tools", spec.tools)
    models = {name: DraftModel(pointer("models", name), model) for name, model in spec.models.items()}
    return Draft(
        spec=spec,
        kind=spec.kind,
        entry=Ref(spec.entry, "/entry"),
        roles=tuple(
            DraftRole(
                at=(at := pointer("roles", n)),
                name=Ref(role.name, at + "/name"),
                role=role.role,
                model=None if role.model is None else Ref(role.model, at + "/model"),
                model_at=at + "/model",
                system_prompt=role.system_prompt,
                description=role.description,
                tools=tuple(Ref(tool, at + pointer("tools", m)) for m, tool in enumerate(role.tools)),
            )
            for n, role in enumerate(spec.roles)
        ),
        bindings=tuple(
            DraftBinding(
                at=(at := pointer("bindings", n)),
                role=Ref(binding.role, at + "/role"),
                behaviour=binding.behaviour,
                version=binding.version,
            )
            for n, binding in enumerate(spec.bindings)
        ),
        dispatches=tuple(
            (
                at := pointer("dispatches", n),
                Ref(edge.source, at + "/source"),
                Ref(edge.target, at + "/target"),
            )
            for n, edge in enumerate(spec.dispatches)
        ),
        models=models | dict(_shared_models(spec)),
        tools=tuple(tools.found),
        plan_at="",
        plan=spec if spec.kind == "plan" else None,
    )
