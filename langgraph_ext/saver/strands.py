"""Strands: the bytes of large values, one strand for each channel of a thread and namespace, kept in pieces.

    strand   ┌───────────────┬───────────────┬──────┬──────┬───┐
    pieces   │     full      │     full      │      │      │   │ ◀── what is new becomes part of the last one
             └───────────────┴───────────────┴──────┴──────┴───┘
                                             └────── a few that are not full; more of them become full ones

So the file holds every byte once, and a strand is read in few pieces, however many steps have added to it. Bytes are
only added, and keep their place; when some are taken out, because no checkpoint that is left needs them, the strand
gets another stamp. What is remembered of a strand is right as long as its stamp is the same.

Pieces are all that is stored of a value's body: here and nowhere else they go into the database and come out of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile
from typing import Any, NamedTuple

from langgraph_ext.database import Row, Sealer, Tx
from langgraph_ext.errors import StoreError
from langgraph_ext.saver import values
from langgraph_ext.saver.growing import NOTHING, Former, Spans, add_part, parts_in, ranges_in
from langgraph_ext.saver.sealing import Seals
from langgraph_ext.saver.writes import GROWN, LargeWrites, grown_in, spans_in

__all__ = ["FULL", "Strands", "Tail", "add", "begin", "copy", "delete", "former_in", "tail", "trim", "whole"]

FULL = 32 * 1024
"""Bytes of a full piece; none is larger."""

SMALL = 8 * 1024
"""Bytes below which the last piece is rewritten when some are added; more would be much to write at each step."""

MOST_UNFULL = 4
"""Pieces at the end of a strand that are not full, before they are made full ones."""

_SPAN = 2**32
"""From the first piece of a strand to that of the next one."""


class Tail(NamedTuple):
    """The end of a strand."""

    strand: int
    stamp: int
    end: int
    rewritten: int
    """From where on its bytes are written anew when some are added."""
    place: Place
    """Whose strand it is; its pieces are sealed for that."""


Place = tuple[str, str, str]
"""Thread, namespace, channel."""


def _place(where: Mapping[str, object], channel: str) -> Place:
    return str(where["thread_id"]), str(where["checkpoint_ns"]), channel


def tail(tx: Tx, where: Mapping[str, object], channel: str) -> Tail | None:
    """The end of a channel's strand; None if it has none."""
    rows = tx.all("strand_tail", **where, channel=channel, size=MOST_UNFULL + 1)
    if not rows:
        return None
    last = rows[0]
    end = begun = last["start"] + last["size"]
    unfull = 0
    for row in rows:
        if row["size"] >= FULL or row["start"] + row["size"] != begun:
            break
        begun, unfull = row["start"], unfull + 1
    if unfull <= MOST_UNFULL:
        begun = last["start"] if last["size"] < SMALL else end
    return Tail(last["strand"], last["stamp"], end, begun, _place(where, channel))


def begin(tx: Tx, where: Mapping[str, object], channel: str, *, stamp: int) -> Tail:
    """Make a strand, which has no bytes yet."""
    tx.run("strand_insert", **where, channel=channel, stamp=stamp)
    return Tail(tx.one("strand_named", **where, channel=channel)["strand"], stamp, 0, 0, _place(where, channel))


def add(tx: Tx, at: Tail, fresh: bytes) -> None:
    """Add bytes at the end of a strand."""
    if at.rewritten < at.end:
        fresh = b"".join(data for _, data in _pieces(tx, at.place, at.strand, at.rewritten, at.end)) + fresh
        tx.run("pieces_delete", **_range(at.strand, at.rewritten, at.end))
    _store(tx, at.place, at.strand, at.rewritten, fresh)


def _store(tx: Tx, place: Place, strand: int, start: int, data: bytes) -> None:
    for at in range(0, len(data), FULL):
        part, size = data[at : at + FULL], None
        if tx.sealer is not None:
            size, part = len(part), tx.sealer.seal(("piece", *place, strand, start + at), part)
        tx.run("piece_insert", piece=strand * _SPAN + start + at, data=part, size=size)


def _range(strand: int, start: int, stop: int) -> dict[str, object]:
    return {"first": strand * _SPAN + start, "stop": strand * _SPAN + stop}


