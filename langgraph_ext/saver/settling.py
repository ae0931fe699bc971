"""Settling: what the saver does around a commit that settles ends, and when an application's part of it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_ext.database import Database, Tx
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import endings
from langgraph_ext.ledger.inside import InsideFailed
from langgraph_ext.ledger.settlement import Staged
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.saver import host
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.failed import Failed, Failure
from langgraph_ext.saver.recent import Recent
from langgraph_ext.saver.staging import Staging

__all__ = ["Settling"]


class Settling:
    """The part of the saver that knows of ends."""

    database: Database
    serde: SerializerProtocol
    staging: Staging
    failed: Failed
    recent: Recent

    def _staged_by(self, address: Address, task_id: str) -> Sequence[Staged]:
        """What a task's `put_writes` settles, oldest first.

        Its own ends, and what is left of those of a subgraph that it runs: LangGraph hands over no writes of some tasks
        in there, and what they gave is in the writes of this one.
        """
        assert address.checkpoint_id is not None, "task_writes.prepare refuses a config without a checkpoint"
        own = self.staging.of_task(address.thread_id, address.checkpoint_id, task_id)
        around = self.staging.anchored(*address)
        return tuple(dict.fromkeys((*own, *(staged for staged in around if staged.is_of(task_id)))))

    @contextmanager
    def _settling(self, staged: Sequence[Staged], at: Address) -> Iterator[None]:
        """Around the commit of a call at this address.

        Raises:
            BaseException: What a function inside raised, once its attempt is on record as failed.
        """
        try:
            with self.staging.settling(staged):
                yield
        except InsideFailed as failed:
            record = self._failure(failed, staged, at)
            try:
                self.database.transact(record)
            except LangGraphExtError as unrecorded:
                _note(failed.error, unrecorded)
            raise failed.error from failed.error.__cause__
        finally:
            self._doubt(at)

    @asynccontextmanager
    async def _asettling(self, staged: Sequence[Staged], at: Address) -> AsyncIterator[None]:
        """As `_settling`."""
        try:
            with self.staging.settling(staged):
                yield
        except InsideFailed as failed:
            record = self._failure(failed, staged, at)
            try:
                await self.database.queue(record)
            except LangGraphExtError as unrecorded:
                _note(failed.error, unrecorded)
            raise failed.error from failed.error.__cause__
        finally:
            self._doubt(at)

    def _failure(self, failed: InsideFailed, staged: Sequence[Staged], at: Address) -> Callable[[Tx], Any]:
        """Note that an end failed; returns the transaction that records it."""
        (end,) = (each for each in staged if each.attempt_id == failed.attempt_id)
        message = message_of(failed.error) if host.is_plain(self.serde) else ""
        told = (type(failed.error).__name__, message, getattr(failed.error, "code", None))
        # first: others may come upon it meanwhile
        self.failed.add(Failure(staged=end, at=at, error=failed.error, told=told))
        self.staging.done(end)
        self._doubt(at)
        return partial(
            endings.fail,
            attempt_id=end.attempt_id,
            error=told,
            gives_back=end.gives_back,
            now_us=self.database.clock_us(),
            root_id=None if at.checkpoint_ns else at.checkpoint_id,
        )

    def _doubt(self, at: Address) -> None:
        if self.failed.any:
            self.recent.doubt_run(at.thread_id)  # its run may have failed


def _note(error: BaseException, unrecorded: LangGraphExtError) -> None:
    error.add_note(
        f"that the attempt failed could not be recorded ({unrecorded.code}): it seems to run until the thread is gone "
        "on with"
    )
