"""Sent: the windows that models of this process were sent last, so that a chat's next turn reads what is new alone.

A context only grows, so what was read of it stays right, whoever has added to it meanwhile. Forgetting it costs a read.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.engine.kept import Kept, by_database

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
        self._windows = Kept[Sent](tokens)

    def find(self, context_id: str) -> Sent | None:
        """What was kept of a context."""
        return self._windows.find(context_id)

    def keep(self, context_id: str, sent: Sent) -> None:
        """Keep a window instead of the one before; those that were used longest ago are forgotten for it."""
        self._windows.keep(context_id, sent, sent.tokens)


last_sent = by_database(LastSent)
"""The windows of a database."""
