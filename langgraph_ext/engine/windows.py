"""Windows: the part of a history that a model is sent, read once: of the next one, only what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Tx
from langgraph_ext.engine.contexts import messages_of
from langgraph_ext.engine.messages import revived
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.sent import Beginning, Sent, copied, last_sent
from langgraph_ext.engine.store import Store

__all__ = ["Ahead", "Windows"]


class Ahead(NamedTuple):
    """Messages of a window that were read ahead of its call."""

    after: int | None
    """The row behind which they are; None: the window's beginning."""
    messages: list[dict[str, Any]]
    """Plain."""


class Windows:
    """The windows that the models of one agent run were sent.

    What an earlier run of this process was sent of the same history is begun with, in copies: a model's integration,
    or a callback, may change what it is given.

    Args:
        store: Where contexts are read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sent: dict[str, Sent] = {}
        """By context."""
        self._before = last_sent(store.database)

    def ahead(self, tx: Tx, operation: Operation) -> Ahead | None:
        """Read what is new of a request's window; None if all of it is: that is more than a commit is held up for."""
        known = self._known(operation.request)
        return None if known is None else self._read(tx, operation, known.upto)

    def _read(self, tx: Tx, operation: Operation, after: int | None) -> Ahead:
        return Ahead(after, messages_of(tx, operation, self._store.serde, after=after))

    async def messages(self, operation: Operation, ahead: Ahead | None = None) -> list[BaseMessage]:
        """The window that a request names, and what of the inbox goes with it.

        Args:
            operation: Whose request.
            ahead: What was read of it; of no use if another window was sent meanwhile.
        """
        request = operation.request
        known = self._known(request)
        after = None if known is None else known.upto
        if ahead is None or ahead.after != after:
            ahead = await self._store.read(self._read, operation, after)
        new = revived(ahead.messages)
        told = len(request.get("steering") or ())  # these are not in the history yet
        return [*self._keep(request, known, new[: len(new) - told]), *new[len(new) - told :]]

    def _known(self, request: Mapping[str, Any]) -> Sent | None:
        """What was sent of a request's window before; None if it is another one."""
        known = self._sent.get(request["task"]) or self._before.find(request["task"])
        if known is None or known.beginning != _beginning(request) or known.upto > request["upto"]:
            return None
        return known

    def _keep(self, request: Mapping[str, Any], known: Sent | None, new: list[BaseMessage]) -> list[BaseMessage]:
        """Note what is sent, and return it."""
        context_id, own = request["task"], self._sent.get(request["task"])
        before = self._before.find(context_id)
        old = [] if known is None else known.messages if known is own else copied(known.messages)
        sent = Sent(_beginning(request), request["upto"], request["tokens"], [*old, *new])
        self._sent[context_id] = sent
        if known is None:
            self._before.keep(context_id, sent._replace(messages=copied(new)))
        elif before is not None and (before.beginning, before.upto) == (known.beginning, known.upto):
            self._before.keep(context_id, sent._replace(messages=[*before.messages, *copied(new)]))
        return sent.messages


def _beginning(request: Mapping[str, Any]) -> Beginning:
    return request["covers"], request["summary"]
