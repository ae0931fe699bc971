"""JSON Schemas: whether one is well formed, and one order for what has none.

No validator: what is looked at is what a model would be told wrongly, or what could never be checked. Unknown keywords
are let through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.engine.diagnostics import pointer

__all__ = ["faults", "ordered"]

_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_SCHEMA = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_SETS = ("enum", "required", "type")
"""Lists whose order means nothing."""


def faults(schema: Any, *, of_object: bool) -> list[tuple[str, str]]:
    """What is wrong with a schema: JSON Pointers into it, and sentences.

    Args:
        schema: The schema.
        of_object: Whether it must describe an object.
    """
    try:
        canonical.encode(schema, where="schema")
    except TypeError as error:
        return [("", str(error))]
    found = list(_faults(schema, "", schema))
    if of_object and isinstance(schema, dict) and schema.get("type", "object") != "object":
        found.append(("/type", "must be 'object', since arguments are passed by name"))
    return found


def _faults(schema: Any, at: str, root: Any) -> Iterator[tuple[str, str]]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield at, "a schema is an object, true or false"
        return
    yield from _own_faults(schema, at, root)
    for key, part in _parts(schema):
        yield from _faults(part, at + key, root)


def _own_faults(schema: Mapping[str, Any], at: str, root: Any) -> Iterator[tuple[str, str]]:
    kind = schema.get("type", "object")
    if not all(isinstance(each, str) and each in _TYPES for each in (kind if isinstance(kind, list) else [kind])):
        yield at + "/type", "is no type of JSON Schema"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        yield at + "/required", "must be a list of names"
    if "enum" in schema and not isinstance(schema["enum"], list):
        yield at + "/enum", "must be a list"
    for key in _NAMED:
        if not isinstance(schema.get(key, {}), dict):
            yield at + pointer(key), "must hold schemas by name"
    for key in _SCHEMAS:
        if not isinstance(schema.get(key, []), list):
            yield at + pointer(key), "must be a list of schemas"
    if "$ref" in schema and not _leads(schema["$ref"], root):
        yield at + "/$ref", "leads to nothing in this schema"


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas inside a schema, with the pointers to them."""
    for key in _SCHEMA:
        if key in schema:
            yield pointer(key), schema[key]
    for key in _SCHEMAS:
        if isinstance(schema.get(key), list):
            yield from ((pointer(key, n), part) for n, part in enumerate(schema[key]))
    for key in _NAMED:
        if isinstance(schema.get(key), dict):
            yield from ((pointer(key, name), part) for name, part in schema[key].items())


def _leads(reference: Any, root: Any) -> bool:
    """Only references into the schema itself are followed: nothing is fetched."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return False
    here = root
    for part in reference.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, dict) and key in here:
            here = here[key]
        else:
            return False
    return True


def ordered(schema: Any) -> Any:
    """The same schema, with lists that stand for sets in one order.

    Defaults that are sets are among them: not every pydantic writes these in one order in every process.
    """
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMA:
            found[key] = ordered(value)
        elif key in _SCHEMAS and isinstance(value, list):
            found[key] = [ordered(part) for part in value]
        elif key in _NAMED and isinstance(value, dict):
            found[key] = {name: ordered(part) for name, part in value.items()}
        elif isinstance(value, list) and (key in _SETS or (key == "default" and schema.get("uniqueItems") is True)):
            found[key] = sorted(value, key=canonical.encode)
        else:
            found[key] = value
    return found
