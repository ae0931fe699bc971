"""Growing values: what of a large value is stored, if the channel had another one before.

A large value is stored as a *head*, the few bytes in which msgpack says how many follow, and a *body*. The head stands
in the value's place; the body lies in the *strand* of its channel, to which bytes are only ever added, and its *spans*
say where. So a value that was appended to shares the body of the one before it, and adds what is new:

    strand   ┌──────────── 0 ─────────────┬─ 900 ─┬─ 1000 ─┐
    before   [0, 900]
    appended [0, 1000]
    edited   [0, 400, 1000, 1050, 420, 1000]       the beginning, what is new, the end
    fork     [0, 900, 1050, 1150]
    counted  [0, 700, "de0021", 703, 1150]         a few bytes stand among the spans themselves

Bytes are compared and nothing else, so this is right for any serde; it saves nothing where each encoding differs from
the last throughout. A value that is mostly new is added whole. Parts that become too many are joined: bytes of the
small ones are added again, as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from langgraph_ext.saver.matching import Match, matches

__all__ = [
    "LARGE",
    "NOTHING",
    "Former",
    "Growing",
    "Part",
    "Spans",
    "add_part",
    "head_of",
    "is_large",
    "parts_in",
    "ranges_in",
    "size_of",
    "spans_after",
]

Spans = list[int | str]
"""`[start, stop, start, stop, …]`: bytes of a strand, one part of a body after the other. A few bytes stand between
them in hexadecimal digits: such as a count, behind which a value goes on as before."""

LARGE = 4096
"""Bytes from which on a value lies in a strand: as many as a page of the database holds."""

GREATEST_END = 2**32 - 1
"""Most bytes of a strand: values that would go beyond it are stored in rows."""

_MOST_PARTS, _FEW_PARTS = 16, 8
"""Parts that a body may be in, each of which costs a search when it is read; to how many more are joined."""

_FEW = 32
"""Bytes that may stand among the spans."""


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


def spans_after(former: Former | None, body: bytes, end: int, *, whole: bool = False) -> tuple[Spans, bytes] | None:
    """Where a body lies, and what has to be added to its strand for that.

    Args:
        former: A value of the same strand, if there is one.
        body: The new value's.
        end: Of the strand.
        whole: Whether no bytes may stand among the spans.

    Returns:
        Its spans, and the bytes that belong at `end`; None if the strand cannot take them.
    """
    stretches = [] if former is None else _stretches(former, body)
    if len(stretches) > _MOST_PARTS:
        _join(stretches)
    spans: Spans = []
    fresh: list[bytes] = []
    for stretch in stretches or [Stretch(0, len(body), None)]:
        if stretch.part is not None:
            add_part(spans, stretch.part)
            continue
        new = body[stretch.start : stretch.stop]
        if len(new) <= _FEW and stretch.stop < len(body) and not whole:
            add_part(spans, new)
        else:
            add_part(spans, (end, end + len(new)))
            fresh.append(new)
            end += len(new)
    return None if end > GREATEST_END else (spans, b"".join(fresh))


class Stretch(NamedTuple):
    """Bytes of a body, and which part of its former they are; None if they are new."""

    start: int
    stop: int
    part: Part | None


def _stretches(former: Former, body: bytes) -> list[Stretch]:
    """A body of what its former has, and of what is new; nothing, if it is mostly new."""
    if body.startswith(former.body):
        found = [Match(0, 0, len(former.body))]
    else:
        found = matches(former.body, body)
        if 2 * sum(match.length for match in found) < len(body):
            return []
    stretches: list[Stretch] = []
    at = 0
    for match in found:
        if at < match.start:
            stretches.append(Stretch(at, match.start, None))
        at = match.start
        for part in _cut(former.spans, match.old_start, match.old_start + match.length):
            size = len(part) if isinstance(part, bytes) else part[1] - part[0]
            stretches.append(Stretch(at, at + size, part))
            at += size
    if at < len(body):
        stretches.append(Stretch(at, len(body), None))
    return stretches


def _join(stretches: list[Stretch]) -> None:
    """Have a few of them: neighbours that are small are made one, which is new."""
    while len(stretches) > _FEW_PARTS:
        pairs = ((after.stop - before.start, at) for at, (before, after) in enumerate(pairwise(stretches)))
        _, at = min(pairs)
        stretches[at : at + 2] = [Stretch(stretches[at].start, stretches[at + 1].stop, None)]


Part = tuple[int, int] | bytes
"""Where a part of a body lies in its strand, or the part itself."""


def add_part(spans: Spans, part: Part) -> None:
    """Add a part behind the others; to the last one, if that ends where this begins."""
    last = spans[-1] if spans else None
    if isinstance(part, bytes):
        if isinstance(last, str):
            spans[-1] = last + part.hex()
        elif part:
            spans.append(part.hex())
    elif part[0] < part[1]:
        if last == part[0]:
            spans[-1] = part[1]
        else:
            spans += part


def _cut(spans: Spans, start: int, stop: int) -> Iterator[Part]:
    """The parts of a part of a body."""
    at = 0
    for part in parts_in(spans):
        size = len(part) if isinstance(part, bytes) else part[1] - part[0]
        begin, end = max(start - at, 0), min(stop - at, size)
        if begin < end:
            yield part[begin:end] if isinstance(part, bytes) else (part[0] + begin, part[0] + end)
        at += size


def parts_in(spans: Spans) -> Iterator[Part]:
    """The parts of a body, in their order."""
    left = iter(spans)
    for each in left:
        if isinstance(each, str):
            yield bytes.fromhex(each)
        else:
            stop = next(left)
            assert isinstance(stop, int), "a span has an end"
            yield each, stop


def ranges_in(spans: Spans) -> list[tuple[int, int]]:
    """Where a body lies in its strand."""
    return [part for part in parts_in(spans) if isinstance(part, tuple)]


def size_of(spans: Spans) -> int:
    """Bytes of a body."""
    return sum(len(part) if isinstance(part, bytes) else part[1] - part[0] for part in parts_in(spans))
