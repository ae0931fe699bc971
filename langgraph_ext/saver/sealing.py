"""Sealing what checkpoints and tasks' writes hold: each value for its own place.

    a value          thread, namespace, channel, version, type; and checkpoint, if it has no version
    a write          thread, namespace, checkpoint, task, position, channel, type
    a large one      its head as above, with its spans; its body is sealed piece by piece, each for thread, namespace,
                     channel, strand and where it begins (strands.py)
    metadata         thread, namespace, checkpoint

The values of a row stand in frames, one behind the other. Places and bodies of calls say where a value begins as if all
were plain, so they are the same in a database that is encrypted:

    frame = length of the value (4 bytes), length of what is sealed (4 bytes), sealed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, NamedTuple, Self

from langgraph_ext.database import Sealer, Tx, metadata_opened, metadata_sealed, name_place, plaintext
from langgraph_ext.errors import EncryptionError, StoreError
from langgraph_ext.saver.growing import Spans

__all__ = ["Seals", "frame", "frames_at", "frames_in", "plain_size", "seals_at"]

_HEAD = Struct("<II")

_NAMESPACE = ("thread_id", "checkpoint_ns")

name_place("value", *_NAMESPACE, "channel", "version", "type", "checkpoint_id")
name_place("head of a value", *_NAMESPACE, "channel", "version", "type", "spans")
name_place("write", *_NAMESPACE, "checkpoint_id", "task_id", "position", "channel", "type")
name_place("head of a write", *_NAMESPACE, "checkpoint_id", "task_id", "position", "channel", "type", "spans")
name_place("piece", *_NAMESPACE, "channel", "strand", "start")
name_place("checkpoint.metadata", *_NAMESPACE, "checkpoint_id")


def frame(plain_size: int, sealed: bytes) -> bytes:
    """What is sealed, as it stands in its row."""
    return _HEAD.pack(plain_size, len(sealed)) + sealed


def frames_in(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Of each frame where its value begins and how long that is, as if all were plain, and what is sealed.

    Raises:
        StoreError: These are no frames (`store_corrupt`).
    """
    at = start = 0
    while at < len(data):
        if len(data) - at < _HEAD.size:
            raise _no_frames()
        size, sealed = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + sealed > len(data):
            raise _no_frames()
        yield start, size, data[at : at + sealed]
        at, start = at + sealed, start + size


def _no_frames() -> StoreError:
    return StoreError("a row's values cannot be told apart; restore a backup", code="store_corrupt")


def frames_at(data: bytes, start: int, length: int) -> list[bytes]:
    """What is sealed of the value that begins there; nothing if none does. Several empty ones may begin there."""
    found: list[bytes] = []
    at = begun = 0
    while at + _HEAD.size <= len(data) and begun <= start:
        size, sealed = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if begun == start and size == length:
            found.append(data[at : at + sealed])
            if length:
                break
        at, begun = at + sealed, begun + size
    return found


def plain_size(data: bytes) -> int:
    """Bytes of all values in a row's data."""
    return sum(size for _, size, _ in frames_in(data))


class Seals(NamedTuple):
    """Seals and opens what one checkpoint holds, and what tasks have written at it."""

    sealer: Sealer
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str

    def at(self, checkpoint_id: str) -> Self:
        """As this, of another checkpoint of the namespace."""
        return self._replace(checkpoint_id=checkpoint_id)

    def of_thread(self, thread_id: str) -> Self:
        """As this, of another thread."""
        return self._replace(thread_id=thread_id)

    def _open(self, place: tuple[Any, ...], frames: list[bytes], length: int) -> bytes:
        """A value, in whichever of these frames it is."""
        for number, each in enumerate(frames, start=1):
            try:
                value = self.sealer.open(place, each)
            except EncryptionError:
                if number == len(frames):
                    raise
            else:
                if len(value) == length or self.sealer.locked:
                    return value
        raise plaintext(place)  # no frame is there, or one of another length

    # -- values of channels

    def frame_value(self, channel: str, version: Any, kind: str, data: bytes) -> bytes:
        """A value, framed."""
        return frame(len(data), self.sealer.seal(self._value(channel, version, kind), data))

    def open_value(self, channel: str, place: list[Any], data: bytes) -> bytes:
        """The value at a place in a row's data."""
        version, kind, start, length = place
        return self._open(self._value(channel, version, kind), frames_at(data, start, length), length)

    def _value(self, channel: str, version: Any, kind: str) -> tuple[Any, ...]:
        where = ("value", self.thread_id, self.checkpoint_ns, channel, version, kind)
        return where if version is not None else (*where, self.checkpoint_id)

    def seal_head(self, channel: str, version: Any, kind: str, spans: Spans, head: bytes) -> bytes:
        """The head of a large value."""
        return self.sealer.seal(self._head(channel, version, kind, spans), head)

    def open_head(self, channel: str, place: list[Any]) -> bytes:
        """The head of a large value, out of its place."""
        version, kind, head, spans = place
        return self.sealer.open(self._head(channel, version, kind, spans), bytes.fromhex(head))

    def _head(self, channel: str, version: Any, kind: str, spans: Spans) -> tuple[Any, ...]:
        return ("head of a value", self.thread_id, self.checkpoint_ns, channel, version, kind, spans)

    # -- tasks' writes

    def frame_write(self, task_id: str, position: int, channel: str, kind: str, data: bytes) -> bytes:
        """A write, framed."""
        return frame(len(data), self.sealer.seal(self._write("write", task_id, position, channel, kind), data))

    def open_write(
        self, task_id: str, position: int, channel: str, kind: str, data: bytes, start: int, length: int
    ) -> bytes:
        """The write at a place in a row's data."""
        place = self._write("write", task_id, position, channel, kind)
        return self._open(place, frames_at(data, start, length), length)

    def seal_write_head(self, task_id: str, position: int, channel: str, kind: str, spans: Spans, head: bytes) -> bytes:
        """The head of a large write."""
        return self.sealer.seal((*self._write("head of a write", task_id, position, channel, kind), spans), head)

    def open_write_head(self, task_id: str, position: int, channel: str, kind: str, spans: Spans, head: str) -> bytes:
        """The head of a large write."""
        place = (*self._write("head of a write", task_id, position, channel, kind), spans)
        return self.sealer.open(place, bytes.fromhex(head))

    def _write(self, what: str, task_id: str, position: int, channel: str, kind: str) -> tuple[Any, ...]:
        return (what, self.thread_id, self.checkpoint_ns, self.checkpoint_id, task_id, position, channel, kind)

    # -- metadata

    def seal_metadata(self, data: bytes) -> bytes:
        """The metadata of the checkpoint."""
        return metadata_sealed(self.sealer, self._metadata(), data)

    def open_metadata(self, data: bytes) -> bytes:
        """The metadata of the checkpoint."""
        return metadata_opened(self.sealer, self._metadata(), data)

    def _metadata(self) -> tuple[Any, ...]:
        return ("checkpoint.metadata", self.thread_id, self.checkpoint_ns, self.checkpoint_id)


def seals_at(tx: Tx, row: Mapping[str, Any] | Any, checkpoint_id: str | None = None) -> Seals | None:
    """What seals at a checkpoint, in a transaction; None if the database is plain."""
    if tx.sealer is None:
        return None
    at = row["checkpoint_id"] if checkpoint_id is None else checkpoint_id
    return Seals(tx.sealer, row["thread_id"], row["checkpoint_ns"], at)
