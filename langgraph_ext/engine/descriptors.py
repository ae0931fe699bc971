"""Descriptors: a draft that has passed its checks, as plain values. Sets are sorted, hooks keep their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from langgraph_ext.engine.json_schemas import ordered
from langgraph_ext.engine.releases import DESCRIPTOR_VERSION, Release
from langgraph_ext.engine.spec_drafts import SUMMARY, Draft, DraftRole, name_of
from langgraph_ext.engine.spec_policies import HOOK_KINDS, Approval, Hook, ToolPolicy
from langgraph_ext.engine.spec_tools import ReadTool, effect_of

__all__ = ["described", "hook_name", "output_schema_of", "told_approval"]


def described(
    draft: Draft, models: Mapping[str, Any], tools: Iterable[ReadTool], subagents: Mapping[str, Release]
) -> dict[str, Any]:
    """What of a spec makes a run another one.

    Args:
        draft: The spec.
        models: By name: what `identity_of` told.
        tools: What was read of its tools.
        subagents: By name.
    """
    spec = draft.spec
    return {
        "version": DESCRIPTOR_VERSION,
        "name": spec.name,
        "description": spec.description,
        "kind": draft.kind,
        "entry": draft.entry.name,
        "roles": {role.name.name: _role(draft, role) for role in draft.roles},
        "dispatches": sorted([source.name, target.name] for _, source, target in draft.dispatches),
        "plan": _plan(draft),
        "models": dict(models),
        "tools": {each.tool.name: _tool(each, spec.tool_policies.get(each.tool.name)) for each in tools},
        "output_schema": ordered(output_schema_of(draft)),
        "limits": spec.limits.model_dump(),
        "deadlines": spec.deadlines.model_dump(exclude={"per_tool"}) | {"per_tool": dict(spec.deadlines.per_tool)},
        "retry": None if spec.retry is None else spec.retry.model_dump(),
        "hooks": {kind: [_hook(hook) for hook in getattr(spec.hooks, kind)] for kind in HOOK_KINDS},
        "compaction": {
            "soft_tokens": spec.compaction.soft_tokens,
            "hard_tokens": spec.compaction.hard_tokens,
            "system_prompt": spec.compaction.system_prompt,
            "model": SUMMARY if SUMMARY in draft.models else None,
        },
        "interrupt_on": {name: told_approval(each) for name, each in spec.interrupt_on.items()},
        "parallel_tools": spec.parallel_tools,
        "subagents": {name: release.descriptor for name, release in subagents.items()},
    }


def output_schema_of(draft: Draft) -> Any:
    """The JSON Schema of the answer; None if that is text."""
    schema = draft.spec.output_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    return _plainly(schema)


def hook_name(hook: Hook) -> str:
    """By which a release knows a hook."""
    return hook.name or _function(hook.call)


def _plainly(value: Any) -> Any:
    """Mappings that are no dicts, as dicts."""
    if isinstance(value, Mapping):
        return {key: _plainly(part) for key, part in value.items()}
    return [_plainly(part) for part in value] if isinstance(value, list | tuple) else value


def _function(function: object) -> str:
    """The name of a function; of an object that can be called, that of its class."""
    return name_of(function) or type(function).__qualname__


def _role(draft: Draft, role: DraftRole) -> dict[str, Any]:
    [bound] = [each for each in draft.bindings if each.role.name == role.name.name]
    return {
        "role": role.role,
        "behaviour": {"name": bound.behaviour, "version": bound.version},
        "model": role.model.name if role.model is not None else None,
        "system_prompt": role.system_prompt,
        "description": role.description,
        "tools": sorted(each.name for each in role.tools),
    }


def _plan(draft: Draft) -> dict[str, Any] | None:
    if draft.plan is None:
        return None
    return {
        "parallel": draft.plan.parallel,
        "max_parallel": draft.plan.max_parallel,
        "review_plan": draft.plan.review_plan,
        "max_replans": draft.plan.max_replans,
    }


def _tool(read: ReadTool, policy: ToolPolicy | None) -> dict[str, Any]:
    on_unknown = "ask" if policy is None else policy.on_unknown
    return {
        "description": read.tool.description,
        "arguments": read.schema,
        "injected": sorted(read.injected),
        "response_format": read.tool.response_format,
        "return_direct": read.tool.return_direct,
        "effect": effect_of(read, policy),
        "on_unknown": on_unknown if isinstance(on_unknown, str) else {"function": _function(on_unknown)},
    }


def _hook(hook: Hook) -> dict[str, Any]:
    return {"name": hook_name(hook), "required": hook.required}


def told_approval(approval: Approval) -> dict[str, Any]:
    """An approval as plain values."""
    text = approval.description
    return {
        "allowed_decisions": sorted(approval.allowed_decisions),
        "description": text if text is None or isinstance(text, str) else {"function": _function(text)},
        "when": None if approval.when is None else {"function": _function(approval.when)},
    }
