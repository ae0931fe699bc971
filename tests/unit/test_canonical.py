"""Canonical JSON: one value, one text; what cannot be written that way is refused by name."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraph_ext.canonical import decode, digest, encode, encode_plain

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=20
)

REFUSED: dict[str, tuple[Any, str]] = {
    "NaN": ({"a": [1, {"b": math.nan}]}, r"value\.a\[1\]\.b is nan"),
    "infinity": ({"a": (0, math.inf)}, r"value\.a\[1\] is inf"),
    "minus infinity": (-math.inf, r"value is -inf"),
    "NaN beside a null": ({"a": None, "b": math.nan}, r"value\.b is nan"),
    "NaN in text that says null": (["null", math.nan], r"value\[1\] is nan"),
    "an object": ({"a": {"b": object()}}, r"value\.a\.b is of type object"),
    "bytes": ([b"x"], r"value\[0\] is of type bytes"),
    "a set": ({"a": {1}}, r"value\.a is of type set"),
    "a date": ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, r"value\.a is of type datetime"),
    "a number too big": ({"a": 2**64}, r"value\.a is of type int"),
    "a number too small": ([-(2**63) - 1], r"value\[0\] is of type int"),
    "half a character": ({"a": "\ud800"}, r"value\.a is of type str"),
    "half a character as key": ({"\udfff": 1}, "value"),
    "a key that is of type number": ({"a": {1: "one"}}, r"value\.a has the key 1"),
    "a key that is None": ({None: 1}, r"value has the key None"),
}


@settings(deadline=None)
@given(VALUES)
def test_a_value_is_read_back_as_it_was_written(value: Any) -> None:
    """Both forms, to the type and the last digit; tuples come back as lists."""
    for written in (encode(value), encode_plain(value)):
        assert repr(value) == repr(decode(written)) or value == decode(written)
    assert json.loads(encode(value)) == decode(encode(value))


@settings(deadline=None)
@given(VALUES)
def test_writing_again_what_was_read_gives_the_same_text(value: Any) -> None:
    assert encode(value) == encode(decode(encode(value)))


@settings(deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.randoms())
def test_the_order_of_keys_makes_no_difference(value: dict[str, Any], chance: Any) -> None:
    """Two dicts that are equal are one text, at every depth."""
    keys = list(value)
    chance.shuffle(keys)

    assert encode({"outer": value}) == encode({"outer": {key: value[key] for key in keys}})


def test_keys_are_sorted_by_code_point_and_nothing_stands_between() -> None:
    assert '{"A":1,"a":[1,2.5,null,true],"z":{"":0,"é":"é"},"ﬀ":2,"😀":3}'.encode() == encode(
        {"😀": 3, "ﬀ": 2, "z": {"é": "é", "": 0}, "a": (1, 2.5, None, True), "A": 1}
    )


def test_the_plain_form_keeps_the_order_of_keys() -> None:
    assert b'{"b":1,"a":{"d":2,"c":3}}' == encode_plain({"b": 1, "a": {"d": 2, "c": 3}})


def test_integers_are_exact_to_64_bits() -> None:
    values = [2**63 - 1, -(2**63), 2**64 - 1, 2**53 + 1]

    assert values == decode(encode(values))


@pytest.mark.parametrize("write", [encode, encode_plain])
@pytest.mark.parametrize("case", REFUSED)
def test_what_json_cannot_hold_is_refused_with_its_path(write: Any, case: str) -> None:
    """Never degraded to null or text: the error says where it stands."""
    value, message = REFUSED[case]
    with pytest.raises(TypeError, match=message):
        write(value)


def test_the_path_begins_with_the_name_the_caller_gave() -> None:
    with pytest.raises(TypeError, match=r"^metadata\.a"):
        encode({"a": {1, 2}}, where="metadata")


@pytest.mark.parametrize("write", [encode, encode_plain])
def test_a_value_that_holds_itself_is_refused(write: Any) -> None:
    """And one that is nested deeper than JSON parsers go: an error, no crash and no endless loop."""
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for value in (circle, {"a": circle}, deep):
        with pytest.raises(TypeError, match="nested"):
            write(value)


def test_nesting_is_no_error_as_long_as_it_can_be_written() -> None:
    deep: Any = None
    for _ in range(200):
        deep = {"a": [deep]} if len(encode(deep)) % 2 else [deep]

    assert deep == decode(encode(deep))


def test_a_digest_is_sha_256_in_hex() -> None:
    """`sha256:` and 64 digits (the test vector of FIPS 180-2 for "abc")."""
    assert "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" == digest(b"abc")
