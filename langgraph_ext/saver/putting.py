"""Putting: how the saver stores a checkpoint, from its caller's thread to the lane and back; the rows are in puts.py.

Both forms go the same way: what is ahead of the put is waited for, it is prepared, what is staged is settled with it,
and calls that came before their checkpoint are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from langgraph_ext.database import Append, Tx
from langgraph_ext.ledger import calls
from langgraph_ext.ledger.settlement import Staged
from langgraph_ext.saver import host, puts
from langgraph_ext.saver.attaching import Attaching, epoch_of_put
from langgraph_ext.saver.bodies import Bodies
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.early import Early
from langgraph_ext.saver.entries import Entries
from langgraph_ext.saver.lives import Lives
from langgraph_ext.saver.recent import RecentPut
from langgraph_ext.saver.settling import Settling
from langgraph_ext.saver.staging import beside
from langgraph_ext.saver.strict import strictly
from langgraph_ext.saver.values import Dumps

__all__ = ["Putting"]


class Putting(Attaching, Settling):
    """The part of the saver that stores checkpoints."""

    bodies: Bodies
    concurrency: str
    strict: bool
    entries: Entries
    early: Early
    lives: Lives

    def _put(
        self,
        config: RunnableConfig,
        address: Address,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[RecentPut, int]:
        """Store a checkpoint; also how often its thread's run had been doubted before (recent.py)."""
        ahead = self.entries.ahead(address.thread_id)
        doubts = self.recent.doubts(address.thread_id)
        planned = self._prepare(address, config, checkpoint, metadata, new_versions)
        if ahead:
            self.entries.wait(ahead)
        staged = self.staging.anchored(*address) if self.staging.any else ()
        if self.failed.any:  # looked at behind what is staged: an end that fails stands in one of them
            self.failed.refuse_put(address, metadata)
        if staged:
            with self._settling(staged, address):
                stored = self._submit_put(planned, staged)
        else:
            stored = self._submit_put(planned, ())
        if self.early.any and not address.checkpoint_ns:
            if left := self.early.left(address.thread_id, stored.checkpoint_id):
                self.database.submit(partial(calls.record_early, early=left))
                stored = stored._replace(run=None)
            self.early.forget(address.thread_id, stored.checkpoint_id)
        return stored, doubts

    async def _aput(
        self,
        config: RunnableConfig,
        address: Address,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[RecentPut, int]:
        """As `_put`."""
        ahead = self.entries.ahead(address.thread_id)
        async with self.database.room():
            doubts = self.recent.doubts(address.thread_id)
            planned = self._prepare(address, config, checkpoint, metadata, new_versions)
            if ahead:
                await self.entries.await_(ahead)
            staged = self.staging.anchored(*address) if self.staging.any else ()
            if self.failed.any:
                self.failed.refuse_put(address, metadata)
            if staged:
                async with self._asettling(staged, address):
                    stored = await self._queue_put(planned, staged)
            else:
                stored = await self._queue_put(planned, ())
            if self.early.any and not address.checkpoint_ns:
                if left := self.early.left(address.thread_id, stored.checkpoint_id):
                    await self.database.queue(partial(calls.record_early, early=left), None)
                    stored = stored._replace(run=None)
                self.early.forget(address.thread_id, stored.checkpoint_id)
        return stored, doubts

    def _prepare(
        self,
        address: Address,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> puts.Below | puts.Whole:
        invocation = self._invocation_of(config, address) if self.attached.any else None
        from_graph = host.from_graph(config)
        return puts.prepare(
            address,
            config,
            checkpoint,
            metadata,
            new_versions,
            parent=self.recent.find(*address),
            refuses=self.concurrency == "refuse",
            from_graph=from_graph,
            epoch=epoch_of_put(invocation, address, metadata) if from_graph else None,
            request=(self._request_of_put(invocation, config, address, checkpoint, metadata) if from_graph else None),
            bodies=self.bodies,
            life=self.lives.of(config, address.thread_id),
            dumps=self._dumps(checkpoint),
            sealer=self.database.sealer,
            stored_us=self.database.clock_us(),
        )

    def _dumps(self, checkpoint: Checkpoint) -> Dumps:
        """Encodes the values of a checkpoint."""
        held = checkpoint.get("channel_values", {})
        return strictly(self.serde, held.items(), "put") if self.strict else self.serde.dumps_typed

    def _dumps_again(self, planned: puts.Below | puts.Whole) -> Dumps:
        """Encodes those of its values that its parent was to have."""
        if not self.strict or isinstance(planned, puts.Whole):
            return self.serde.dumps_typed
        return strictly(self.serde, planned.packed.others.items(), "put")

    def _submit_put(self, planned: puts.Below | puts.Whole, staged: Sequence[Staged]) -> RecentPut:
        store, append = self._store(planned, staged)
        stored = self.database.submit(store, append=append, rouses=planned.rouses)
        if stored is None:
            store, _ = self._store(puts.again(planned, self._dumps_again(planned)), staged)
            stored = self.database.submit(store)
        assert stored is not None, "a whole put is always stored"
        return stored

    async def _queue_put(self, planned: puts.Below | puts.Whole, staged: Sequence[Staged]) -> RecentPut:
        stored = await self.database.queue(*self._store(planned, staged))
        if stored is None:
            stored = await self.database.queue(*self._store(puts.again(planned, self._dumps_again(planned)), staged))
        assert stored is not None, "a whole put is always stored"
        return stored

    def _store(
        self, planned: puts.Below | puts.Whole, staged: Sequence[Staged]
    ) -> tuple[Callable[[Tx], RecentPut | None], Append | None]:
        """The transaction of a `put`; one that has to be made again settles nothing the first time."""
        store = partial(puts.store, planned=planned, early=self.early)
        if not staged:
            return store, None if self.early.any else planned.append
        now_us = self.database.clock_us()
        return partial(beside, store=store, staged=staged, now_us=now_us, is_stored=lambda put: put is not None), None

    def _stored(self, config: RunnableConfig, address: Address, stored: RecentPut, doubts: int) -> RunnableConfig:
        """The end of a put: remember it, and name it."""
        if stored.drains is not None:
            host.drain(config, stored.drains)
            stored = stored._replace(drains=None)
        if stored.known:
            self.bodies.remember(address.thread_id, address.checkpoint_ns, stored.known)
            stored = stored._replace(known=None)
        self.recent.remember(address.thread_id, address.checkpoint_ns, stored, doubts)
        return {
            "configurable": {
                "thread_id": config["configurable"]["thread_id"],
                "checkpoint_ns": address.checkpoint_ns,
                "checkpoint_id": stored.checkpoint_id,
            }
        }
