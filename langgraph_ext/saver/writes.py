"""Pending writes: one row a `put_writes` call, merged into slots when they are read.

A write's slot is (task, position in its call), but for LangGraph's special channels, which have fixed slots. A regular
slot keeps the first write it was given, a special slot the newest, also when one call mixes both (rule S3;
InMemorySaver's rule). A call's row keeps its writes in their order of entry:

    body = [[channel, type, length], …]      data = the values, end to end
           [channel, type, head, spans]      of a large value that goes on with what its channel held (growing.py)

Two kinds of writes are stored and not shown, for LangGraph would take them for what they are not (rule S12):

- an answer (`__resume__` of the null task) that a task has taken since: LangGraph would give it to the next question;
- what a graph's failing task wrote beside its `__error__` (a router raised): LangGraph would take the task for finished
  and lose its branch. A program that calls `put_writes` itself means what it writes: there, nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.types import ERROR, RESUME

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver.growing import NOTHING, Growing, Spans, is_large
from langgraph_ext.saver.host import CONTROL_CHANNELS, ERROR_SOURCE_NODE, NULL_TASK
from langgraph_ext.saver.sealing import Seals

__all__ = [
    "GROWN",
    "LargeWrites",
    "answers_in",
    "are_partial",
    "are_regular",
    "encode_writes",
    "grown_in",
    "kinds_in",
    "large_in",
    "lay_out",
    "merge",
    "sealed_again",
    "spans_in",
    "taken_answers",
    "without_answers",
]

Encoded = tuple[str, str, bytes]
"""`(channel, type, bytes)`."""

LargeWrites = Mapping[tuple[int, int], bytes]
"""Writes that lie in strands, encoded, by their call's sequence number and their position in it."""

Slot = tuple[str, str, int]
"""`(task_path, task_id, position)`: in the order LangGraph applies writes."""


_SPECIAL = WRITES_IDX_MAP.keys()
_CHANNEL = _SLOT = itemgetter(0)


def are_regular(writes: Sequence[tuple[str, Any]]) -> bool:
    """Whether none of them goes to a special channel (an error, an interrupt, a resume, a scheduled call)."""
    return _SPECIAL.isdisjoint(map(_CHANNEL, writes))


def are_partial(writes: Sequence[tuple[str, Any]]) -> bool:
    """Whether they are an error that no handler takes over, and what the task had written by then."""
    channels = {channel for channel, _ in writes}
    return ERROR in channels and ERROR_SOURCE_NODE not in channels and not channels <= CONTROL_CHANNELS


def answers_in(writes: Sequence[tuple[str, Any]], task_id: str) -> int | None:
    """How many answers a task says it has been given: the length of the list it stores, None when it stores none."""
    lists = [value for channel, value in writes if channel == RESUME and isinstance(value, list)]
    return len(lists[-1]) if lists and task_id != NULL_TASK else None


def encode_writes(
    writes: Sequence[tuple[str, Any]],
    dumps: Callable[[Any], tuple[str, bytes]],
    task_id: str = "",
    seals: Seals | None = None,
) -> tuple[bytes, bytes, list[Encoded]]:
    """Body and data of one call's row, with every value in it; and the writes, encoded, if they may be large.

    Raises:
        InvalidArgument: A channel's name cannot be stored.
    """
    body: list[Sequence[Any]] = []
    parts: list[bytes] = []
    for channel, value in writes:
        kind, data = dumps(value)
        body.append((channel, kind, len(data)))
        parts.append(data)
    named, all_data = _encoded(body), b"".join(parts)
    encoded = [(each[0], each[1], data) for each, data in zip(body, parts, strict=True)] if is_large(all_data) else []
    if seals is not None:
        all_data = b"".join(
            seals.frame_write(task_id, at, body[at][0], body[at][1], data) for at, data in enumerate(parts)
        )
    return named, all_data, encoded


def large_in(encoded: Iterable[Encoded]) -> dict[str, tuple[str, bytes]]:
    """The large values, by channel; of several writes to one channel, the first."""
    large: dict[str, tuple[str, bytes]] = {}
    for channel, kind, data in encoded:
        if is_large(data) and channel not in _SPECIAL:
            large.setdefault(channel, (kind, data))
    return large


def lay_out(
    encoded: Iterable[Encoded], grown: Mapping[str, Growing], task_id: str, seals: Seals | None
) -> tuple[bytes, bytes]:
    """Body and data of one call's row; of the large values, `grown` are those that lie in strands."""
    body: list[Sequence[Any]] = []
    parts: list[bytes] = []
    left = dict(grown)
    for at, (channel, kind, data) in enumerate(encoded):
        each = left.pop(channel, None) if is_large(data) else None
        if each is not None:
            head = each.head
            if seals is not None:
                head = seals.seal_write_head(task_id, at, channel, kind, each.spans, head)
            body.append((channel, kind, head.hex(), each.spans))
        else:
            body.append((channel, kind, len(data)))
            parts.append(data if seals is None else seals.frame_write(task_id, at, channel, kind, data))
    return _encoded(body), b"".join(parts)


def _encoded(body: list[Sequence[Any]]) -> bytes:
    try:
        return canonical.encode_exact(body)
    except TypeError as error:
        raise InvalidArgument(f"put_writes: a channel name cannot be stored: {error}") from error


def taken_answers(tx: Tx, thread_id: str, calls: Iterable[Row]) -> Collection[int]:
    """Of these calls, those (by sequence number) that hold an answer which a task has taken since, in any namespace."""
    return {
        call["seq"]
        for call in calls
        if call["task_id"] == NULL_TASK and tx.maybe("answer_taken", thread_id=thread_id, seq=call["seq"]) is not None
    }


