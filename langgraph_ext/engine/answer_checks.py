"""Final answers of models, against the output schema of their spec (rule E16).

What is wrong is told by JSON Pointers into what the model gave, and without its values. The same text is told the same
in every process. JSON Schema is that of `jsonschema`, references are followed inside the schema only, and nothing is
fetched (docs/decisions/0005-dependencies.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    ValidationError,
    validators,
)
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from pydantic import BaseModel
from pydantic import ValidationError as ModelError
from referencing import Registry
from referencing.exceptions import Unresolvable

from langgraph_ext import canonical
from langgraph_ext.engine.diagnostics import pointer

__all__ = [
    "DEEPEST",
    "NOWHERE",
    "CheckedAnswer",
    "Fault",
    "checked_answer",
    "feedback",
    "pointed",
    "step",
    "told",
    "unfit",
    "unstorable",
]

DEEPEST = 64
"""Levels of nesting that are looked at: few enough for the stack of any caller, so that all are told the same."""

_MOST = 20
_LONGEST = 512

Fault = tuple[str, str]
"""A JSON Pointer, and what is wrong there."""


class CheckedAnswer(NamedTuple):
    """An answer that has been looked at."""

    value: Any
    """What is stored as the answer; None if there are diagnostics."""
    diagnostics: list[str]
    """At most 20, sorted by JSON Pointer, each `pointer: message` of at most 512 characters."""


def checked_answer(
    text: str, schema: Mapping[str, Any] | bool | None, output_type: type[BaseModel] | None
) -> CheckedAnswer:
    """Read a model's final answer as what its spec wants.

    Args:
        text: The whole answer: one JSON value, alone or in one json fence. JSON inside of other text is not looked for.
        schema: The descriptor's `output_schema`; None if the answer is text, which is then the value.
        output_type: The model that the schema was made of. If there is one it decides, and writes the value.
    """
    if schema is None and output_type is None:
        value, faults = text, unstorable(text)
    else:
        value, faults = _parsed(text)
        if not faults and output_type is not None:
            value, faults = _modelled(value, output_type)
        elif not faults:
            faults = unfit(value, schema)
    diagnostics = told(faults, "the answer")
    return CheckedAnswer(None if diagnostics else value, diagnostics)


def feedback(diagnostics: Sequence[str]) -> str:
    """What a model is told of an answer that does not fit."""
    listed = "\n".join(f"- {each}" for each in diagnostics)
    return f"The answer does not fit:\n{listed}\nAnswer again, with one JSON value that fits, and nothing beside it."


def told(faults: Iterable[Fault], whole: str) -> list[str]:
    """Faults as lines that can be stored, with their bounds; `whole` stands for the empty pointer."""
    first = sorted(set(faults))[:_MOST]
    lines = [f"{at or whole}: {message}".encode(errors="replace").decode() for at, message in first]
    return [line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…" for line in lines]


def unstorable(value: Any) -> list[Fault]:
    """What of a value is not JSON as the database holds it: nesting, NaN, large integers."""
    level = [value]
    for _ in range(DEEPEST):
        level = [part for each in level for _, part in _parts(each)]
    if any(isinstance(each, dict | list | tuple) for each in level):
        return [("", f"is nested deeper than {DEEPEST} levels")]
    return list(_unstorable(value, ""))


def unfit(value: Any, schema: Any) -> list[Fault]:
    """What of a value a JSON Schema does not allow; one fault if nothing can be judged by that schema."""
    try:
        found = _validator(canonical.encode(schema, where="schema")).iter_errors(value)
        return [_fault(leaf) for each in found for leaf in _leaves(each)]
    except Unresolvable:
        why = "a reference leads out of it, or to nothing"
    except RecursionError:
        why = "it leads too deep, or back to itself without end"
    except (TypeError, ValueError, UnknownType, re.error) as error:
        why = str(error)
    return [("", f"cannot be checked, because its schema cannot be used: {why}")]


NOWHERE: Any = object()


def step(value: Any, part: Any) -> Any:
    """What stands in a value under a name or number, or `NOWHERE`."""
    try:
        return value[part] if isinstance(value, dict | list) else NOWHERE
    except (LookupError, TypeError):
        return NOWHERE


def pointed(errors: Iterable[Mapping[str, Any]], value: Any) -> list[Fault]:
    """What pydantic has found, in either version, as pointers into the value that it was given."""
    return [(_place(each["loc"], value, each["type"]), each["msg"]) for each in errors]


# --- text to value -------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"\s*```json\s(.*)```\s*", re.DOTALL)


def _parsed(text: str) -> tuple[Any, list[Fault]]:
    fenced = _FENCE.fullmatch(text)
    body = text if fenced is None else fenced[1]
    try:
        faults = unstorable(canonical.decode(body.encode()))
    except ValueError as error:
        return None, [("", f"is not one JSON value: {error}")]
    if faults:
        return None, faults
    value = json.loads(body)  # again, because the first reader makes floats of large integers
    return value, unstorable(value)


def _modelled(value: Any, output_type: type[BaseModel]) -> tuple[Any, list[Fault]]:
    try:
        made = output_type.model_validate_json(canonical.encode_plain(value))
        dumped = made.model_dump(mode="json", by_alias=True, warnings=False)
    except ModelError as error:
        return None, pointed(error.errors(include_url=False, include_context=False, include_input=False), value)
    except Exception as error:  # noqa: BLE001 - a model's own code; whatever it raises is told
        return None, [("", f"cannot be checked: {type(error).__name__}")]
    return dumped, unstorable(dumped)


def _parts(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list | tuple) else []


def _unstorable(value: Any, at: str) -> Iterator[Fault]:
    try:
        canonical.encode(value, where="it")
    except TypeError as error:
        inside = [fault for key, part in _parts(value) for fault in _unstorable(part, at + pointer(key))]
        yield from inside or [(at, str(error))]


def _place(location: Iterable[str | int], value: Any, kind: str) -> str:
    """A pointer, without the steps of pydantic's that are no places in the value, such as the branches of a union."""
    steps: list[str | int] = []
    for part in location:
        inner = step(value, part)
        if inner is not NOWHERE:
            value = inner
            steps.append(part)
    if kind in ("missing", "value_error.missing"):
        steps.extend(list(location)[-1:])
    return pointer(*steps)


