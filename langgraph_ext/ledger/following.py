"""Followers: events as they come, for as long as somebody listens.

A follower reads what there is, then waits until the database has changed. It holds no transaction while it waits or
while its caller works, and a connection of its own, which looks for changes, until its generator ends or is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, replace

from langgraph_ext.database import Database, Row, Tx
from langgraph_ext.database.watch import AsyncWatch, Watch, awatch, watch
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import horizon
from langgraph_ext.ledger.events import Scan, event_of, scan
from langgraph_ext.ledger.node_paths import NodePaths
from langgraph_ext.ledger.order import Key, Shown, behind, keys_of_run, seen_up_to
from langgraph_ext.ledger.records import Event, RunStatus
from langgraph_ext.ledger.retained import shown_of, start_behind
from langgraph_ext.ledger.rows import at_least, run_named, text_or_none
from langgraph_ext.ledger.runs import is_apart

__all__ = ["Following", "Stride", "advance", "afollow", "follow", "from_now", "patience", "start"]

_LONGEST = 10**6
"""Seconds: a longer time would overflow what waits for it."""


_READ = 256
"""Events that are read at a time."""

_SCANNED = 4096
"""Most rows of the log that are looked at in one snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How far a follower has come."""

    run_id: str | None
    after: int
    """What it has been shown, and of the log what it has looked at."""
    begun: bool = False
    ahead: tuple[tuple[int, Key], ...] = ()
    """Of one run, events found when it began: `(run_seq, key)`."""
    run_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stride:
    """What a follower read."""

    events: list[Event]
    rest: Following | None
    """Where to go on; None if nothing more is to come."""
    more: bool
    """Whether there is more to read at once."""


def advance(tx: Tx, following: Following) -> Stride:
    """Read on.

    Raises:
        NotFound: There is no run of this name (`run_not_found`), or events that it was to be shown are gone
            (`cursor_expired`).
    """
    if following.run_id is None:
        following = replace(following, after=horizon.start_behind(tx, following.after))
        found = scan(tx, NodePaths(tx), following.after, _READ, most=_SCANNED)
        rest = replace(following, after=found.upto)
        return Stride(events=found.events, rest=rest, more=not found.at_end)
    if not following.begun:
        following = _begin(tx, following)
    if following.ahead:
        return _deliver(tx, following)
    return _tail(tx, following)


def from_now(tx: Tx, run_id: str) -> Following:
    """Where a follower begins that wants nothing of what was before.

    Raises:
        NotFound: There is no run of this name (`run_not_found`).
    """
    return replace(_begin(tx, start(run_id, 0)), ahead=())


def _begin(tx: Tx, following: Following) -> Following:
    """Find a run's events once; from here on the log is read behind them."""
    assert following.run_id is not None
    run = run_named(tx, following.run_id)
    after, found = start_behind(run, following.after), list(shown_of(run, keys_of_run(tx, run)))
    ahead = tuple(each for each in found if each[1].cursor > after)
    last = behind(tx.one("log_last")["seq"] or 0)
    run_seq = found[-1][0] if found else run["events_gone"]
    return replace(following, after=max(last, after), begun=True, ahead=ahead, run_seq=run_seq)


def _deliver(tx: Tx, following: Following) -> Stride:
    paths = NodePaths(tx)
    _refuse_gone(tx, following, following.ahead[0][1].cursor - 1)
    now, later = following.ahead[:_READ], following.ahead[_READ:]
    rows = ((number, key.cursor, tx.maybe("log_get", seq=key.seq)) for number, key in now)
    events = [event_of(tx, paths, Shown(cursor, row), number) for number, cursor, row in rows if row is not None]
    return Stride(events=events, rest=replace(following, ahead=later), more=True)


def _tail(tx: Tx, following: Following) -> Stride:
    run = tx.maybe("run_named", run_id=following.run_id)
    if run is None:
        return Stride(events=[], rest=None, more=False)  # its thread was deleted
    _refuse_gone(tx, following, following.after)
    if is_apart(run):
        found = _own(tx, run, following.after)
    else:
        found = scan(tx, NodePaths(tx), following.after, _READ, most=_SCANNED, run_id=following.run_id)
    numbered = [replace(event, run_seq=number) for number, event in enumerate(found.events, following.run_seq + 1)]
    rest = replace(following, after=found.upto, run_seq=following.run_seq + len(numbered))
    ended = found.at_end and RunStatus(run["status"]).ended
    return Stride(events=numbered, rest=None if ended else rest, more=not found.at_end)


def _own(tx: Tx, run: Row, after: int) -> Scan:
    """As `scan`, of a run that has no checkpoints: what belongs to it says so, and nothing else is looked at."""
    rows = list(tx.all("run_events_page", run=run["run"], after=seen_up_to(after), size=_READ))
    paths = NodePaths(tx)
    events = [event_of(tx, paths, Shown(behind(row["seq"]), row), None) for row in rows]
    return Scan(events, events[-1].cursor if events else after, at_end=len(rows) < _READ)


def _refuse_gone(tx: Tx, following: Following, after: int) -> None:
    """Raise if events behind a cursor are gone that the follower was still to be shown."""
    run = tx.maybe("run_named", run_id=following.run_id)
    if run is not None:
        start_behind(run, after)


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
