"""JSON Schemas: whether one is well formed, and one order for what has none."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.engine.json_schemas import faults, ordered

ORDERED: dict[str, tuple[Any, Any]] = {
    "required": ({"required": ["b", "a"]}, {"required": ["a", "b"]}),
    "type and enum": (
        {"type": ["string", "null"], "enum": ["b", None]},
        {"type": ["null", "string"], "enum": ["b", None]},
    ),
    "a default that is a set": (
        {"default": ["b", "a"], "uniqueItems": True},
        {"default": ["a", "b"], "uniqueItems": True},
    ),
    "a default that is a list": ({"default": ["b", "a"]}, {"default": ["b", "a"]}),
    "inside of others": (
        {"properties": {"x": {"anyOf": [{"items": {"required": ["b", "a"]}}]}}},
        {"properties": {"x": {"anyOf": [{"items": {"required": ["a", "b"]}}]}}},
    ),
    "a property that is named as a keyword": (
        {"properties": {"required": {"enum": [2, 1]}}, "anyOf": [{"const": 2}, {"const": 1}]},
        {"properties": {"required": {"enum": [1, 2]}}, "anyOf": [{"const": 2}, {"const": 1}]},
    ),
    "values are no schemas": ({"const": {"required": ["b", "a"]}}, {"const": {"required": ["b", "a"]}}),
    "true": (True, True),
}


@pytest.mark.parametrize("case", ORDERED)
def test_c01_lists_that_stand_for_sets_get_one_order_and_others_keep_theirs(case: str) -> None:
    schema, expected = ORDERED[case]

    assert expected == ordered(schema)


CIRCLE: dict[str, Any] = {}
CIRCLE["properties"] = {"again": CIRCLE}

FAULTS: list[tuple[Any, list[str]]] = [
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, []),
    ({"$ref": "#"}, []),
    ({"anyOf": [{"type": "string"}, {"$ref": "#/anyOf/0"}]}, []),
    ({"$ref": "https://example.com/schema"}, ["/$ref"]),
    ({"$ref": "#/anyOf/7", "anyOf": [True]}, ["/$ref"]),
    ({"properties": []}, ["/properties"]),
    ({"anyOf": {}}, ["/anyOf"]),
    ({"items": 3}, ["/items"]),
    ({"enum": "a"}, ["/enum"]),
    ({"required": [1]}, ["/required"]),
    ({"type": ["string", "text"]}, ["/type"]),
    ({"properties": {"a/b": {"items": {"type": 3}}}}, ["/properties/a~1b/items/type"]),
    ({"default": float("nan")}, [""]),
    (CIRCLE, [""]),
]


@pytest.mark.parametrize(("schema", "places"), FAULTS)
def test_c01_what_is_no_schema_is_told_with_its_place(schema: Any, places: list[str]) -> None:
    assert places == [at for at, _ in faults(schema, of_object=False)]


def test_c01_arguments_are_an_object() -> None:
    assert ["/type"] == [at for at, _ in faults({"type": "array"}, of_object=True)]
