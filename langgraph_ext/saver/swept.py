"""What a sweep is to do, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.open_ends import Kept
from langgraph_ext.saver.pruning import Keep

__all__ = ["Policy", "Swept", "policy_of"]

_LONGEST_SECONDS = 10**10
"""About 300 years: more would not fit beside the time in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep took away, or would take away (`dry_run`)."""

    threads: int = 0
    """Threads that were looked at."""
    pruned: int = 0
    """Of these, those that were shortened."""
    deleted: int = 0
    """And those that were deleted."""
    skipped: Mapping[Kept, int] = field(default_factory=dict)
    """And those of which something would have been taken away, and which were left as they are: how many, by why."""
    checkpoints: int = 0
    """Checkpoints that are listed no more."""
    hidden: int = 0
    """Of these, those that stay stored because a DeltaChannel is rebuilt from them."""
    events: int = 0
    """Events that are shown no more because of their age."""
    batches: int = 0
    """Transactions that it took."""

    def __add__(self, other: Swept) -> Swept:
        skipped = {why: self.skipped.get(why, 0) + other.skipped.get(why, 0) for why in Kept}
        return Swept(
            threads=self.threads + other.threads,
            pruned=self.pruned + other.pruned,
            deleted=self.deleted + other.deleted,
            skipped={why: number for why, number in skipped.items() if number},
            checkpoints=self.checkpoints + other.checkpoints,
            hidden=self.hidden + other.hidden,
            events=self.events + other.events,
            batches=self.batches + other.batches,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What goes: times in microseconds since the epoch, UTC."""

    keep_last: int | None
    """So many checkpoints of each namespace stay; None: no thread is looked at."""
    before_us: int | None
    """Of the others, those that were stored before go; None: all of them."""
    events_before_us: int | None
    """Events stored before go; None: none do."""
    keep_ledger: bool
    """Whether runs, totals and events of threads that are deleted stay."""

    @property
    def keep(self) -> Keep:
        """What is kept of a thread that is not deleted."""
        return Keep(last=max(self.keep_last or 0, 1), since_us=self.before_us, finished=False)


def policy_of(
    *,
    older_than_seconds: float | None,
    keep_last: int | None,
    events_older_than_seconds: float | None,
    keep_ledger: bool,
    now_us: int,
) -> Policy:
    """What a sweep is asked for, checked.

    Raises:
        InvalidArgument: It is asked for nothing, for what cannot be, or to delete every thread there is.
    """
    before_us = _before(older_than_seconds, "older_than_seconds", now_us)
    events_before_us = _before(events_older_than_seconds, "events_older_than_seconds", now_us)
    if keep_last is not None and (type(keep_last) is not int or keep_last < 0):
        raise InvalidArgument(f"sweep: keep_last is {keep_last!r}; it must be a whole number, 0 or more")
    if keep_last == 0 and before_us is None:
        raise InvalidArgument("sweep: keep_last=0 deletes threads; say with older_than_seconds how old they must be")
    if before_us is events_before_us is keep_last is None:
        raise InvalidArgument("sweep: say what goes: older_than_seconds, keep_last, or events_older_than_seconds")
    return Policy(
        keep_last=1 if keep_last is None and before_us is not None else keep_last,
        before_us=before_us,
        events_before_us=events_before_us,
        keep_ledger=bool(keep_ledger),
    )


def _before(seconds: Any, name: str, now_us: int) -> int | None:
    if seconds is None:
        return None
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_SECONDS
    if not is_time:
        raise InvalidArgument(f"sweep: {name} is {seconds!r}; it must be a number of seconds, 0 or more")
    return now_us - round(float(seconds) * 1_000_000)
