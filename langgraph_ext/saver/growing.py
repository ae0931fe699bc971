"""Growing values: what of a large value is stored, if the channel had another one before.

A large value is stored as a *head*, the few bytes in which msgpack says how many follow, and a *body*. The head stands
in the value's place; the body lies in the *strand* of its channel, to which bytes are only ever added, and its *spans*
say where. So a value that was appended to shares the body of the one before it, and adds what is new:

    strand   ┌──────────── 0 ─────────────┬─ 900 ─┬─ 1000 ─┐
    before   [0, 900]
    appended [0, 1000]
    edited   [0, 400, 1000, 1050, 420, 1000]       the beginning, what is new, the end
    fork     [0, 900, 1050, 1150]

Bytes are compared and nothing else, so this is right for any serde; it saves nothing where each encoding differs from
the last throughout. A value whose body would be in too many parts, or that is mostly new, is added whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from langgraph_ext.saver.matching import Match, matches

__all__ = [
    "LARGE",
    "NOTHING",
    "Former",
    "Growing",
    "Spans",
    "end_with",
    "head_of",
    "is_large",
    "pairs",
    "size_of",
    "spans_after",
]

Spans = list[int]
"""`[start, end, start, end, …]`: bytes of a strand, one part of a body after the other."""

LARGE = 4096
"""Bytes from which on a value lies in a strand: as many as a page of the database holds."""

GREATEST_END = 2**32 - 1
"""Most bytes of a strand: values that would go beyond it are stored in rows."""

_MOST_SPANS = 16
"""Each costs a search when the value is read."""


class Former(NamedTuple):
    """A value that the channel had before."""

    body: bytes
    spans: Spans


class Growing(Protocol):
    """A large value, and where its body will lie."""

    @property
    def head(self) -> bytes: ...  # noqa: D102
    @property
    def spans(self) -> Spans: ...  # noqa: D102


NOTHING: Mapping[Any, Any] = MappingProxyType({})


def is_large(data: object) -> bool:
    """Whether an encoding belongs in a strand."""
    return type(data) is bytes and len(data) >= LARGE


def head_of(kind: str, data: bytes) -> int:
    """Bytes of an encoding's head. Any number would do; this one finds what was appended."""
    if kind != "msgpack":
        return 0
    outer = _EXTENSIONS.get(data[0], 0)
    return outer + _CONTAINERS.get(data[outer], 0)


_EXTENSIONS = {0xC7: 3, 0xC8: 4, 0xC9: 6, **dict.fromkeys(range(0xD4, 0xD9), 2)}
"""Of msgpack's extension types, by their first byte: bytes before what they wrap."""

_CONTAINERS = {
    **dict.fromkeys(range(0x80, 0xC0), 1),  # short maps, arrays and text
    **{0xC4: 2, 0xC5: 3, 0xC6: 5},  # bytes
    **{0xD9: 2, 0xDA: 3, 0xDB: 5},  # text
    **{0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5},  # arrays, maps
}
"""Of what msgpack says the length of, by its first byte: bytes in which it does."""


def spans_after(former: Former | None, body: bytes, end: int) -> tuple[Spans, bytes] | None:
    """Where a body lies, and what has to be added to its strand for that.

    Args:
        former: A value of the same strand, if there is one.
        body: The new value's.
        end: Of the strand.

    Returns:
        Its spans, and the bytes that belong at `end`; None if the strand cannot take them.
    """
    spans, fresh = [end, end + len(body)], body
    if former is not None:
        if body.startswith(former.body):
            found = [Match(0, 0, len(former.body))]
        else:
            found = matches(former.body, body)
            if 2 * sum(match.length for match in found) < len(body):
                found = []
        composed, added = _composed(former, body, found, end)
        if len(composed) <= 2 * _MOST_SPANS:
            spans, fresh = composed, added
    return None if end + len(fresh) > GREATEST_END else (spans, fresh)


def _composed(former: Former, body: bytes, found: list[Match], end: int) -> tuple[Spans, bytes]:
    """A body of what its former has, and of what is new."""
    spans: Spans = []
    fresh: list[bytes] = []
    at = 0
    for match in [*found, Match(0, len(body), 0)]:
        if match.start > at:
            fresh.append(body[at : match.start])
            end = end_with(spans, end, end + match.start - at)
        for start, stop in _parts_of(former.spans, match.old_start, match.old_start + match.length):
            end_with(spans, start, stop)
        at = match.start + match.length
    return spans, b"".join(fresh)


def end_with(spans: Spans, start: int, stop: int) -> int:
    """Add a span behind the others, or to the last one if that ends there; returns where it stops."""
    if spans and spans[-1] == start:
        spans[-1] = stop
    else:
        spans += start, stop
    return stop


def _parts_of(spans: Spans, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The spans of a part of a body."""
    at = 0
    for first, last in pairs(spans):
        begin, end = max(start - at, 0), min(stop - at, last - first)
        if begin < end:
            yield first + begin, first + end
        at += last - first


def pairs(spans: Spans) -> Iterator[tuple[int, int]]:
    """Each span's start and end."""
    ends = iter(spans)
    return zip(ends, ends, strict=True)


def size_of(spans: Spans) -> int:
    """Bytes of a body."""
    return sum(spans[1::2]) - sum(spans[::2])
