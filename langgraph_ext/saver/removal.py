"""Removal: the saver's methods that take checkpoints away, or copy them; the transactions are in retention.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_ext.database import Database
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import retention
from langgraph_ext.saver.config import text

__all__ = ["Removal"]


class Removal(BaseCheckpointSaver[Any]):
    """The part of a saver that removes and copies. What is removed is gone when the call returns."""

    database: Database

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread; nothing happens when there is no such thread.

        Raises:
            InvalidArgument: No thread is named.
            LeaseError: Another process is running it, under a lease (`thread_busy`).
        """
        self.database.transact(
            retention.delete_thread,
            _text(thread_id, "thread_id", "delete_thread"),
            stored_us=self.database.clock_us(),
        )

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self.database.atransact(
            retention.delete_thread,
            _text(thread_id, "thread_id", "delete_thread"),
            stored_us=self.database.clock_us(),
        )

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs, with their writes. May be repeated.

        Every other checkpoint keeps its state: values it shares with a deleted one move to it.
        """
        self.database.transact(
            retention.delete_for_runs,
            _texts(run_ids, "run id", "delete_for_runs"),
            stored_us=self.database.clock_us(),
        )

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self.database.atransact(
            retention.delete_for_runs,
            _texts(run_ids, "run id", "delete_for_runs"),
            stored_us=self.database.clock_us(),
        )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its history to a new thread id. A source that does not exist copies nothing.

        Raises:
            InvalidArgument: The target is not empty.
        """
        source, target = _texts([source_thread_id, target_thread_id], "thread_id", "copy_thread")
        self.database.transact(retention.copy_thread, source, target, stored_us=self.database.clock_us())

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        source, target = _texts([source_thread_id, target_thread_id], "thread_id", "copy_thread")
        await self.database.atransact(retention.copy_thread, source, target, stored_us=self.database.clock_us())

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Shorten threads, each in a transaction of its own.

        Args:
            thread_ids: The threads; one that does not exist is passed over.
            strategy: `"keep_latest"` keeps the newest checkpoint of each namespace with its writes, and what its
                DeltaChannels are rebuilt from. `"delete"` and `"delete_all"` delete the threads.

        Raises:
            InvalidArgument: The strategy is none of these.
            LeaseError: Another process is running one that is to be deleted (`thread_busy`).
        """
        transaction = _prune_by(strategy)
        for thread_id in _texts(thread_ids, "thread_id", "prune"):
            self.database.transact(transaction, thread_id, stored_us=self.database.clock_us())

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        transaction = _prune_by(strategy)
        for thread_id in _texts(thread_ids, "thread_id", "prune"):
            await self.database.atransact(transaction, thread_id, stored_us=self.database.clock_us())


def _texts(values: Sequence[object] | None, name: str, method: str) -> Sequence[str]:
    if values is None or isinstance(values, str):
        raise InvalidArgument(f"{method}: {values!r} is no list; pass a list of each {name}")
    return [_text(value, name, method) for value in values]


def _text(value: object, name: str, method: str) -> str:
    """An id as text, as LangGraph's savers take numbers and UUIDs too; None is a name that is missing."""
    return text(value if value is None else str(value), name, method)


def _prune_by(strategy: str) -> Callable[..., None]:
    if strategy == "keep_latest":
        return retention.prune_thread
    if strategy in ("delete", "delete_all"):
        return retention.delete_thread
    raise InvalidArgument(f'prune: strategy is {strategy!r}; it must be "keep_latest" or "delete"')
