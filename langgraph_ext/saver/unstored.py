"""Unstored: graphs of which a put has failed, for who waits until a checkpoint of theirs is stored (rule L23).

LangGraph runs a step while the checkpoint it executes is still being saved, and notices a failure of that when the step
is over; under durability `async` it does not even try to save what comes behind. A durable node would wait in vain.
"""

from __future__ import annotations

import threading

from langchain_core.runnables import RunnableConfig

from langgraph_ext.saver import host

__all__ = ["Unstored"]

_MOST = 256
"""So many are remembered."""


class Unstored:
    """The graphs whose puts failed last. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._errors: dict[tuple[int, str], tuple[object, BaseException]] = {}
        """By an object of the invocation's own, which is kept so that its id comes to no other, and namespace."""

    def note(self, config: RunnableConfig, checkpoint_ns: str, error: BaseException) -> None:
        """A put has failed; the first failure counts. One whose await was cancelled may be stored all the same."""
        control = host.control_in(config)
        if control is None or host.is_cancellation(error):
            return
        with self._mutex:
            self._errors.setdefault((id(control), checkpoint_ns), (control, error))
            while len(self._errors) > _MOST:
                del self._errors[next(iter(self._errors))]

    def why(self, config: RunnableConfig, checkpoint_ns: str) -> BaseException | None:
        """What a put of the graph has raised that a node with this config runs in, or of one around it."""
        found = self._errors.get((id(host.control_in(config)), checkpoint_ns)) if self._errors else None
        return None if found is None else found[1]
