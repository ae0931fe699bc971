"""Arguments that a model gives to a tool, against the tool's schema, before anything is called (rule E15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, Tool
from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from langgraph_ext import canonical
from langgraph_ext.engine.answer_checks import NOWHERE, Fault, pointed, step, told, unfit, unstorable
from langgraph_ext.engine.diagnostics import pointer

__all__ = ["argument_fault", "without_injected"]

Path = tuple[str | int, ...]


def argument_fault(tool: BaseTool, args: Any, injected: Collection[str]) -> str | None:
    """What a model is told if its arguments do not fit a tool; None if they do.

    They fit if langchain-core will take them: by the tool's pydantic model, what that coerces included; by its JSON
    Schema, which langchain-core itself does not look at. Validators of a whole model run only once all its fields are
    there, so where an injected one is required, what they say is left to the call. The tool is not called.

    Args:
        tool: The tool.
        args: What the model gave.
        injected: Arguments that the model does not give. What it supplied for them is neither judged nor wanted.
    """
    if isinstance(args, dict):
        given = without_injected(args, injected)
        faults = unstorable(given) or _unfit(tool, given, injected)
    else:
        faults = [("", "must be an object, which holds them by name")]
    lines = "\n".join(f"- {each}" for each in told(faults, "the arguments"))
    return f"{tool.name!r} was not called, because its arguments do not fit:\n{lines}" if lines else None


def without_injected(args: Mapping[str, Any], injected: Collection[str]) -> dict[str, Any]:
    """The arguments that a model may give."""
    return {name: value for name, value in args.items() if name not in injected}


def _unfit(tool: BaseTool, given: dict[str, Any], injected: Collection[str]) -> list[Fault]:
    schema = tool.args_schema
    if isinstance(schema, dict):
        return unfit(given, _without_required(schema, injected))
    if schema is None and isinstance(tool, Tool):
        # It takes one value, under whatever name its provider has given it.
        return [] if len(given) == 1 else [("", "must be exactly one")]
    if schema is not None:
        return _unfit_model(schema, given, injected)
    shown = tool.tool_call_schema  # of the signature; langchain-core looks at no schema here
    assert not isinstance(shown, dict), "only a dict is shown as one"
    configs = {name for name, field in _fields(shown).items() if field.annotation is RunnableConfig}
    return _unfit_model(shown, without_injected(given, configs), configs)


def _without_required(schema: dict[str, Any], injected: Collection[str]) -> dict[str, Any]:
    required = schema.get("required")
    if not isinstance(required, list):
        return schema
    return schema | {"required": [name for name in required if name not in injected]}


def _unfit_model(
    model: type[BaseModel] | type[BaseModelV1], given: dict[str, Any], hidden: Collection[str]
) -> list[Fault]:
    if not _fields(model):
        return []  # langchain-core calls such a tool without arguments, whatever was given
    paths = _paths(model, hidden)
    supplied = [path for path in paths if _leads(path, given)]
    if supplied:
        # Dropping the name does not drop what stands under an alias.
        return [(pointer(*path), "is filled in by the program; leave it out") for path in supplied]
    errors = [each for each in _errors(model, given) if not any(each["loc"][: len(path)] == path for path in paths)]
    return pointed(errors, given)


def _errors(model: type[BaseModel] | type[BaseModelV1], given: dict[str, Any]) -> list[Any]:
    copy = canonical.decode(canonical.encode_plain(given))  # validators may write into what they are given
    try:
        if issubclass(model, BaseModel):
            model.model_validate(copy)
        else:
            model.parse_obj(copy)
    except ValidationError as error:
        return list(error.errors(include_url=False, include_context=False, include_input=False))
    except ValidationErrorV1 as error:
        return list(error.errors())
    except Exception:  # noqa: BLE001 - no verdict on the arguments; the call comes to it again, as the tool's own failure
        return []
    return []


def _fields(model: type[BaseModel] | type[BaseModelV1]) -> Mapping[str, Any]:
    return model.model_fields if issubclass(model, BaseModel) else model.__fields__


def _paths(model: type[BaseModel] | type[BaseModelV1], hidden: Collection[str]) -> list[Path]:
    """Where pydantic looks for hidden arguments: their names and aliases."""
    found: list[Path] = [(name,) for name in hidden]
    fields = _fields(model)
    for field in (fields[name] for name in hidden if name in fields):
        alias = field.validation_alias if issubclass(model, BaseModel) else field.alias
        for each in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if each is not None:
                found.append(tuple(each.path) if isinstance(each, AliasPath) else (each,))
    return found


def _leads(path: Path, value: Any) -> bool:
    for part in path:
        value = step(value, part)
    return value is not NOWHERE
