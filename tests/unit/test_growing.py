"""Growing values: heads, and where bodies lie."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver.bodies import Bodies, Known
from langgraph_ext.saver.growing import GREATEST_END, Former, head_of, parts_in, size_of, spans_after

TEXT = "x" * 200

GROWN: dict[str, tuple[Any, Any]] = {
    "list": ([TEXT] * 15, [TEXT] * 16),
    "long list": ([TEXT] * 0xFFFF, [TEXT] * 0x10000),
    "messages": ([HumanMessage(TEXT, id="1")] * 20, [HumanMessage(TEXT, id="1")] * 21),
    "dict": ({str(n): TEXT for n in range(20)}, {str(n): TEXT for n in range(400)}),
    "text": (TEXT, TEXT * 400),
    "bytes": (b"x" * 9000, b"x" * 9001),
    "bytearray": (bytearray(b"x" * 9000), bytearray(b"x" * 9001)),
    "snapshot": (_DeltaSnapshot([TEXT] * 15), _DeltaSnapshot([TEXT] * 700)),
    "snapshot of a dict": (_DeltaSnapshot({"a": TEXT}), _DeltaSnapshot({"a": TEXT, "b": TEXT * 400})),
}


@pytest.mark.parametrize("name", GROWN)
def test_s2_behind_its_head_a_value_begins_with_what_it_was(name: str) -> None:
    """However many bytes msgpack takes to say how long it is."""
    (kind, old), (_, new) = (JsonPlusSerializer().dumps_typed(value) for value in GROWN[name])

    assert new[head_of(kind, new) :].startswith(old[head_of(kind, old) :])
    assert head_of(kind, new) <= 11


def test_s2_of_other_serializers_nothing_is_known() -> None:
    assert head_of("mine", b"\xdc\x00\x01" + bytes(9)) == 0


class Strand:
    """Keeps bytes as strands do, and reads them back."""

    def __init__(self) -> None:
        self.data = b""
        self.former: Former | None = None

    def add(self, body: bytes) -> int:
        """A value more; how many bytes it added."""
        found = spans_after(self.former, body, len(self.data))
        assert found is not None
        spans, fresh = found
        self.data += fresh
        parts = list(parts_in(spans))
        assert body == b"".join(part if isinstance(part, bytes) else self.data[slice(*part)] for part in parts)
        assert (size_of(spans), True) == (len(body), len(parts) <= 16)
        self.former = Former(body, spans)
        return len(fresh)


bodies = st.lists(st.binary(min_size=90, max_size=90), max_size=3).map(b"".join)


@given(changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 300), bodies), max_size=30))
def test_s2_a_body_is_what_its_spans_hold(changes: list[tuple[int, int, bytes]]) -> None:
    """Whatever was cut out and put in before, and in how many parts it is."""
    strand, body = Strand(), bytes(1000)
    strand.add(body)
    for at, cut, new in changes:
        body = body[:at] + new + body[at + cut :]
        strand.add(body)


def test_s2_parts_that_become_too_many_are_joined() -> None:
    """So that a value is never read from more than a few; and edits near its end do not have its beginning added."""
    strand, dice = Strand(), random.Random(3)
    body = bytearray(dice.randbytes(50_000))
    added = [strand.add(bytes(body))]
    for _ in range(100):
        at = dice.randrange(45_000, 49_000)
        body[at : at + 100] = dice.randbytes(100)
        added.append(strand.add(bytes(body)))

    assert 50_000 == max(added)
    assert sum(added[1:]) < 100 * 1_500


def test_s2_a_count_in_the_middle_takes_no_part_of_the_strand() -> None:
    """It stands among the spans, so that what is appended behind it each time makes one part with what was before."""
    strand = Strand()
    items = [b"%04d " % n * 20 for n in range(100)]

    def body(n: int) -> bytes:
        return b"-head-" * 30 + b"%d" % n + b"".join(items[:n]) + b"-end-" * 100

    strand.add(body(20))
    for n in range(21, 100):
        assert 100 == strand.add(body(n))
        assert strand.former is not None
        assert 6 > len(list(parts_in(strand.former.spans)))


def test_s2_what_is_mostly_new_is_added_whole() -> None:
    strand = Strand()
    strand.add(b"a" * 1000)

    assert 3000 == strand.add(b"b" * 1100 + b"a" * 900 + b"b" * 1000)
    assert [1000, 4000] == (strand.former.spans if strand.former else [])


def test_s2_a_strand_that_is_full_takes_no_more() -> None:
    """Such values are stored in rows."""
    former = Former(b"a" * 100, [0, 100])

    assert ([0, 100, GREATEST_END - 1, GREATEST_END], b"b") == spans_after(former, b"a" * 100 + b"b", GREATEST_END - 1)
    assert spans_after(former, b"a" * 100 + b"bb", GREATEST_END - 1) is None


def known(size: int) -> Known:
    return Known(Former(bytes(size), [0, size]), 1, size)


def test_s2_what_is_remembered_is_bounded() -> None:
    """Those used longest ago go first."""
    some = Bodies(10_000)
    for number in range(50):
        some.remember("t", "", {str(number): known(1000)})
        some.find("t", "", "0")
        assert some.held_bytes <= 10_000

    assert some.find("t", "", "0") is not None
    assert [str(number) for number in range(45, 50)] == [
        name for name in map(str, range(1, 50)) if some.find("t", "", name) is not None
    ]
    some.remember("t", "", {"0": known(20_000)})
    assert some.find("t", "", "0") is None


@pytest.mark.parametrize("wrong", [-1, 1.5, "64MB", None, True])
def test_s2_a_bound_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="growing_memory_bytes"):
        Bodies(wrong)