def _pieces(tx: Tx, place: Place, strand: int, start: int, stop: int) -> list[tuple[int, bytes]]:
    rows = tx.all("pieces_between", first=strand * _SPAN, start=strand * _SPAN + start, stop=strand * _SPAN + stop)
    if tx.sealer is None:
        return [(row["piece"] - strand * _SPAN, row["data"]) for row in rows]
    return [_opened(tx.sealer, place, strand, row) for row in rows]


def _opened(sealer: Sealer, place: Place, strand: int, row: Row) -> tuple[int, bytes]:
    at = row["piece"] - strand * _SPAN
    data = sealer.open(("piece", *place, strand, at), row["data"])
    if len(data) != row["size"]:
        raise StoreError(
            "a piece of a value has not the size that it should have; restore a backup", code="store_corrupt"
        )
    return at, data


def whole(tx: Tx, where: Mapping[str, object], channel: str, spans: Spans) -> Spans:
    """The spans of a body once the few bytes that stand among them lie in its strand, too."""
    made: Spans = []
    for part in parts_in(spans):
        if isinstance(part, bytes):
            at = tail(tx, where, channel)
            assert at is not None, "of a body that lies in a strand, most does"
            add(tx, at, part)
            part = at.end, at.end + len(part)  # noqa: PLW2901
        add_part(made, part)
    return made


class Strands:
    """Reads bodies in one transaction, such that values which share one are read once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._numbers: dict[tuple[object, object], dict[str, int]] = {}
        """By thread and namespace, the number of each channel's strand."""
        self._read: dict[tuple[int, int], tuple[int, list[bytes]]] = {}
        """By strand and place, where the most that was read from there on ends, and what it is."""

    def body(self, where: Mapping[str, object], channel: str, spans: Spans, head: bytes = b"") -> bytes:
        """The body that lies in these spans; the whole value, if its head is given.

        Raises:
            StoreError: Not all of it is there (`store_corrupt`).
        """
        named = where["thread_id"], where["checkpoint_ns"]
        if named not in self._numbers:
            rows = self._tx.all("strands_of_namespace", **where)
            self._numbers[named] = {row["channel"]: row["strand"] for row in rows}
        strand = self._numbers[named].get(channel)
        place = _place(where, channel)
        parts = [head]
        missing = False
        for part in parts_in(spans):
            if isinstance(part, bytes):
                parts.append(part)
            else:
                found = [] if strand is None else self._part(place, strand, *part)
                missing = missing or sum(map(len, found)) < part[1] - part[0]
                parts += found
        if missing:
            raise StoreError(
                f"bytes of channel {channel!r} of thread {where['thread_id']!r} are missing in the database; "
                "restore a backup",
                code="store_corrupt",
                details=dict(where),
            )
        return b"".join(parts)

    def _part(self, place: Place, strand: int, start: int, stop: int) -> list[bytes]:
        """The bytes between two places, in pieces, as far as they are there."""
        end, held = self._read.get((strand, start), (start, []))
        if end < stop:
            end, held = stop, list(_joined(_pieces(self._tx, place, strand, start, stop), start, stop))
            self._read[strand, start] = end, held
        return held if end == stop else _first(held, stop - start)

    def behind(self, at: Tail, start: int, size: int) -> bytes:
        """The bytes of a strand from some place on, so many at most, as far as they follow each other."""
        stop = min(start + size, at.end)
        return b"".join(_joined(_pieces(self._tx, at.place, at.strand, start, stop), start, stop))

    def written(self, row: Row | Mapping[str, Any], calls: Iterable[Row], seals: Seals | None) -> LargeWrites:
        """The large writes of the calls at a checkpoint; the row names thread and namespace."""
        found = list(grown_in(calls, seals))
        if not found:
            return NOTHING
        where = {"thread_id": row["thread_id"], "checkpoint_ns": row["checkpoint_ns"]}
        return {
            (call["seq"], position): self.body(where, channel, spans, head)
            for call, position, channel, head, spans in found
        }


def _joined(pieces: list[tuple[int, bytes]], start: int, stop: int) -> Iterator[bytes]:
    """The bytes between two places, as far as they follow each other without a gap."""
    at = start
    for begun, data in pieces:
        if not begun <= at < begun + len(data):
            return
        end = min(begun + len(data), stop)
        yield data if (at, end) == (begun, begun + len(data)) else data[at - begun : end - begun]
        at = end


