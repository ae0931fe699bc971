"""Windows: the part of a history that a model is sent, read once: of the next one, only what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Tx
from langgraph_ext.engine.contexts import messages_of
from langgraph_ext.engine.messages import revived
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.store import Store

__all__ = ["Ahead", "Windows"]


class Ahead(NamedTuple):
    """Messages of a window that were read ahead of its call."""

    after: int | None
    """The row behind which they are; None: the window's beginning."""
    messages: list[dict[str, Any]]
    """Plain."""


class _Sent(NamedTuple):
    """The window of a context that a model was sent last."""

    beginning: tuple[int, int | None]
    """The row behind which it begins, and its summary's."""
    upto: int
    """Its last row."""
    messages: list[BaseMessage]


class Windows:
    """The windows that the models of one agent run were sent.

    Args:
        store: Where contexts are read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sent: dict[str, _Sent] = {}
        """By context."""

    def ahead(self, tx: Tx, operation: Operation) -> Ahead | None:
        """Read what is new of a request's window; None if all of it is: that is more than a commit is held up for."""
        after = self._known_upto(operation.request)
        return None if after is None else self._read(tx, operation, after)

    def _read(self, tx: Tx, operation: Operation, after: int | None) -> Ahead:
        return Ahead(after, messages_of(tx, operation, self._store.serde, after=after))

    async def messages(self, operation: Operation, ahead: Ahead | None = None) -> list[BaseMessage]:
        """The window that a request names, and what of the inbox goes with it.

        Args:
            operation: Whose request.
            ahead: What was read of it; of no use if another window was sent meanwhile.
        """
        request = operation.request
        after = self._known_upto(request)
        if ahead is None or ahead.after != after:
            ahead = await self._store.read(self._read, operation, after)
        messages = [*(self._sent[request["task"]].messages if after is not None else ()), *revived(ahead.messages)]
        told = len(request.get("steering") or ())  # these are not in the history yet
        self._sent[request["task"]] = _Sent(_beginning(request), request["upto"], messages[: len(messages) - told])
        return messages

    def _known_upto(self, request: Mapping[str, Any]) -> int | None:
        """The row up to which a window was sent before; None if it is another one."""
        known = self._sent.get(request["task"])
        if known is None or known.beginning != _beginning(request) or known.upto > request["upto"]:
            return None
        return known.upto


def _beginning(request: Mapping[str, Any]) -> tuple[int, int | None]:
    return request["covers"], request["summary"]
