"""Removal: the saver's methods that take checkpoints away, or copy them; the transactions are in deletion.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_ext.database import Database, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import deletion, pruning
from langgraph_ext.saver.config import text

__all__ = ["Removal"]


class Removal(BaseCheckpointSaver[Any]):
    """The part of a saver that removes and copies. What is removed is gone when the call returns."""

    database: Database

    def delete_thread(self, thread_id: str, *, keep_ledger: bool = False) -> None:
        """Delete everything of a thread, for good; nothing happens when there is no such thread.

        Who still runs it, in whatever process, is refused from here on (`thread_deleted`). A checkpoint without a
        parent, such as new input brings, begins the thread anew.

        Args:
            thread_id: The thread.
            keep_ledger: Whether its runs stay in the ledger, with their totals and events, and without payloads; those
                that are open are cancelled. Without it, what was kept of the thread at earlier deletions goes as well.

        Raises:
            InvalidArgument: No thread is named.
            LeaseError: Somebody runs it, under a lease, in this process or in another (`thread_busy`).
        """
        self.database.transact(
            deletion.delete_thread,
            _text(thread_id, "thread_id", "delete_thread"),
            keep_as=uuid4().hex if keep_ledger else None,
            stored_us=self.database.clock_us(),
        )

    async def adelete_thread(self, thread_id: str, *, keep_ledger: bool = False) -> None:
        """As `delete_thread`."""
        await self.database.atransact(
            deletion.delete_thread,
            _text(thread_id, "thread_id", "delete_thread"),
            keep_as=uuid4().hex if keep_ledger else None,
            stored_us=self.database.clock_us(),
        )

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs, with their writes. May be repeated.

        Every other checkpoint keeps its state: values it shares with a deleted one move to it. A run that has none left
        goes from the ledger, with its effects; agent runs go with the last of the runs that share their history.
        """
        self.database.transact(
            deletion.delete_for_runs,
            _texts(run_ids, "run id", "delete_for_runs"),
            stored_us=self.database.clock_us(),
        )

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self.database.atransact(
            deletion.delete_for_runs,
            _texts(run_ids, "run id", "delete_for_runs"),
            stored_us=self.database.clock_us(),
        )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its history to a new thread id. A source that does not exist copies nothing.

        Raises:
            InvalidArgument: The target is not empty.
        """
        source, target = _texts([source_thread_id, target_thread_id], "thread_id", "copy_thread")
        self.database.transact(deletion.copy_thread, source, target, stored_us=self.database.clock_us())

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        source, target = _texts([source_thread_id, target_thread_id], "thread_id", "copy_thread")
        await self.database.atransact(deletion.copy_thread, source, target, stored_us=self.database.clock_us())

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Shorten threads, each in transactions of its own.

        Args:
            thread_ids: The threads; one that does not exist is passed over.
            strategy: `"keep_latest"` keeps the newest checkpoint of each namespace with its writes, what its
                DeltaChannels are rebuilt from, and the checkpoints at which a question is open, an effect in doubt or
                an attempt running. `"delete"` and `"delete_all"` delete the threads.

        Raises:
            InvalidArgument: The strategy is none of these.
            LeaseError: Somebody runs one of them, under a lease (`thread_busy`). Those before it are done.
        """
        transaction = _prune_by(strategy)
        for thread_id in _texts(thread_ids, "thread_id", "prune"):
            while self.database.transact(transaction, thread_id, stored_us=self.database.clock_us()):
                pass

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        transaction = _prune_by(strategy)
        for thread_id in _texts(thread_ids, "thread_id", "prune"):
            while await self.database.atransact(transaction, thread_id, stored_us=self.database.clock_us()):
                pass


def _texts(values: Sequence[object] | None, name: str, method: str) -> Sequence[str]:
    if values is None or isinstance(values, str):
        raise InvalidArgument(f"{method}: {values!r} is no list; pass a list of each {name}")
    return [_text(value, name, method) for value in values]


def _text(value: object, name: str, method: str) -> str:
    """An id as text, as LangGraph's savers take numbers and UUIDs too; None is a name that is missing."""
    return text(value if value is None else str(value), name, method)


def _prune_by(strategy: str) -> Callable[..., bool]:
    """The transaction that is to be repeated as long as it says so."""
    if strategy == "keep_latest":
        return _prune_latest
    if strategy in ("delete", "delete_all"):
        return _delete
    raise InvalidArgument(f'prune: strategy is {strategy!r}; it must be "keep_latest" or "delete"')


def _prune_latest(tx: Tx, thread_id: str, *, stored_us: int) -> bool:
    return pruning.prune(tx, thread_id, pruning.LATEST, stored_us=stored_us).more


def _delete(tx: Tx, thread_id: str, *, stored_us: int) -> bool:
    deletion.delete_thread(tx, thread_id, stored_us=stored_us)
    return False