def _first(parts: list[bytes], size: int) -> list[bytes]:
    """The first bytes of these parts, so many in all."""
    found = []
    for part in parts:
        found.append(part if len(part) <= size else part[:size])
        size -= len(found[-1])
        if size == 0:
            break
    return found


def former_in(tx: Tx, at: Tail, size: int) -> Former:
    """The last bytes of a strand, as if they were a value: one that goes on with it shares them."""
    spans: Spans = []
    parts = []
    start = max(at.end - size, 0)
    for begun, data in _pieces(tx, at.place, at.strand, start, at.end):
        cut = data[max(start - begun, 0) :]
        add_part(spans, (begun + len(data) - len(cut), begun + len(data)))
        parts.append(cut)
    return Former(b"".join(parts), spans)


def trim(tx: Tx, where: Mapping[str, object], *, stamp: int) -> None:
    """Take out of a namespace's strands what no value lies in any more.

    Args:
        tx: The open transaction.
        where: Thread and namespace.
        stamp: For strands that lose bytes.
    """
    rows = tx.all("strands_of_namespace", **where)
    live = _live(tx, where) if rows else {}
    for row in rows:
        strand, kept = row["strand"], _union(live.get(row["channel"], []))
        if not kept:
            tx.run("pieces_delete", **_range(strand, 0, _SPAN))
            tx.run("strand_delete", strand=strand)
        elif _trim(tx, _place(where, row["channel"]), strand, kept):
            tx.run("strand_restamp", strand=strand, stamp=stamp)


def _live(tx: Tx, where: Mapping[str, object]) -> dict[str, list[Spans]]:
    """The spans of every value that is stored, by channel."""
    live: dict[str, list[Spans]] = {}
    for row in tx.all("places_of_namespace", **where):
        for channel, place in values.grown_in(values.decode_places(row["places"])).items():
            live.setdefault(channel, []).append(place[3])
    for channel, spans in spans_in(tx.all("calls_of_namespace", **where, needle=GROWN)):
        live.setdefault(channel, []).append(spans)
    return live


def _union(some: list[Spans]) -> list[tuple[int, int]]:
    """All spans, in their order and such that no two touch."""
    united: list[tuple[int, int]] = []
    for start, stop in sorted({each for spans in some for each in ranges_in(spans)}):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], stop)
        else:
            united.append((start, stop))
    return united


def _trim(tx: Tx, place: Place, strand: int, kept: list[tuple[int, int]]) -> bool:
    """Take out what is not kept; whether there was such."""
    trimmed = False
    stops = [stop for _, stop in kept]
    for row in tx.all("piece_sizes", **_range(strand, 0, _SPAN)):
        begun, size = row["piece"] - strand * _SPAN, row["size"]
        near = takewhile(lambda span: span[0] < begun + size, islice(kept, bisect_right(stops, begun), None))  # noqa: B023
        parts = [(max(start, begun), min(stop, begun + size)) for start, stop in near]
        if parts == [(begun, begun + size)]:
            continue
        trimmed = True
        data = _pieces(tx, place, strand, begun, begun + size)[0][1] if parts else b""
        tx.run("pieces_delete", **_range(strand, begun, begun + size))
        for start, stop in parts:
            _store(tx, place, strand, start, data[start - begun : stop - begun])
    return trimmed


def delete(tx: Tx, thread_id: str) -> None:
    """Delete the strands of a thread."""
    tx.run("pieces_delete_of_thread", thread_id=thread_id)
    tx.run("strands_delete", thread_id=thread_id)


def copy(tx: Tx, source: str, target: str, *, stamp: int) -> None:
    """Copy the strands of a thread to another one, which has none."""
    tx.run("strands_copy", source=source, target=target, stamp=stamp)
    if tx.sealer is None:
        tx.run("pieces_copy", source=source, target=target)
        return
    for row in tx.all("strands_of_thread", thread_id=source):
        strand, *named = row["strand"], row["checkpoint_ns"], row["channel"]
        copied = tx.one("strand_named", thread_id=target, checkpoint_ns=named[0], channel=named[1])["strand"]
        for piece in tx.all("piece_sizes", **_range(strand, 0, _SPAN)):
            begun = piece["piece"] - strand * _SPAN
            for at, data in _pieces(tx, (source, named[0], named[1]), strand, begun, begun + 1):
                _store(tx, (target, named[0], named[1]), copied, at, data)
