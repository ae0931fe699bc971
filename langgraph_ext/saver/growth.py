"""Growth: how large values get into the strands of their channels, with the put or call that carries them.

Where a body lies depends on the value that the channel had before. If that is remembered, it is found out by the caller
(`ahead`), and the transaction only looks whether the strand is as it was (`tails_of`); else the transaction reads the
former value (`within`). Both ways store the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from langgraph_ext.database import Tx
from langgraph_ext.saver import strands, values
from langgraph_ext.saver.bodies import Bodies, Known
from langgraph_ext.saver.growing import Former, Spans, head_of, size_of, spans_after
from langgraph_ext.saver.strands import Tail

__all__ = ["Encoded", "Grown", "Tails", "ahead", "shared_ahead", "shared_within", "tails_of", "within", "write"]

Encoded = tuple[str, str, bytes]
"""`(channel, type, bytes)`."""

Tails = Mapping[str, Tail | None]
"""The end of each channel's strand; None if it has none yet."""


class Grown(NamedTuple):
    """A large value on its way into its strand."""

    head: bytes
    body: bytes
    spans: Spans
    fresh: bytes
    """What has to be added to the strand."""
    stamp: int
    end: int
    """Of the strand, before it is added."""

    @property
    def known(self) -> Known:
        """What is remembered of it once it is stored."""
        return Known(Former(self.body, self.spans), self.stamp, self.end + len(self.fresh))


def ahead(
    large: Iterable[Encoded],
    thread_id: str,
    checkpoint_ns: str,
    parent: values.Places | None,
    bodies: Bodies,
    *,
    whole: bool = False,
) -> dict[str, Grown] | None:
    """Where large values go, by channel, if all that this depends on is remembered; else None.

    Args:
        large: The values.
        thread_id: Their thread.
        checkpoint_ns: Their namespace.
        parent: The places of the checkpoint before; None if they are not known.
        bodies: What is remembered.
        whole: Whether all of a body goes to its strand; else a few bytes may stand among its spans, in the plain.
    """
    grown = {}
    for channel, kind, data in large:
        known = bodies.find(thread_id, checkpoint_ns, channel)
        if known is None:
            return None
        head = head_of(kind, data)
        body = data[head:]
        before = values.spans_of(parent, channel) if parent else None
        if before not in (None, known.former.spans) and not body.startswith(known.former.body):
            return None  # what is remembered is another branch's
        found = spans_after(known.former, body, known.end, whole=whole)
        if found is not None:
            grown[channel] = Grown(data[:head], body, *found, known.stamp, known.end)
    return grown


def tails_of(tx: Tx, where: Mapping[str, object], grown: Mapping[str, Grown]) -> Tails | None:
    """The strands that values go to; None if one is not as it was remembered."""
    tails: dict[str, Tail | None] = {}
    for channel, each in grown.items():
        tail = strands.tail(tx, where, channel)
        if tail is None or (tail.stamp, tail.end) != (each.stamp, each.end):
            return None
        tails[channel] = tail
    return tails


def within(
    tx: Tx, where: Mapping[str, object], large: Iterable[Encoded], parent: values.Places | None
) -> tuple[dict[str, Grown], Tails]:
    """As `ahead`, and the strands that they go to, out of the database."""
    reading = strands.Strands(tx)
    grown: dict[str, Grown] = {}
    tails: dict[str, Tail | None] = {}
    for channel, kind, data in large:
        tail = strands.tail(tx, where, channel)
        head = head_of(kind, data)
        body = data[head:]
        before = values.spans_of(parent, channel) if parent else None
        former = None
        if before is not None and tail is not None:
            former = _former(reading, where, channel, before, tail, len(body))
        elif tail is not None:  # such as a DeltaChannel's, which few checkpoints hold
            former = strands.former_in(tx, tail, 2 * len(body))
        found = spans_after(former, body, tail.end if tail else 0, whole=tx.sealer is not None)
        if found is not None:
            stamp, end = (tail.stamp, tail.end) if tail else (0, 0)
            grown[channel], tails[channel] = Grown(data[:head], body, *found, stamp, end), tail
    return grown, tails


def shared_ahead(
    large: Mapping[str, tuple[str, bytes]], thread_id: str, checkpoint_ns: str, bodies: Bodies, *, whole: bool = False
) -> dict[str, Grown] | None:
    """As `ahead`, of a task's writes: those that share most of what their channels held."""
    grown = {}
    for channel, (kind, data) in large.items():
        known = bodies.find(thread_id, checkpoint_ns, channel)
        if known is None:
            return None
        if (each := _shared(kind, data, known.former, known.stamp, known.end, whole)) is not None:
            grown[channel] = each
    return grown


def shared_within(
    tx: Tx, where: Mapping[str, object], large: Mapping[str, tuple[str, bytes]], held: values.Places
) -> tuple[dict[str, Grown], Tails]:
    """As `within`, of a task's writes; `held` are the places of the checkpoint that it executes."""
    reading = strands.Strands(tx)
    grown: dict[str, Grown] = {}
    tails: dict[str, Tail | None] = {}
    for channel, (kind, data) in large.items():
        spans = values.spans_of(held, channel)
        tail = None if spans is None or size_of(spans) > 2 * len(data) else strands.tail(tx, where, channel)
        if spans is None or tail is None:
            continue
        former = _former(reading, where, channel, spans, tail, len(data))
        if (each := _shared(kind, data, former, tail.stamp, tail.end, tx.sealer is not None)) is not None:
            grown[channel], tails[channel] = each, tail
    return grown, tails


def _shared(kind: str, data: bytes, former: Former, stamp: int, end: int, whole: bool) -> Grown | None:
    """A write that shares most of a former value: what a reducer is given is mostly much smaller, and all new."""
    if len(former.body) > 2 * len(data):
        return None
    head = head_of(kind, data)
    found = spans_after(former, data[head:], end, whole=whole)
    if found is None or 2 * len(found[1]) > len(data):
        return None
    return Grown(data[:head], data[head:], *found, stamp, end)


def _former(
    reading: strands.Strands, where: Mapping[str, object], channel: str, spans: Spans, tail: Tail, size: int
) -> Former:
    """A former value, with what stands behind it in its strand: mostly what a task has written that goes on with it."""
    body, last, missing = reading.body(where, channel, spans), spans[-1], size - size_of(spans)
    if isinstance(last, int) and last < tail.end and missing > 0:
        more = reading.behind(tail, last, missing)
        body, spans = body + more, [*spans[:-1], last + len(more)]
    return Former(body, spans)


def write(tx: Tx, where: Mapping[str, object], grown: Mapping[str, Grown], tails: Tails) -> dict[str, Known]:
    """Add what is new to the strands, behind the row of the log whose values these are; what to remember of them."""
    known = {}
    for channel, each in grown.items():
        tail = tails[channel] or strands.begin(tx, where, channel, stamp=tx.one("log_last")["seq"])
        if each.fresh:
            strands.add(tx, tail, each.fresh)
        known[channel] = each._replace(stamp=tail.stamp).known
    return known
