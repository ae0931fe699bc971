"""The compiler: an agent spec becomes a release, or everything that is wrong with it is told at once.

It is pure: no model or tool is called, nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from langgraph_ext import canonical
from langgraph_ext.engine.descriptors import described, hook_name, output_schema_of
from langgraph_ext.engine.diagnostics import below, pointer
from langgraph_ext.engine.json_schemas import faults
from langgraph_ext.engine.releases import Live, Release
from langgraph_ext.engine.role_graph import RoleGraph
from langgraph_ext.engine.spec import AgentSpec
from langgraph_ext.engine.spec_checks import CHECKS
from langgraph_ext.engine.spec_drafts import Draft, drafted
from langgraph_ext.engine.spec_models import identity_of
from langgraph_ext.engine.spec_policies import HOOK_KINDS
from langgraph_ext.engine.spec_ranges import check_ranges
from langgraph_ext.engine.spec_tools import ReadTool, policy_faults, read
from langgraph_ext.errors import Diagnostic, SpecInvalid

__all__ = ["compile_spec"]


def compile_spec(spec: AgentSpec | RoleGraph | Mapping[str, Any]) -> Release:
    """Make a release of an agent spec.

    Args:
        spec: The spec, in either form; or its fields as a dict, which is a `RoleGraph` if it has `roles`.

    Raises:
        SpecInvalid: Its `diagnostics` hold everything that is wrong, sorted. A reference that leads nowhere is told
            once, and what would have needed it is not looked at. Where a dict has not the shape of a spec, only that
            is told.
    """
    draft = drafted(_shaped(spec))
    models: dict[str, Any] = {}
    tools: list[ReadTool] = []
    subagents: dict[str, Release] = {}
    found = [each for check in (*CHECKS, check_ranges) for each in check(draft)]
    found.extend(_identify_models(draft, models))
    found.extend(_read_tools(draft, tools))
    found.extend(_check_policies(draft, tools))
    found.extend(_check_output(draft))
    found.extend(_compile_subagents(draft, subagents))
    if found:
        raise SpecInvalid(found)
    try:
        body = canonical.encode(described(draft, models, tools, subagents), where="descriptor")
    except TypeError as error:
        raise SpecInvalid([Diagnostic(code="not_json", path="", message=str(error))]) from None
    return Release(body=body, digest=canonical.digest(body), live=_live(draft, tools), subagents=subagents)


def _shaped(spec: object) -> AgentSpec | RoleGraph:
    if isinstance(spec, AgentSpec | RoleGraph):
        return spec
    if isinstance(spec, Mapping) and all(isinstance(key, str) for key in spec):
        return RoleGraph(**spec) if "roles" in spec else AgentSpec(**spec)
    raise SpecInvalid(
        [Diagnostic(code="schema_invalid", path="", message=f"is of type {type(spec).__name__}; make an AgentSpec")]
    )


def _identify_models(draft: Draft, models: dict[str, Any]) -> Iterator[Diagnostic]:
    for name, each in draft.models.items():
        try:
            models[name] = identity_of(each.model)
        except Exception as error:  # noqa: BLE001 - a model's own code; whatever it raises is told
            message = f"does not tell its parameters: {type(error).__name__}"
            yield Diagnostic(code="model_invalid", path=each.at, message=message)


def _read_tools(draft: Draft, tools: list[ReadTool]) -> Iterator[Diagnostic]:
    for each in draft.tools:
        known = read(each)
        if isinstance(known, ReadTool):
            tools.append(known)
        else:
            yield from known


def _check_policies(draft: Draft, tools: Iterable[ReadTool]) -> Iterator[Diagnostic]:
    """Of tools that could be read."""
    for known in tools:
        name = known.tool.name
        yield from policy_faults(known, draft.spec.tool_policies.get(name), pointer("tool_policies", name, "effect"))


def _check_output(draft: Draft) -> Iterator[Diagnostic]:
    try:
        schema = output_schema_of(draft)
    except Exception as error:  # noqa: BLE001 - pydantic raises errors of many kinds; each is a fault of the schema
        message = f"has no JSON Schema: {type(error).__name__}"
        yield Diagnostic(code="output_schema_invalid", path="/output_schema", message=message)
        return
    if schema is not None:
        for at, message in faults(schema, of_object=False):
            yield Diagnostic(code="output_schema_invalid", path="/output_schema" + at, message=message)


def _compile_subagents(draft: Draft, subagents: dict[str, Release]) -> Iterator[Diagnostic]:
    for n, each in enumerate(draft.spec.subagents):
        try:
            subagents[each.name] = compile_spec(each)
        except SpecInvalid as error:
            yield from below(pointer("subagents", n), error.diagnostics)


def _live(draft: Draft, tools: Iterable[ReadTool]) -> Live:
    spec = draft.spec
    approvals = spec.interrupt_on.items()
    output = spec.output_schema
    return Live(
        models={name: each.model for name, each in draft.models.items()},
        tools={each.tool.name: each.tool for each in tools},
        keys={each.tool.name: each.keys for each in tools},
        hooks={(kind, hook_name(hook)): hook.call for kind in HOOK_KINDS for hook in getattr(spec.hooks, kind)},
        reconcile={name: each.on_unknown for name, each in spec.tool_policies.items() if callable(each.on_unknown)},
        approval_when={name: each.when for name, each in approvals if each.when is not None},
        approval_text={name: each.description for name, each in approvals if callable(each.description)},
        output_type=output if isinstance(output, type) and issubclass(output, BaseModel) else None,
    )
