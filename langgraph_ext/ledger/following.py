"""Followers: events as they come, for as long as somebody listens.

A follower reads what there is, then waits until the database has changed. It holds no transaction while it waits or
while its caller works, and a connection of its own, which looks for changes, until its generator ends or is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator

from langgraph_ext.database import Database
from langgraph_ext.database.watch import AsyncWatch, Watch, awatch, watch
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.events import Following, advance
from langgraph_ext.ledger.records import Event
from langgraph_ext.ledger.rows import at_least, text_or_none

__all__ = ["afollow", "follow", "patience", "start"]

_LONGEST = 10**6
"""Seconds: a longer time would overflow what waits for it."""


class Patience:
    """How often to look, and how long silence may last: seconds."""

    def __init__(self, poll_seconds: float, idle_seconds: float | None) -> None:
        self.poll_seconds = poll_seconds
        self._idle_seconds = idle_seconds
        self._silent_since = time.monotonic()

    def heard(self) -> None:
        """Something came."""
        self._silent_since = time.monotonic()

    def pause(self) -> float | None:
        """Seconds to wait before the next look; None when silence has lasted long enough."""
        if self._idle_seconds is None:
            return self.poll_seconds
        left = self._silent_since + self._idle_seconds - time.monotonic()
        return min(self.poll_seconds, left) if left > 0 else None


def patience(poll_seconds: float, idle_seconds: float | None) -> Patience:
    """Check how long somebody wants to wait.

    Raises:
        InvalidArgument: A time is no number, not above 0 (for silence: below 0), or without end.
    """
    if not _is_time(poll_seconds) or poll_seconds <= 0:
        raise InvalidArgument(f"poll_seconds is {poll_seconds!r}; it must be above 0")
    if idle_seconds is not None and (not _is_time(idle_seconds) or idle_seconds < 0):
        raise InvalidArgument(f"idle_seconds is {idle_seconds!r}; it must be 0 or more, or None")
    return Patience(poll_seconds, idle_seconds)


def start(run_id: str | None, after: int) -> Following:
    """Where a follower begins.

    Raises:
        InvalidArgument: `after` is negative.
    """
    return Following(run_id=text_or_none(run_id, "run_id"), after=at_least(0, after, "after"))


def follow(database: Database, following: Following, patience: Patience) -> Generator[Event, None, None]:
    """Events from where `following` stands."""
    rest: Following | None = following
    watching = watch(database)
    try:
        patience.heard()
        while rest is not None:
            version = watching.version()
            step = database.read(advance, rest)
            rest = step.rest
            yield from step.events
            if step.events:
                patience.heard()
            if rest is None or step.more:
                continue
            if not _changes(watching, version, patience):
                return
    finally:
        watching.close()


def _changes(watching: Watch, version: int, patience: Patience) -> bool:
    """Wait for another version; False when silence has lasted long enough."""
    while (pause := patience.pause()) is not None:
        time.sleep(pause)
        if watching.version() != version:
            return True
    return False


async def afollow(database: Database, following: Following, patience: Patience) -> AsyncGenerator[Event, None]:
    """As `follow`."""
    rest: Following | None = following
    watching = await awatch(database)
    try:
        patience.heard()
        while rest is not None:
            version = await watching.version()
            step = await database.aread(advance, rest)
            rest = step.rest
            for event in step.events:
                yield event
            if step.events:
                patience.heard()
            if rest is None or step.more:
                continue
            if not await _achanges(watching, version, patience):
                return
    finally:
        await watching.close()


async def _achanges(watching: AsyncWatch, version: int, patience: Patience) -> bool:
    """As `_changes`."""
    while (pause := patience.pause()) is not None:
        await asyncio.sleep(pause)
        if await watching.version() != version:
            return True
    return False


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value < _LONGEST
