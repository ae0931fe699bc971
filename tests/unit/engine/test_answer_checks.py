"""Final answers: read as one JSON value, against the output schema."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from langgraph_ext import canonical
from langgraph_ext.engine.answer_checks import DEEPEST, checked_answer, feedback

ROOT = Path(__file__).resolve().parents[3]


class Line(BaseModel):
    item: str
    count: int


class Order(BaseModel):
    lines: list[Line]
    paid: bool = False
    rate: float | None = None


class Bad(BaseModel):
    a: float

    @field_validator("a")
    @classmethod
    def broken(cls, value: float) -> float:
        return float("nan") if value else 1 / value


class Loose(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def as_text(cls, value: int) -> Any:
        return str(value)


SCHEMA = Order.model_json_schema()
BOTH = pytest.mark.parametrize("output_type", [None, Order], ids=["schema", "model"])
GOOD = '{"lines": [{"item": "tea", "count": 2}]}'

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text() | st.sampled_from(["lines", "item", "count"]), part),
)


def told(text: str, schema: Any = SCHEMA, output_type: type[BaseModel] | None = None) -> list[str]:
    """The diagnostics of an answer that does not fit."""
    value, diagnostics = checked_answer(text, schema, output_type)
    assert value is None
    assert diagnostics
    return diagnostics


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_e16_an_answer_that_fits_a_schema_is_the_value_as_it_is() -> None:
    assert ({"lines": [{"item": "tea", "count": 2}]}, []) == checked_answer(GOOD, SCHEMA, None)


def test_e16_a_model_decides_and_writes_the_value() -> None:
    """What pydantic coerces and fills in is stored, although the schema alone would refuse it."""
    text = '{"lines": [{"item": "tea", "count": "2"}]}'

    value = {"lines": [{"item": "tea", "count": 2}], "paid": False, "rate": None}
    assert (value, []) == checked_answer(text, SCHEMA, Order)
    assert ['/lines/0/count: must be of type "integer"'] == told(text)


def test_e16_what_a_validator_makes_of_the_answer_is_the_value() -> None:
    """Also where it is of another type than its field, of which pydantic would warn."""
    assert ({"a": "1"}, []) == checked_answer('{"a": 1}', None, Loose)


def test_e16_without_a_schema_the_answer_is_its_text() -> None:
    assert (GOOD, []) == checked_answer(GOOD, None, None)
    assert told("half of a pair: \ud800", None)


@BOTH
@pytest.mark.parametrize("text", ["```json\n{}\n```", "\n```json\r\n{}```\n ", "```json {} ```", " {} "])
def test_e16_an_answer_may_stand_in_one_fence(text: str, output_type: type[BaseModel] | None) -> None:
    assert checked_answer(GOOD, SCHEMA, output_type) == checked_answer(text.replace("{}", GOOD), SCHEMA, output_type)


def test_e16_a_fence_inside_of_the_answer_is_text() -> None:
    value = {"lines": [], "more": "```json\n{}\n```"}
    assert (value, []) == checked_answer(f"```json\n{json.dumps(value)}\n```", SCHEMA, None)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here it is: {}",
        "{}\nAnything else?",
        "{}{}",
        "```json\n{}\n```\n```json\n{}\n```",
        "Here it is:\n```json\n{}\n```",
        "```\n{}\n```",
        "```json5\n{}\n```",
        "```json5\n```",
        '{"lines": [',
    ],
)
def test_e16_an_answer_is_one_json_value_and_nothing_beside_it(text: str, output_type: type[BaseModel] | None) -> None:
    """It is never put together from parts, nor looked for in other text."""
    [only] = told(text.replace("{}", GOOD), SCHEMA, output_type)
    assert only.startswith("the answer: is not one JSON value: ")


@BOTH
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("NaN", "the answer: is not one JSON value: "),
        ("-Infinity", "the answer: is not one JSON value: "),
        ("1e999", "the answer: is not one JSON value: "),
        ("9" * 5000, "the answer: is not one JSON value: "),
        (str(2**64), "/rate: it is of type int, which JSON cannot hold"),
        ("-" + "9" * 300, "/rate: it is of type int, which JSON cannot hold"),
    ],
)
def test_e16_what_cannot_be_stored_is_refused(number: str, expected: str, output_type: type[BaseModel] | None) -> None:
    """A large integer is not rounded, and NaN is not null."""
    [only] = told(f'{{"lines": [], "rate": {number}}}', SCHEMA, output_type)
    assert only.startswith(expected)


def test_e16_what_a_model_writes_must_be_storable_too() -> None:
    assert ["/a: it is nan, which JSON cannot hold"] == told('{"a": 1}', None, Bad)


def test_e16_a_validator_that_breaks_is_told() -> None:
    assert ["the answer: cannot be checked: ZeroDivisionError"] == told('{"a": 0}', None, Bad)


def test_e16_nesting_has_a_bound_for_every_caller() -> None:
    """As deep as it may be, whoever asks; deeper is told, and nothing runs out of stack."""
    assert [] == checked_answer(nested(DEEPEST), {"type": "array", "items": {"$ref": "#"}}, None).diagnostics
    for levels in (DEEPEST + 1, 1000):
        assert ["the answer: is nested deeper than 64 levels"] == told(nested(levels), True)
    [only] = told(nested(100_000), True)
    assert "depth limit exceeded" in only


@BOTH
def test_e16_diagnostics_are_sorted_and_at_most_twenty(output_type: type[BaseModel] | None) -> None:
    """Each names its place in the answer; the first twenty by pointer are told."""
    lines = [{"item": n, "count": "x"} for n in range(30)]

    found = told(json.dumps({"paid": "?", "lines": lines}), SCHEMA, output_type)

    assert 20 == len(found)
    places = sorted([f"/lines/{n}/{key}" for n in range(30) for key in ("item", "count")] + ["/paid"])
    assert places[:20] == [each.partition(": ")[0] for each in found]


def test_e16_a_diagnostic_has_at_most_512_characters() -> None:
    [only] = told(json.dumps({"a" * 600: 1}), {"additionalProperties": False})
    assert (512, "…") == (len(only), only[-1])


DRAFT_4 = "http://json-schema.org/draft-04/schema#"
CASES: list[tuple[Any, Any, list[str]]] = [
    ({"required": ["b", "a"]}, {"b": 1}, ["the answer: 'a' is a required property"]),
    ({"minimum": 3, "multipleOf": 2}, 1, ["the answer: must fit minimum 3", "the answer: must fit multipleOf 2"]),
    ({"properties": {"a/b": {"enum": [1, "x"]}}}, {"a/b": 2}, ['/a~1b: must be one of [1,"x"]']),
    ({"properties": {"a": False}}, {"a": 1}, ["the answer: holds what is not allowed"]),
    ({"propertyNames": {"enum": ["a"]}}, {"b": 1}, ["the answer: the name 'b' must be one of [\"a\"]"]),
    ({"properties": {"propertyNames": {"const": 1}}}, {"propertyNames": "s"}, ["/propertyNames: must be 1"]),
    ({"anyOf": [{"type": "null"}, {"const": 2}]}, 1, ['the answer: must fit one of [{"type":"null"},{"const":2}]']),
    ({"anyOf": [False, {"minimum": 2}]}, 1, ["the answer: must fit minimum 2"]),
    ({"anyOf": [False]}, 1, ["the answer: must fit one of [false]"]),
    ({"oneOf": [{"minimum": 1}, {}]}, 3, ['the answer: must fit exactly one of [{"minimum":1},{}]']),
    ({"type": "object", "properties": {"secret": {"not": {}}}}, {"secret": "s3cret"}, ["/secret: must not fit {}"]),
    ({"$schema": DRAFT_4, "maximum": 3, "exclusiveMaximum": True}, 3, ["the answer: must fit maximum 3"]),
    ({"$schema": "https://example.com/other", "prefixItems": [{"type": "null"}]}, [1], ['/0: must be of type "null"']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_e16_diagnostics_say_what_is_wanted_and_not_what_was_given(
    schema: Any, value: Any, expected: list[str]
) -> None:
    assert expected == told(json.dumps(value), schema)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int
    name: str


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Cat | Dog | None


@pytest.mark.parametrize("output_type", [None, Owner])
def test_e16_of_alternatives_the_faults_of_the_one_that_was_meant_are_told(output_type: Any) -> None:
    """All of them at once, since each correction costs a loop; places are those in the answer, not in the schema."""
    found = told('{"pet": {"kind": "cat", "lives": "many"}}', Owner.model_json_schema(), output_type)

    assert any(each.startswith("/pet/lives: ") for each in found)
    assert any("name" in each and ("required" in each) for each in found)
    assert {"", "/pet", "/pet/lives", "/pet/name", "/pet/kind"} >= {each.partition(": ")[0] for each in found}


UNUSABLE: list[Any] = [
    {"$ref": "#"},
    {"$ref": "#/nowhere"},
    {"minimum": "1"},
    {"$id": "http://[", "$ref": "x"},
    {"patternProperties": {"(": {}}},
    {"default": {1, 2}},
    "no schema",
]


@pytest.mark.parametrize("schema", UNUSABLE)
def test_e16_a_schema_that_cannot_be_used_is_told(schema: Any) -> None:
    """Nothing is let through unseen."""
    [only] = told('{"a": 1}', schema)
    assert only.startswith("the answer: cannot be checked, because its schema cannot be used: ")


@pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-07/schema#", None])
def test_a_pattern_that_python_cannot_read_is_not_judged(dialect: str | None) -> None:
    schema: dict[str, Any] = {"$schema": dialect} if dialect else {}
    schema |= {"properties": {"a": {"pattern": r"^\p{L}+$"}, "b": {"pattern": "^b"}, "c": {"$ref": "#"}}}

    assert ['/b: must fit pattern "^b"', '/c/b: must fit pattern "^b"'] == told(
        '{"a": "x", "b": "a", "c": {"a": "x", "b": "a"}}', schema
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://example.com/schema"},
        {"$dynamicRef": "https://example.com/schema#a"},
        {"properties": {"a": {"$id": "http://example.com/a/", "$ref": "b"}}},
        {"$schema": "http://example.com/dialect", "properties": {"a": {"$ref": "http://example.com/schema"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": "//example.com/x"}]},
    ],
)
def test_no_schema_makes_anything_be_fetched(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """References are followed inside of the schema only."""
    asked: list[Any] = []

    def getaddrinfo(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        raise OSError("the network is closed")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    [only] = told('{"a": 1}', schema)
    assert only.endswith(": a reference leads out of it, or to nothing")
    assert [] == asked


@pytest.mark.parametrize("statement", ["import langgraph_ext", "from langgraph_ext import LedgerSaver"])
def test_whoever_has_no_agents_does_not_import_jsonschema(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint({{'jsonschema', 'referencing'}} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "set()" == ran.stdout.strip()


def test_e16_every_process_tells_the_same() -> None:
    """Whatever order its sets have."""
    code = """
