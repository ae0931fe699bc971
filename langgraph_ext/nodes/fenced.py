"""Fenced: transactions of one attempt, each made while its thread is held under its epoch (rules L12, L52).

What one refuses reaches LangGraph as a signal. The sync and async methods differ in how they wait, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from langgraph_ext.database import Tx
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver.refusals import refuse

__all__ = ["Fenced"]

T = TypeVar("T")


class Fenced:
    """Commits what one attempt does."""

    def __init__(self, place: Place, key: FrameKey) -> None:
        self._thread_id, self._database, self._key = place.thread_id, place.saver.database, key

    def commit(self, act: Callable[..., T]) -> T:
        """Commit `act(tx, key, now_us=…)`, if the thread is still held under the attempt's epoch."""
        return self.transact(self._fencing(act))

    async def acommit(self, act: Callable[..., T]) -> T:
        """As `commit`."""
        return await self.atransact(self._fencing(act))

    def transact(self, act: Callable[[Tx], T]) -> T:
        """Commit what looks by itself at what it may do."""
        try:
            return self._database.transact(act)
        except LangGraphExtError as error:
            refuse(error)

    async def atransact(self, act: Callable[[Tx], T]) -> T:
        """As `transact`."""
        try:
            return await self._database.atransact(act)
        except LangGraphExtError as error:
            refuse(error)

    def _fencing(self, act: Callable[..., T]) -> Callable[[Tx], T]:
        return partial(_fenced, thread_id=self._thread_id, key=self._key, act=act, now_us=self._database.clock_us())


def _fenced(tx: Tx, *, thread_id: str, key: FrameKey, act: Callable[..., T], now_us: int) -> T:
    leases.check(tx, thread_id, key.epoch)
    return act(tx, key, now_us=now_us)
