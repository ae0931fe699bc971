"""Unstored: checkpoints whose put has failed, for who waits until they are stored (rule L23).

LangGraph runs a step while the checkpoint it executes is still being saved, and notices a failure of that when the step
is over. A durable node of the step would wait in vain.
"""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Unstored"]

_MOST = 1024
"""So many are remembered."""

Key = tuple[str, str, str]
"""Thread, namespace and checkpoint."""


class Unstored:
    """The puts of a saver that failed last. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._errors: dict[Key, BaseException] = {}

    def noting(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> _Noting:
        """Around a put: whatever it raises is noted."""
        return _Noting(self, (thread_id, checkpoint_ns, checkpoint_id))

    def note(self, key: Key, error: BaseException) -> None:
        """A put has failed."""
        with self._mutex:
            self._errors[key] = error
            while len(self._errors) > _MOST:
                del self._errors[next(iter(self._errors))]

    def why(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> BaseException | None:
        """What the put of a checkpoint has raised; None if it did not fail, or that was forgotten."""
        return self._errors.get((thread_id, checkpoint_ns, checkpoint_id))


class _Noting:
    __slots__ = ("_key", "_unstored")

    def __init__(self, unstored: Unstored, key: Key) -> None:
        self._unstored, self._key = unstored, key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._unstored.note(self._key, error)
