"""Pending writes: one row a `put_writes` call, merged into slots when they are read.

A write's slot is (task, position in its call), but for LangGraph's special channels, which have fixed slots.
A regular slot keeps the first write it was given, a special slot the newest, also when one call mixes both (rule S3;
InMemorySaver's rule). A call's row keeps its writes in their order of entry:

    head = [[channel, type, length], …]      data = the values, end to end
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key

from langgraph_ext import canonical
from langgraph_ext.database import Row
from langgraph_ext.errors import InvalidArgument

__all__ = ["are_ordinary", "merge", "pack_call"]

Slot = tuple[str, str, int]
"""`(task_path, task_id, position)`: in the order LangGraph applies writes."""


def are_ordinary(writes: Sequence[tuple[str, Any]]) -> bool:
    """Whether none of them goes to a special channel (an error, an interrupt, a resume, a scheduled call)."""
    return not any(channel in WRITES_IDX_MAP for channel, _ in writes)


def pack_call(writes: Sequence[tuple[str, Any]], dumps: Callable[[Any], tuple[str, bytes]]) -> tuple[bytes, bytes]:
    """Head and data of one call's row."""
    head: list[tuple[str, str, int]] = []
    parts: list[bytes] = []
    for channel, value in writes:
        kind, data = dumps(value)
        head.append((channel, kind, len(data)))
        parts.append(data)
    try:
        return canonical.encode_exact(head), b"".join(parts)
    except TypeError as error:
        raise InvalidArgument(f"put_writes: a channel name cannot be stored: {error}") from error


def merge(calls: Iterable[Row], loads: Callable[[tuple[str, bytes]], Any]) -> list[PendingWrite]:
    """The pending writes of one checkpoint, in `writes_sort_key` order.

    Args:
        calls: Rows of its calls, oldest first.
        loads: The serde's decoder; called only for the write that holds a slot.
    """
    slots: dict[tuple[str, int], tuple[Slot, str, str, bytes]] = {}
    for call in calls:
        task_id, data, start = call["task_id"], call["data"], 0
        for position, (channel, kind, length) in enumerate(canonical.decode(call["head"])):
            at = WRITES_IDX_MAP.get(channel, position)
            if at < 0 or (task_id, at) not in slots:
                slot = writes_sort_key(call["task_path"], task_id, at)
                slots[task_id, at] = (slot, channel, kind, data[start : start + length])
            start += length
    held = sorted(slots.values(), key=lambda held: held[0])
    return [(slot[1], channel, loads((kind, data))) for slot, channel, kind, data in held]
