"""Writing: how the saver stores what a task wrote, from its caller's thread to the lane; the row is in task_writes.py.

Both forms go the same way: the call enters, so that the next checkpoint waits until it is queued (entries.py); it is
prepared, and what its task has staged is settled with it. Only the sync form may linger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_ext.database import Tx
from langgraph_ext.ledger.settlement import Staged
from langgraph_ext.saver import host, task_writes
from langgraph_ext.saver.attaching import Attaching, epoch_of
from langgraph_ext.saver.bodies import Bodies
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.early import Early
from langgraph_ext.saver.entries import Entries
from langgraph_ext.saver.identity import Seen
from langgraph_ext.saver.lives import Lives
from langgraph_ext.saver.settling import Settling
from langgraph_ext.saver.staging import beside
from langgraph_ext.saver.strict import strictly
from langgraph_ext.saver.timeouts import Timeouts
from langgraph_ext.saver.writes import are_regular

__all__ = ["Writing"]


class Writing(Attaching, Settling):
    """The part of the saver that stores tasks' writes."""

    bodies: Bodies
    entries: Entries
    early: Early
    lives: Lives
    seen: Seen
    strict: bool
    timeouts: Timeouts

    def _put_writes(
        self, address: Address, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """Store a task's writes."""
        entry = self.entries.enter(address.thread_id)
        try:
            written = self._prepare_writes(address, config, writes, task_id, task_path)
            if written.call is not None:
                self.recent.doubt_run(address.thread_id)  # for what is prepared before it is committed, and again after
            may_linger = task_writes.may_linger(written, task_path)
            staged = self._staged_by(address, task_id) if self.staging.any else ()
            if self.failed.any and host.from_graph(config):
                self.failed.refuse_writes(address, task_id)
            if staged:
                with self._settling(staged, address):
                    stored = self.database.submit(self._storing(written, staged), queued=entry.leave)
            else:
                store = partial(task_writes.store, written=written, early=self.early)
                stored = self.database.submit(store, append=written.append, may_linger=may_linger, queued=entry.leave)
                if stored is None:  # it, or a call that went with it, was refused
                    stored = self.database.submit(partial(store, again=True))
            self._remember(address, stored)
            if written.call is not None:
                self.recent.doubt_run(address.thread_id)
        finally:
            if not entry.left:
                entry.leave()

    async def _aput_writes(
        self, address: Address, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """As `_put_writes`."""
        async with self.database.room():
            entry = self.entries.enter(address.thread_id)
            try:
                written = self._prepare_writes(address, config, writes, task_id, task_path)
                if written.call is not None:
                    self.recent.doubt_run(address.thread_id)
                staged = self._staged_by(address, task_id) if self.staging.any else ()
                if self.failed.any and host.from_graph(config):
                    self.failed.refuse_writes(address, task_id)
                if staged:
                    committed = self.database.queue(self._storing(written, staged))
                else:
                    committed = self.database.queue(
                        partial(task_writes.store, written=written, early=self.early), written.append
                    )
            finally:
                entry.leave()
            if staged:
                async with self._asettling(staged, address):
                    stored = await committed
            else:
                stored = await committed
            if stored is None:
                store = partial(task_writes.store, written=written, early=self.early, again=True)
                stored = await self.database.queue(store)
            self._remember(address, stored)
        if written.call is not None:
            self.recent.doubt_run(address.thread_id)

    def _prepare_writes(
        self, address: Address, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> task_writes.TaskWrites:
        invocation = self._invocation_of(config, address) if self.attached.any else None
        regular = are_regular(writes)
        return task_writes.prepare(
            address,
            config,
            writes,
            task_id,
            task_path,
            serde=self.serde,
            dumps=strictly(self.serde, writes, "put_writes") if self.strict else self.serde.dumps_typed,
            sealer=self.database.sealer,
            seen=self.seen,
            bodies=self.bodies,
            epoch=epoch_of(invocation),
            started_us=None if invocation is None else invocation.started.pop(task_id, None),
            regular=regular,
            life=self.lives.of(config, address.thread_id),
            timed_out=(
                () if regular else self.timeouts.ended((address.thread_id, address.checkpoint_id, task_id), writes)
            ),
            stored_us=self.database.clock_us(),
        )

    def _remember(self, address: Address, stored: task_writes.Answer) -> None:
        if isinstance(stored, dict):
            self.bodies.remember(address.thread_id, address.checkpoint_ns, stored)

    def _storing(self, written: task_writes.TaskWrites, staged: Sequence[Staged]) -> Callable[[Tx], task_writes.Answer]:
        """The transaction of a `put_writes` that settles what is staged, even if there are no writes."""
        store = partial(task_writes.store, written=written, early=self.early)
        return partial(beside, store=store, staged=staged, now_us=self.database.clock_us())
