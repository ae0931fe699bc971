"""Sent: the windows that models of this process were sent last, so that a chat's next turn reads what is new alone.

A context only grows, so what was read of it stays right, whoever has added to it meanwhile. Forgetting it costs a read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from copy import copy
from typing import NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Database

__all__ = ["Beginning", "LastSent", "Sent", "copied", "last_sent"]

_TOKENS = 2_000_000
"""About so many tokens of windows are kept for a database: some ten megabytes of text."""

Beginning = tuple[int, int | None]
"""Where a window begins: the row behind which it does, and its summary's."""


class Sent(NamedTuple):
    """The window of a context that a model was sent last."""

    beginning: Beginning
    upto: int
    """Its last row."""
    tokens: int
    """About how many it has."""
    messages: list[BaseMessage]


def copied(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The same messages, of which whoever has the others may make others."""
    return [copy(each) for each in messages]


class LastSent:
    """Windows by context, those that were used last. May be used by several threads.

    Args:
        tokens: About how many tokens they have together, at most.
    """

    def __init__(self, tokens: int = _TOKENS) -> None:
        self._most, self._tokens = tokens, 0
        self._windows: OrderedDict[str, Sent] = OrderedDict()
        self._mutex = threading.Lock()

    def find(self, context_id: str) -> Sent | None:
        """What was kept of a context."""
        with self._mutex:
            if context_id in self._windows:
                self._windows.move_to_end(context_id)
            return self._windows.get(context_id)

    def keep(self, context_id: str, sent: Sent) -> None:
        """Keep a window instead of the one before; those that were used longest ago are forgotten for it."""
        with self._mutex:
            before = self._windows.pop(context_id, None)
            self._tokens -= 0 if before is None else before.tokens
            if sent.tokens > self._most:
                return
            self._windows[context_id] = sent
            self._tokens += sent.tokens
            while self._tokens > self._most:
                _, forgotten = self._windows.popitem(last=False)
                self._tokens -= forgotten.tokens


_OF: WeakKeyDictionary[Database, LastSent] = WeakKeyDictionary()
_MUTEX = threading.Lock()


def last_sent(database: Database) -> LastSent:
    """The windows of a database, for as long as it is in use."""
    with _MUTEX:
        return _OF.setdefault(database, LastSent())
