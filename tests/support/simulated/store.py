"""One process's door to the database: its transactions one after the other, each of which may fail.

    asked ──▶ queued ──▶ stalled for seconds, with all behind it
                  ├────▶ aborted: nothing was written, and it is told so
                  └────▶ written ──▶ answered, some steps later
                             └─────▶ the answer is lost: it is told that the database has failed

A step lies between each two of these, so a process dies or stops there too. Cancelling who waits undoes nothing, as in
the product.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from langgraph_ext.database import Database, Tx
from langgraph_ext.engine.commits import Committed, Held, RuntimeCommit
from langgraph_ext.engine.store import Store
from langgraph_ext.errors import StoreError
from tests.support.simulated.witness import Witness

__all__ = ["Door", "FaultyStore"]

Fault = Callable[[], tuple[str, float] | None]
"""What happens to the next transaction: "abort", "lost" or "stall", and how much of it; or nothing."""


class Door:
    """A database, as far as the engine uses one, whose transactions are those of a store."""

    def __init__(self, store: FaultyStore, clock_us: Callable[[], int]) -> None:
        self._store = store
        self.clock_us = clock_us
        self.name = "simulated"

    async def atransact(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self._store.transact(fn, *args, **kwargs)

    async def aread(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self._store.read(fn, *args, **kwargs)


class FaultyStore(Store):
    """The engine's store in one process.

    Args:
        database: In memory, shared by all processes.
        witness: Looks at what each transaction has written, within it.
        fault: Chooses.
    """

    def __init__(
        self,
        database: Database,
        witness: Witness,
        fault: Fault,
        *,
        clock_us: Callable[[], int],
        ids: Callable[[], str],
    ) -> None:
        super().__init__(Door(self, clock_us), clock_us=clock_us, ids=ids)  # type: ignore[arg-type]
        self._shared = database
        self._witness = witness
        self._fault = fault
        self._queue: deque[Callable[[str], None]] = deque()
        self._stalls_until = 0.0
        self.closed = False
        """Whether it does nothing any more: of a process that is long dead."""

    async def commit(self, wanted: RuntimeCommit, held: Held, look: Callable[[Tx], object] | None = None) -> Committed:
        with self._witness.in_flight(wanted):
            return await super().commit(wanted, held, look)

    async def transact(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._queued(self._witness.watched(fn, args), args, kwargs)

    async def read(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._queued(fn, args, kwargs)

    async def _queued(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.closed:
            raise StoreError("it is closed", code="closed")
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._queue.append(partial(self._run, answer, partial(self._shared.transact, fn, *args, **kwargs)))
        loop.call_soon(self._run_next)
        return await answer

    def _run_next(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._stalls_until:
            loop.call_at(self._stalls_until, self._run_next)
            return
        kind, amount = self._fault() or ("", 0.0)
        if kind == "stall":
            self._stalls_until = loop.time() + amount * 10
            loop.call_at(self._stalls_until, self._run_next)
            return
        self._queue.popleft()(kind)

    def _run(self, answer: asyncio.Future[Any], transact: Callable[[], Any], fault: str) -> None:
        """Run a transaction; its caller hears of it some steps later."""
        result: Any = None
        error: Exception | None = None
        if self.closed or fault == "abort":
            error = StoreError("the disk failed", code="store_io")
        else:
            try:
                result = transact()
            except Exception as raised:  # noqa: BLE001 - its caller's
                error = raised
            if fault == "lost":
                error = StoreError("the disk failed, and nobody knows how far it came", code="store_io")
        asyncio.get_running_loop().call_soon(_settle, answer, result, error)


def _settle(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.cancelled():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
