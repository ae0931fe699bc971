"""Working: a worker's stretch with one tree that no visit drives: the tree's own lease, renewed while it is driven."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from langgraph_ext.engine.closing import thread_of
from langgraph_ext.engine.commits import Held
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.rows import Tree
from langgraph_ext.engine.store import Store
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.renewal import Renewal

__all__ = ["Work"]


class Work:
    """One worker on one root tree.

    Args:
        store: Reads and commits.
        renewal: Keeps the lease while it is driven.
        owner: Who holds it.
        program: The release's behaviours, calls and hooks.
        release: Its digest.
        root_id: The tree.
        ttl_us: For how long its lease holds unless it is renewed.
    """

    def __init__(
        self,
        store: Store,
        renewal: Renewal,
        owner: Owner,
        program: Program,
        release: str,
        root_id: str,
        *,
        ttl_us: int = leases.DEFAULT_TTL_US,
    ) -> None:
        self._store = store
        self._renewal = renewal
        self._owner = owner
        self._program = program
        self._release = release
        self._root_id = root_id
        self._ttl_us = ttl_us
        self._driving: tuple[asyncio.AbstractEventLoop, Driver] | None = None

    def look(self) -> None:
        """Something was asked of the tree in this process, in whichever thread."""
        if self._driving is not None:
            loop, driver = self._driving
            with suppress(RuntimeError):  # its loop is closed, and it has looked for the last time
                loop.call_soon_threadsafe(driver.look)

    async def drive(self) -> Tree:
        """Hold the tree, drive it as far as it goes, and give it back.

        Raises:
            LeaseError: Another worker holds it (`thread_busy`), or it was lost (`lease_lost`).
            StoreError: The database failed.
        """
        lease = await leases.atake(
            self._store.database, thread_id=thread_of(self._root_id), owner=self._owner, ttl_us=self._ttl_us
        )
        held = Held(lease.thread_id, lease.epoch)
        driver = Driver(self._store, self._program, self._release, self._root_id, held)
        self._driving = asyncio.get_running_loop(), driver
        self._renewal.add(lease, _say_nothing)  # whatever it still writes is refused
        try:
            return await driver.drive()
        finally:
            self._driving = None
            self._renewal.remove(lease.thread_id, lease.epoch)
            await self._give_back(lease)

    async def _give_back(self, lease: Lease) -> None:
        with suppress(StoreError):  # it expires
            now_us = self._store.clock_us()
            await self._store.transact(leases.release, lease.thread_id, lease.epoch, now_us=now_us)


def _say_nothing(error: LeaseError) -> None:
    del error
