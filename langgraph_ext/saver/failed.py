"""Failed: ends of attempts that could not be settled, and what their graphs may not store therefore (rule L53).

LangGraph takes a task for finished when its body has returned, and goes on to the next checkpoint; that a function of
the body's has raised in the settlement it learns from the saver's calls. All that would make the task's result part of
the graph's state is refused with that same error, at the checkpoint where it came up: the task's writes, and the
checkpoint of a loop that supersedes them. The next attempt of the task begins anew, and so does whoever goes on from
there otherwise: with new input, a fork, an update. Who waits for such a checkpoint is told (unstored.py).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph_ext.ledger.attempts import Error
from langgraph_ext.ledger.settlement import PartKey, Staged
from langgraph_ext.saver.config import Address

__all__ = ["Failed", "Failure"]

_MOST = 4_096
"""How many are kept; the oldest are dropped: nobody came back for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One end that was not settled."""

    staged: Staged
    at: Address
    """Of the call that was to settle it: where its graph has learned of it."""
    error: BaseException
    told: Error
    """What the record says of it."""


class Failed:
    """The failures of one saver, one an attempt. Safe to use from any thread."""

    def __init__(self) -> None:
        self.any = False
        """Whether there are any: all that a call needs to look at where none has failed."""
        self._mutex = threading.Lock()
        self._failures: dict[str, Failure] = {}

    def add(self, failure: Failure) -> None:
        """A call has failed to settle an end."""
        with self._mutex:
            self._failures.setdefault(failure.staged.attempt_id, failure)
            if len(self._failures) > _MOST:
                del self._failures[next(iter(self._failures))]
            self.any = True

    def refuse_put(self, address: Address, metadata: Mapping[str, Any]) -> None:
        """Raise the error of a failure that a loop's checkpoint would pass over; who begins anew there is let through.

        Args:
            address: Thread, namespace and parent.
            metadata: The checkpoint's.
        """
        for failure in self._at(address):
            if metadata.get("source") == "loop":
                raise failure.error
            self.forget(failure.staged.key)

    def refuse_writes(self, address: Address, task_id: str) -> None:
        """Raise the error of a failure whose result these writes would store."""
        for failure in self._at(address):
            if failure.staged.is_of(task_id):
                raise failure.error

    def of_part(self, key: PartKey) -> list[tuple[str, Error]]:
        """The attempts of this part of a task that have failed, and what is to be on record of that."""
        if not self.any:
            return []
        with self._mutex:
            return [(at, each.told) for at, each in self._failures.items() if each.staged.key == key]

    def forget(self, key: PartKey) -> None:
        """The next attempt of this part of a task begins."""
        with self._mutex:
            for attempt_id, failure in list(self._failures.items()):
                if failure.staged.key == key:
                    del self._failures[attempt_id]
            self.any = bool(self._failures)

    def _at(self, address: Address) -> list[Failure]:
        with self._mutex:
            return [failure for failure in self._failures.values() if failure.at == address]