from langgraph_ext.engine.answer_checks import checked_answer
text = '{%s}' % ','.join('"k%d": [1, {"x": %d}]' % (n, n) for n in range(40))
schema = {"additionalProperties": {"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}, "required": ["z", "y"]}
print(checked_answer(text, schema, None).diagnostics)
print(checked_answer('{}', {"properties": {"k%d" % n: {"minimum": "1"} for n in range(9)}}, None).diagnostics)
"""
    seen = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        seen.add(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=env, text=True, timeout=60))
    assert 1 == len(seen)


@given(text=st.text() | st.text(alphabet='{}[]",:1eE-. \n`json\\u') | any_json.map(json.dumps))
def test_e16_any_text_is_the_value_or_told_within_bounds(text: str) -> None:
    """Nothing a model says breaks the check; what is given out can be stored."""
    for wanted in [(SCHEMA, None), (SCHEMA, Order), (True, None), (None, None)]:
        value, diagnostics = checked_answer(text, *wanted)
        assert diagnostics == checked_answer(text, *wanted).diagnostics
        assert len(diagnostics) <= 20
        assert all(len(each) <= 512 for each in diagnostics)
        assert value is None or not diagnostics
        canonical.encode([value, diagnostics, feedback(diagnostics)])


@given(value=any_json)
def test_e16_what_json_can_hold_is_given_back_exactly(value: Any) -> None:
    found = checked_answer(json.dumps(value), True, None)
    assert found.diagnostics or canonical.encode(found.value) == canonical.encode(value)


keywords = st.sampled_from(
    ["type", "enum", "const", "minimum", "items", "properties", "required", "anyOf", "oneOf", "not", "pattern", "$ref"]
) | st.sampled_from(
    ["additionalProperties", "propertyNames", "$id", "$defs", "uniqueItems", "multipleOf", "if", "then", "$schema"]
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["#", "#/$defs/a", "string", "a", "(", "http://["]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(keywords | st.just("a"), part, max_size=4),
)


@given(schema=st.dictionaries(keywords, anything, max_size=5), value=anything)
def test_no_schema_breaks_the_check(schema: dict[str, Any], value: Any) -> None:
    value_or_none, diagnostics = checked_answer(json.dumps(value), schema, None)
    assert diagnostics or value_or_none == value


def test_e16_feedback_tells_all_and_asks_for_a_whole_answer() -> None:
    assert (
        "The answer does not fit:\n- /a: is wrong\n- /b: too\n"
        "Answer again, with one JSON value that fits, and nothing beside it."
    ) == feedback(["/a: is wrong", "/b: too"])
