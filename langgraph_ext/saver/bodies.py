"""Bodies: the last large value of each channel, so that what is appended to it is seen without reading it back.

Only a short cut. What is remembered says how far its strand reached and under which stamp; a transaction that relies
on it compares both with the database, and reads the former value there if they differ or nothing is remembered. (Bytes
of a strand never change under one stamp: strands.py.)
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver.growing import Former

__all__ = ["MOST_BYTES", "Bodies", "Known"]

MOST_BYTES = 64 * 1024 * 1024
"""What is remembered in all, unless the saver is told otherwise."""

_ENTRY_BYTES = 512
"""About what an entry takes besides its body."""

Key = tuple[str, str, str]
"""Thread, namespace, channel."""


class Known(NamedTuple):
    """A large value as it was stored, and its strand as it was then."""

    former: Former
    stamp: int
    end: int


class Bodies:
    """The last large value of each channel, as many as fit. Safe to use from any thread.

    Args:
        most_bytes: What they may take in all; those used longest ago are forgotten first.

    Raises:
        InvalidArgument: `most_bytes` is no whole number, or negative.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        if type(most_bytes) is not int or most_bytes < 0:
            raise InvalidArgument(
                f"growing_memory_bytes is {most_bytes!r}; it must be a whole number of bytes, 0 or more"
            )
        self._most_bytes = most_bytes
        self._mutex = threading.Lock()
        self._known: dict[Key, Known] = {}
        """Those used longest ago first."""
        self._bytes = 0

    @property
    def held_bytes(self) -> int:
        """What they take now."""
        return self._bytes

    def find(self, thread_id: str, checkpoint_ns: str, channel: str) -> Known | None:
        """The last value of a channel that this saver has seen."""
        key = thread_id, checkpoint_ns, channel
        if key not in self._known:
            return None
        with self._mutex:
            known = self._known.pop(key, None)
            if known is not None:
                self._known[key] = known
            return known

    def remember(self, thread_id: str, checkpoint_ns: str, known: Mapping[str, Known]) -> None:
        """Note values after their commit, by channel."""
        with self._mutex:
            for channel, each in known.items():
                key = thread_id, checkpoint_ns, channel
                forgotten = self._known.pop(key, None)
                self._known[key] = each
                self._bytes += _bytes_of(each) - (_bytes_of(forgotten) if forgotten else 0)
            while self._bytes > self._most_bytes:
                self._bytes -= _bytes_of(self._known.pop(next(iter(self._known))))


def _bytes_of(known: Known) -> int:
    return _ENTRY_BYTES + len(known.former.body)
