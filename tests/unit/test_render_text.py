"""Text for a terminal: escaped, measured, cut, shortened."""

from __future__ import annotations

import unicodedata
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_ext.render import cut, duration, escape, first_line, payload, width

MOVES_OR_HIDES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
ANY_TEXT = st.text(
    st.characters(exclude_categories=()) | st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn"])
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, 100 %", "plain, 100 %"),
        ("two\nlines\r\tand", r"two\nlines\r\tand"),
        ("\x1b[2J\x07\x7f\x9b", r"\x1b[2J\x07\x7f\x9b"),
        ("safe\u202egnp.exe", r"safe\u202egnp.exe"),
        ("\ud800 \u2028 \U000e0001", r"\ud800 \u2028 \U000e0001"),
        ("größe 日本語　é", "größe 日本語　é"),
    ],
)
def test_what_a_terminal_would_obey_is_spelt_out(text: str, expected: str) -> None:
    assert expected == escape(text)


@given(ANY_TEXT)
def test_no_text_moves_the_cursor(text: str) -> None:
    """Whatever a name or a payload holds, what is left can only be shown."""
    assert set() == MOVES_OR_HIDES & set(map(unicodedata.category, escape(text)))
    assert escape(text, only_ascii=True).isascii()


def test_ascii_spells_out_letters_too_and_keeps_the_mark() -> None:
    assert r"gr\xf6\xdfe \U0001f600..." == escape("größe 😀…", only_ascii=True)


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0)])
def test_width_counts_columns_not_characters(text: str, columns: int) -> None:
    assert columns == width(text)


@pytest.mark.parametrize(
    ("columns", "expected"), [(6, "日本語"), (5, "日本…"), (4, "日…"), (2, "…"), (1, "…"), (0, "")]
)
def test_a_wide_character_is_never_cut_in_half(columns: int, expected: str) -> None:
    assert expected == cut("日本語", columns)


@given(ANY_TEXT.map(escape), st.integers(0, 40), st.booleans())
def test_what_is_cut_fits(text: str, columns: int, only_ascii: bool) -> None:
    """It fits, it begins like the text, and where something is missing the mark says so."""
    mark = "..." if only_ascii else "…"
    shown = cut(text, columns, only_ascii=only_ascii)
    assert width(shown) <= columns
    assert shown == text or shown.endswith(mark[:columns])


@pytest.mark.parametrize(
    ("text", "expected"), [("one", "one"), ("\n one\ntwo", "one …"), ("", ""), (" \n ", ""), ("a\u2028b", "a …")]
)
def test_the_first_line_says_when_there_are_more(text: str, expected: str) -> None:
    assert expected == first_line(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"kind": "approve", "ids": [1, 2]}, '{"kind":"approve","ids":[1,2]}'),
        ("a\x1b[2Jb\nc", r'"a\u001b[2Jb\nc"'),
        ("größe", '"größe"'),
        (None, "null"),
        ({1, 2}, '"<set>"'),
        ({"a": object()}, '{"a":"<object>"}'),
        ({("a",): 1}, "<dict>"),
    ],
)
def test_a_payload_is_one_line_of_json(value: object, expected: str) -> None:
    """A part that is no JSON is named by its type; its own `repr` is never run."""
    assert expected == payload(value)


def test_a_payload_that_holds_itself_is_named() -> None:
    value: list[object] = []
    value.append(value)
    assert "<list>" == payload(value)


def test_a_long_payload_is_cut_visibly() -> None:
    assert '{"a":["xxxxxxxxxxxx…' == payload({"a": ["x" * 10_000_000]}, columns=20)
    assert '"\\xf6\\xf6...' == payload("ö" * 100, columns=12, only_ascii=True)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 ms"),
        (0.0129, "12 ms"),
        (0.9999, "999 ms"),
        (3.29, "3.2 s"),
        (59.99, "59.9 s"),
        (123, "2 min 03 s"),
        (3720, "1 h 02 min"),
        (3 * 86400 + 4 * 3600 + 59, "3 d 04 h"),
        (-1.5, "-1.5 s"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, expected: str) -> None:
    assert expected == duration(timedelta(seconds=seconds))
