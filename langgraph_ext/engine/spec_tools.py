"""Tools of a spec: read once, without calling them. What a model is told of each, and which arguments it never sees."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, tool
from pydantic import BaseModel

from langgraph_ext.engine.injected import InjectedIdempotencyKey
from langgraph_ext.engine.json_schemas import faults, ordered
from langgraph_ext.engine.spec_drafts import DraftTool
from langgraph_ext.engine.spec_policies import ToolPolicy
from langgraph_ext.errors import Diagnostic

__all__ = ["ReadTool", "annotations_of", "effect_of", "policy_faults", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTool:
    """A tool, and what is known of it."""

    at: str
    tool: BaseTool
    schema: Mapping[str, Any]
    """JSON Schema of the arguments that a model gives."""
    injected: frozenset[str]
    """Arguments that a model does not give."""
    keys: tuple[str, ...]
    """Those of them that take the idempotency key."""
    takes_call_id: bool
    """Whether one of them is the id of the tool call."""


def read(draft: DraftTool) -> ReadTool | list[Diagnostic]:
    """A tool as langchain-core sees it, or everything that is wrong with it."""
    made = _made(draft.raw)
    if isinstance(made, str):
        return [Diagnostic(code="tool_invalid", path=draft.at, message=made)]
    schema = _schema_of(made)
    if isinstance(schema, str):
        return [Diagnostic(code="tool_schema_invalid", path=draft.at, message=schema)]
    annotations = annotations_of(made)
    hidden = _hidden(made, schema)
    injected = {name: each for name, each in annotations.items() if _marker(each) or name in hidden}
    found = list(_schema_faults(draft.at, made.name, schema)) + list(_injected_faults(draft.at, injected, schema))
    return found or ReadTool(
        at=draft.at,
        tool=made,
        schema=ordered({key: part for key, part in schema.items() if key not in ("title", "description")}),
        injected=frozenset(injected),
        keys=tuple(sorted(name for name, each in injected.items() if _has_mark(each, InjectedIdempotencyKey))),
        takes_call_id=any(_has_mark(each, InjectedToolCallId) for each in injected.values()),
    )


def effect_of(read: ReadTool, policy: ToolPolicy | None) -> object:
    """What calling the tool does outside: as its policy says, its metadata, MCP's hints, else `once` (rule A10).

    It may be anything if the metadata says what is no effect.
    """
    if policy is not None and policy.effect is not None:
        return policy.effect
    metadata = read.tool.metadata or {}
    if "effect" in metadata:
        return metadata["effect"]
    annotations = metadata.get("annotations")
    hints = {**metadata, **annotations} if isinstance(annotations, Mapping) else metadata
    if hints.get("readOnlyHint") is True:
        return "repeatable"
    return "keyed" if hints.get("idempotentHint") is True else "once"


def policy_faults(read: ReadTool, policy: ToolPolicy | None, at: str) -> Iterator[Diagnostic]:
    """Its effect is one, and a key that is promised is taken.

    Args:
        read: The tool.
        policy: Its policy.
        at: Where the effect of that is written.
    """
    if effect_of(read, policy) not in ("repeatable", "once", "keyed"):
        yield Diagnostic(
            code="effect_invalid",
            path=read.at,
            message="metadata['effect'] must be 'repeatable', 'once' or 'keyed'",
        )
    keyed = policy is not None and policy.effect == "keyed"
    if keyed and not read.keys and effect_of(read, None) != "keyed":
        yield Diagnostic(
            code="keyed_without_key",
            path=at,
            related=(read.at,),
            message=f"{read.tool.name!r} takes no idempotency key; give it an argument marked InjectedIdempotencyKey",
        )


def _made(raw: BaseTool | Callable[..., Any]) -> BaseTool | str:
    if isinstance(raw, BaseTool):
        return raw
    try:
        return tool(raw)
    except Exception as error:  # noqa: BLE001 - whatever a signature provokes is what is wrong with it
        return f"cannot be made a tool: {_told(error)}"


def _schema_of(made: BaseTool) -> dict[str, Any] | str:
    try:
        schema = made.tool_call_schema
        if isinstance(schema, dict):
            return schema
        return schema.model_json_schema() if issubclass(schema, BaseModel) else schema.schema()
    except Exception as error:  # noqa: BLE001 - as above; pydantic raises errors of many kinds
        return f"its arguments have no JSON Schema: {_told(error)}"


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else 'without a message'}"


def _schema_faults(at: str, name: str, schema: dict[str, Any]) -> Iterator[Diagnostic]:
    for within, message in faults(schema, of_object=True):
        place = f"{within} of the arguments of {name!r}" if within else f"the arguments of {name!r}"
        yield Diagnostic(code="tool_schema_invalid", path=at, message=f"{place}: {message}")


def _injected_faults(at: str, injected: Mapping[str, Any], schema: dict[str, Any]) -> Iterator[Diagnostic]:
    shown = schema.get("properties")
    for name in sorted(injected):
        if isinstance(shown, dict) and name in shown:
            yield Diagnostic(
                code="injected_argument_exposed",
                path=at,
                message=f"its schema shows {name!r} to the model, which is injected; take it out, or mark it there",
            )
        if _has_mark(injected[name], InjectedIdempotencyKey) and not {str, Any} & set(_types_in(injected[name])):
            yield Diagnostic(
                code="injected_argument_type",
                path=at,
                message=f"{name!r} is to take an idempotency key, which is a str; annotate it as one",
            )


def _hidden(made: BaseTool, schema: Mapping[str, Any]) -> set[str]:
    """Arguments that langchain-core shows no model though nothing marks them: by their type it knows them."""
    whole, shown = made.args_schema, schema.get("properties")
    if not (isinstance(whole, type) and issubclass(whole, BaseModel) and isinstance(shown, dict)):
        return set()
    return {field.alias or name for name, field in whole.model_fields.items()} - set(shown)


def annotations_of(made: BaseTool) -> dict[str, Any]:
    """Of the function behind a tool and of its schema; the function's count where both name an argument."""
    found: dict[str, Any] = {}
    schema = made.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        for name, field in schema.model_fields.items():
            found[name] = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    own = getattr(made, "func", None) or getattr(made, "coroutine", None)
    for function in [own] if own is not None else [made._run, made._arun]:
        found |= _hints_of(function)
    return found


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        # One name that cannot be resolved does not hide the others.
        hints = getattr(function, "__annotations__", {})
    return {name: each for name, each in hints.items() if name in inspect.signature(function).parameters}


def _marker(annotation: Any) -> Any:
    """The mark of an injected argument, if it is one."""
    if get_origin(annotation) is not Annotated:
        return None
    marks = annotation.__metadata__
    return next((mark for mark in marks if _is_mark(mark, InjectedToolArg)), None)


def _is_mark(mark: Any, kind: type) -> bool:
    return isinstance(mark, kind) or (isinstance(mark, type) and issubclass(mark, kind))


def _has_mark(annotation: Any, kind: type) -> bool:
    return any(_is_mark(mark, kind) for mark in getattr(annotation, "__metadata__", ()))


def _types_in(annotation: Any) -> tuple[Any, ...]:
    base = get_args(annotation)[0]
    return (base, *get_args(base))
