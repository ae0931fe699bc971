"""Sweeps: the saver's methods that apply retention to many threads, or to one; the transactions are in sweeping.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_ext.database import Database
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import pruning, sweeping
from langgraph_ext.saver.batches import Batches, arun_batches, run_batches
from langgraph_ext.saver.config import text
from langgraph_ext.saver.pruning import Keep
from langgraph_ext.saver.retention import Pruned
from langgraph_ext.saver.sweeping import Step
from langgraph_ext.saver.swept import Policy, Swept, policy_of

__all__ = ["OnProgress", "Sweeps"]

OnProgress = Callable[[Swept], object]

_LONGEST_PAUSE_SECONDS = 0.05


_Done = tuple[Swept, Step | None]
"""What a batch has done, and where to go on."""


class _Batch(NamedTuple):
    """A transaction, and how long others have the database before it."""

    fn: Callable[..., _Done]
    """Takes the transaction and `now_us`."""
    pause_seconds: float


class Sweeps(BaseCheckpointSaver[Any]):
    """The part of a saver that takes away what is old."""

    database: Database

    def sweep(
        self,
        *,
        older_than_seconds: float | None = None,
        keep_last: int | None = None,
        events_older_than_seconds: float | None = None,
        keep_ledger: bool = False,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Swept:
        """Take away old checkpoints of all threads, and old events; a bounded batch at a time, others in between.

        A checkpoint goes that was stored longer ago than `older_than_seconds` and is not among the `keep_last` newest
        of its namespace; those of a subgraph that can never go on go as well. What a DeltaChannel is rebuilt from stays
        stored, out of sight. A thread that somebody runs under a lease, that has open questions or effects in doubt is
        left as it is.

        It may be stopped at any moment, and called again.

        Args:
            older_than_seconds: How long ago; None: whenever.
            keep_last: So many stay in any case: 1 if it is left out and an age is given. 0: a thread in which nothing
                was stored for so long is deleted, as by `delete_thread`.
            events_older_than_seconds: Events stored longer ago are shown no more; a stored cursor from before is told
                so (`cursor_expired`). None: they stay.
            keep_ledger: Whether runs, totals and events of threads that are deleted stay, without payloads.
            dry_run: Only look, and say what would go. (Of a thread that is to be deleted, all its checkpoints.)
            on_progress: Called after each batch, with what was done so far.

        Returns:
            What was done.

        Raises:
            InvalidArgument: An argument is not what it must be, or none says what goes.
        """
        policy = policy_of(
            older_than_seconds=older_than_seconds,
            keep_last=keep_last,
            events_older_than_seconds=events_older_than_seconds,
            keep_ledger=keep_ledger,
            now_us=self.database.clock_us(),
        )

        def run(batch: _Batch) -> _Done:
            time.sleep(batch.pause_seconds)
            door = self.database.read if dry_run else self.database.transact
            return door(batch.fn, now_us=self.database.clock_us())

        return run_batches(self._batches(policy, dry_run, on_progress), run)

    async def asweep(
        self,
        *,
        older_than_seconds: float | None = None,
        keep_last: int | None = None,
        events_older_than_seconds: float | None = None,
        keep_ledger: bool = False,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Swept:
        """As `sweep`."""
        policy = policy_of(
            older_than_seconds=older_than_seconds,
            keep_last=keep_last,
            events_older_than_seconds=events_older_than_seconds,
            keep_ledger=keep_ledger,
            now_us=self.database.clock_us(),
        )

        async def run(batch: _Batch) -> _Done:
            await asyncio.sleep(batch.pause_seconds)
            door = self.database.aread if dry_run else self.database.atransact
            return await door(batch.fn, now_us=self.database.clock_us())

        return await arun_batches(self._batches(policy, dry_run, on_progress), run)

    def prune_thread(self, thread_id: str, *, keep_last: int = 1, dry_run: bool = False) -> Pruned:
        """Shorten one thread, as `prune` does, and say what was taken away.

        Args:
            thread_id: The thread; one that does not exist has nothing.
            keep_last: So many of the newest checkpoints of each namespace stay; 1 or more.
            dry_run: Only look, and say what would go, but for the events.

        Raises:
            InvalidArgument: No thread is named, or `keep_last` is no such number.
            LeaseError: Somebody runs it, under a lease (`thread_busy`).
        """
        named, keep = text(thread_id, "thread_id", "prune_thread"), _keep(keep_last)
        if dry_run:
            return self.database.read(pruning.to_prune, named, keep)
        gone = Pruned(more=True)
        while gone.more:
            gone += self.database.transact(pruning.prune, named, keep, stored_us=self.database.clock_us())
        return gone

    async def aprune_thread(self, thread_id: str, *, keep_last: int = 1, dry_run: bool = False) -> Pruned:
        """As `prune_thread`."""
        named, keep = text(thread_id, "thread_id", "prune_thread"), _keep(keep_last)
        if dry_run:
            return await self.database.aread(pruning.to_prune, named, keep)
        gone = Pruned(more=True)
        while gone.more:
            gone += await self.database.atransact(pruning.prune, named, keep, stored_us=self.database.clock_us())
        return gone

    def _batches(self, policy: Policy, dry_run: bool, on_progress: OnProgress | None) -> Batches[_Batch, _Done, Swept]:
        """A sweep; behind each batch as long a pause: a lock taken again at once would starve who waits elsewhere."""
        step: Step | None = sweeping.begin(policy)
        done, pause_seconds = Swept(), 0.0
        while step is not None:
            begun = time.monotonic()
            if dry_run:
                fn = partial(sweeping.look, step=step, policy=policy)
            else:
                fn = partial(sweeping.sweep, step=step, policy=policy, names=uuid4().hex)
            swept, step = yield _Batch(fn, pause_seconds)
            took = time.monotonic() - begun - pause_seconds
            pause_seconds = 0.0 if dry_run else min(took, _LONGEST_PAUSE_SECONDS)
            done += swept
            if on_progress is not None:
                on_progress(done)
        return done


def _keep(keep_last: int) -> Keep:
    if type(keep_last) is not int or keep_last < 1:
        raise InvalidArgument(f"prune_thread: keep_last is {keep_last!r}; it must be a whole number, 1 or more")
    return Keep(last=keep_last)
