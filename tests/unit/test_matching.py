"""Matching: what is found is so, and the changes that values go through are found."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_ext.saver.matching import Match, matches

DICE = random.Random(5)
OLD = b"".join(b"<%d %s>" % (number, DICE.randbytes(40).hex().encode()) for number in range(200))
ITEM = len(OLD) // 200

CHANGES = {
    "nothing": (OLD, 0),
    "appended": (OLD + b"new" * 50, 150),
    "put in front": (b"new" * 50 + OLD, 150),
    "put in the middle": (OLD[:7000] + b"new" * 50 + OLD[7000:], 150),
    "changed in the middle": (OLD[:7000] + b"new" * 50 + OLD[7150:], 150),
    "changed in two places": (OLD[:300] + b"X" + OLD[301:7000] + b"Y" + OLD[7001:], 2),
    "taken from the front": (OLD[5 * ITEM :], 0),
    "taken from the middle": (OLD[:7000] + OLD[8000:], 0),
    "taken from the end": (OLD[:7000], 0),
    "a window that slid": (OLD[5 * ITEM :] + b"new" * 50, 150),
    "a count near the front, and appended": (OLD[:70] + b"9" + OLD[71:] + b"new" * 50, 151),
}


@pytest.mark.parametrize("change", CHANGES)
def test_s2_the_changes_of_a_step_are_found(change: str) -> None:
    """All but what is new, give or take what happens to be alike."""
    new, fresh = CHANGES[change]
    found = len(new) - sum(match.length for match in matches(OLD, new))

    assert fresh - 60 <= found <= fresh + 60


def test_s2_one_more_of_several_like_items_is_all_of_it_new() -> None:
    """Although its end could be that of the one before."""
    end, more = b"the end of an item, as of any other", DICE.randbytes(120)
    items = [DICE.randbytes(90) + end for _ in range(3)]
    old, new = b"2" + b"".join(items[:2]) + more, b"3" + b"".join(items) + more

    assert [(1, 1, 250), (251, 376, 120)] == matches(old, new)


def test_s2_bytes_that_have_nothing_in_common_do_not_match() -> None:
    assert [] == matches(OLD, DICE.randbytes(len(OLD)))
    assert [] == matches(OLD, b"")
    assert [] == matches(b"", OLD)


parts = st.lists(st.sampled_from([b"a" * 70, b"ab" * 40, b"b" * 65, b"", b"xyz", bytes(range(256))]), max_size=8)


@given(old=parts.map(b"".join), new=parts.map(b"".join))
def test_s2_what_matches_is_alike_and_in_order(old: bytes, new: bytes) -> None:
    """Whatever the bytes, repeated ones above all: parts are equal, ascend in both and do not overlap."""
    before = Match(0, 0, 0)
    for match in matches(old, new):
        stop = match.old_start + match.length
        assert old[match.old_start : stop] == new[match.start : match.start + match.length]
        assert match.old_start >= before.old_start + before.length
        assert match.start >= before.start + before.length
        assert stop <= len(old)
        before = match
    assert before.start + before.length <= len(new)