def grown_in(
    calls: Iterable[Row], seals: Seals | None = None, *, heads: bool = True
) -> Iterator[tuple[Row, int, str, bytes, Spans]]:
    """Of these calls each write that lies in a strand: its call, position, channel, head and spans.

    Args:
        calls: The calls' rows.
        seals: Opens the heads, if they are encrypted.
        heads: Whether these are wanted.
    """
    for call in calls:
        if GROWN in call["body"]:
            for position, (channel, kind, *at) in enumerate(canonical.decode(call["body"])):
                if len(at) > 1:
                    head = b""
                    if heads and seals is None:
                        head = bytes.fromhex(at[0])
                    elif heads and seals is not None:
                        head = seals.open_write_head(call["task_id"], position, channel, kind, at[1], at[0])
                    yield call, position, channel, head, at[1]


GROWN = b'",['
"""Stands in the body of each call that holds a grown write, and in few others."""


def spans_in(calls: Iterable[Row]) -> Iterator[tuple[str, Spans]]:
    """Channel and spans of every write that lies in a strand."""
    return ((channel, spans) for _, _, channel, _, spans in grown_in(calls, heads=False))


def kinds_in(call: Row) -> list[tuple[str, str]]:
    """Channel and type of each write of a call."""
    return [(channel, kind) for channel, kind, *_ in canonical.decode(call["body"])]


def merge(
    calls: Iterable[Row],
    loads: Callable[[tuple[str, bytes]], Any],
    taken: Collection[int] = (),
    large: LargeWrites = NOTHING,
    wanted: Collection[str] | None = None,
    seals: Seals | None = None,
) -> list[PendingWrite]:
    """The pending writes of one checkpoint, in `writes_sort_key` order, without those that are not to be shown.

    Args:
        calls: Rows of its calls, oldest first.
        loads: The serde's decoder; called only for the write that holds a slot.
        taken: Sequence numbers of calls whose answers were taken.
        large: The writes that lie in strands.
        wanted: Only those to these channels, if not to all.
        seals: Opens them, if they are encrypted.

    Raises:
        EncryptionError: One does not open, before the serde has seen it.
    """
    slots: dict[tuple[str, int], tuple[Slot, str, str, bytes]] = {}
    for call in calls:
        task_id, data, start = call["task_id"], call["data"], 0
        shown = _shown(call, taken)
        for position, write in enumerate(canonical.decode(call["body"])):
            channel, grown = write[0], len(write) > 3
            at = WRITES_IDX_MAP.get(channel, position)
            if shown(channel) and (at < 0 or (task_id, at) not in slots):
                slot = writes_sort_key(call["task_path"], task_id, at)
                value = large[call["seq"], position] if grown else _value(call, position, write, data, start, seals)
                slots[task_id, at] = (slot, channel, write[1], value)
            if not grown:
                start += write[2]
    shown_ones = slots.values() if wanted is None else [held for held in slots.values() if held[1] in wanted]
    held = sorted(shown_ones, key=_SLOT)
    return [(slot[1], channel, loads((kind, data))) for slot, channel, kind, data in held]


def _value(
    call: Row | Mapping[str, Any], position: int, write: Sequence[Any], data: bytes, start: int, seals: Seals | None
) -> bytes:
    """A write that lies in its row, as the serde reads it."""
    channel, kind, size = write
    if seals is None:
        return data[start : start + size]
    return seals.open_write(call["task_id"], position, channel, kind, data, start, size)


def without_answers(call: Row, seals: Seals | None) -> tuple[bytes, bytes]:
    """Body and data of a call that holds an answer, without it."""
    return _again(call, seals, seals, lambda channel: channel != RESUME)


def sealed_again(call: Row | Mapping[str, Any], opens: Seals | None, seals: Seals) -> tuple[bytes, bytes]:
    """Body and data of a call, sealed for another place, or with another key."""
    return _again(call, opens, seals, lambda channel: True)


def _again(
    call: Row | Mapping[str, Any], opens: Seals | None, seals: Seals | None, keeps: Callable[[str], bool]
) -> tuple[bytes, bytes]:
    """Body and data of a call, of the writes that are kept, opened and sealed where they stand now."""
    body: list[Any] = []
    parts: list[bytes] = []
    start, task_id = 0, call["task_id"]
    for position, write in enumerate(canonical.decode(call["body"])):
        channel, kind, at, *spans = write
        now = len(body)
        if spans and keeps(channel):  # a large one, which lies in its strand
            head = bytes.fromhex(at)
            if opens is not None:
                head = opens.open_write_head(task_id, position, channel, kind, spans[0], at)
            if seals is not None:
                head = seals.seal_write_head(task_id, now, channel, kind, spans[0], head)
            body.append([channel, kind, head.hex(), spans[0]])
        elif keeps(channel):
            value = _value(call, position, write, call["data"], start, opens)
            parts.append(value if seals is None else seals.frame_write(task_id, now, channel, kind, value))
            body.append(write)
        start += 0 if spans else at
    return canonical.encode_exact(body), b"".join(parts)


def _shown(call: Row, taken: Collection[int]) -> Callable[[str], bool]:
    """Which channels of a call are shown."""
    if call["seq"] in taken:
        return lambda channel: channel != RESUME
    if call["partial"]:
        return CONTROL_CHANNELS.__contains__
    return lambda channel: True