# --- JSON Schema ---------------------------------------------------------------------------------------------------


def _pattern(validator: Validator, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As it is, but for expressions that Python cannot read, since JSON Schema's are JavaScript's: all text fits."""
    try:
        yield from Draft202012Validator.VALIDATORS["pattern"](validator, pattern, instance, schema) or ()
    except re.error:
        return


_DRAFTS: dict[str, type[Validator]] = {
    draft.META_SCHEMA["$schema"].rstrip("#"): validators.extend(draft, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    for draft in (Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator)
}
_LATEST = "https://json-schema.org/draft/2020-12/schema"


@lru_cache(maxsize=256)
def _validator(body: bytes) -> Validator:
    schema = canonical.decode(body)
    # Taken out, since a validator that meets it on its way would go on as that draft's own, without our `pattern`.
    dialect = schema.pop("$schema", None) if isinstance(schema, dict) else None
    draft = _DRAFTS.get(str(dialect).rstrip("#"), _DRAFTS[_LATEST])
    wrong = sorted(pointer(*each.absolute_path) for each in draft(draft.META_SCHEMA).iter_errors(schema))
    if wrong:
        raise ValueError(f"{wrong[0] or 'its root'} is wrong")
    # A registry of its own, because the one that `jsonschema` would take fetches what it does not know.
    return draft(schema, registry=Registry())


_NAMES_ONLY = ("additionalProperties", "required", "unevaluatedProperties")
"""Keywords whose messages hold names of properties, and no values."""
_WORDS = {
    "anyOf": "must fit one of",
    "const": "must be",
    "enum": "must be one of",
    "not": "must not fit",
    "oneOf": "must fit exactly one of",
    "type": "must be of type",
}


def _leaves(error: ValidationError) -> list[ValidationError]:
    """All that is wrong by the one alternative that was meant; the error itself if that is not to be seen."""
    branches: dict[Any, list[ValidationError]] = {}
    for each in error.context:
        if each.schema_path:  # an alternative that is false has none
            branches.setdefault(each.schema_path[0], []).append(each)
    meant = [branch for branch in branches.values() if not any(_is_of_another(each, error) for each in branch)]
    return [leaf for each in meant[0] for leaf in _leaves(each)] if len(meant) == 1 else [error]


def _is_of_another(error: ValidationError, whole: ValidationError) -> bool:
    """Whether the alternative is for other values: by their type, or by a property that says which it is."""
    if error.instance is whole.instance:
        return error.validator in ("const", "enum", "type")
    return error.validator == "const" and len(error.path) == 1


def _fault(error: ValidationError) -> Fault:
    return pointer(*error.absolute_path), _named(error) + _message(error)


def _message(error: ValidationError) -> str:
    keyword = error.validator
    if not isinstance(keyword, str):
        return "holds what is not allowed"  # a schema that is false; where it stands is not told
    if keyword in _NAMES_ONLY:
        return error.message
    wanted = canonical.encode_plain(error.validator_value).decode()
    return f"{_WORDS.get(keyword, f'must fit {keyword}')} {wanted}"


def _named(error: ValidationError) -> str:
    """Whose fault it is, where that is the name of a property, which no pointer leads to."""
    path = list(error.absolute_schema_path)
    is_name = path[-2:-1] == ["propertyNames"] and path[-3:-2] not in (["properties"], ["$defs"], ["definitions"])
    return f"the name {error.instance!r} " if is_name else ""
