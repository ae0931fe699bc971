"""Working: a worker's stretch with one tree that no visit drives: the tree's own lease, renewed while it is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from langgraph_ext.database import Tx, tell
from langgraph_ext.engine.cancelled import to_its_end
from langgraph_ext.engine.commits import Held
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.resting import rest
from langgraph_ext.engine.rows import AgentRun, Tree
from langgraph_ext.engine.store import Store
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.agent_threads import thread_of
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
        self.root_id = root_id
        self._ttl_us = ttl_us
        self._driving: tuple[asyncio.AbstractEventLoop, Driver] | None = None

    def look(self) -> None:
        """Something was asked of the tree in this process, in whichever thread."""
        driving = self._driving  # once: its own thread may be at its end
        if driving is not None:
            loop, driver = driving
            tell(loop, driver.look)

    async def drive(self) -> Tree:
        """Hold the tree, drive it as far as it goes, and give it back.

        Raises:
            LeaseError: Another worker holds it (`thread_busy`), or it was lost (`lease_lost`).
            StoreError: The database failed.
        """
        lease = await self._take()
        held = Held(lease.thread_id, lease.epoch)
        driver = Driver(self._store, self._program, self._release, self.root_id, held)
        self._driving = asyncio.get_running_loop(), driver
        try:
            self._renewal.add(lease, self._lost)
            return await self._drive(driver, held)
        except BaseException:
            await to_its_end(self._let_go(held))
            raise
        finally:
            self._driving = None
            self._renewal.remove(lease.thread_id, lease.epoch)

    async def _take(self) -> leases.Lease:
        """Take the tree's lease. Told to stop meanwhile, it is given back: it may have been taken already."""
        database, thread_id = self._store.database, thread_of(self.root_id)
        taking = asyncio.ensure_future(
            leases.atake(database, thread_id=thread_id, owner=self._owner, ttl_us=self._ttl_us)
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await to_its_end(self._give_back_when_taken(taking))
            raise

    async def _give_back_when_taken(self, taking: asyncio.Future[leases.Lease]) -> None:
        with suppress(LeaseError, StoreError):
            lease = await taking
            await self._let_go(Held(lease.thread_id, lease.epoch))

    async def _drive(self, driver: Driver, held: Held) -> Tree:
        while True:
            tree = await driver.drive()
            root = await self._leave(held, tree)
            if root is not None:
                return replace(tree, root=root)

    async def _leave(self, held: Held, tree: Tree) -> AgentRun | None:
        """Give the tree back; its root as it is then, or None if it is to be driven on."""
        try:
            return await self._transact_leave(held, goes_on=True)
        except StoreError:  # its lease expires
            return tree.root

    async def _let_go(self, held: Held) -> None:
        """Give the tree back, whatever there is to do yet."""
        with suppress(StoreError, LeaseError):  # it expires, or is another worker's
            await self._transact_leave(held, goes_on=False)

    async def _transact_leave(self, held: Held, *, goes_on: bool) -> AgentRun | None:
        store = self._store
        times = {"now_us": store.clock_us(), "lease_us": store.database.clock_us()}
        return await store.transact(_leave, self.root_id, held, ids=store.ids, goes_on=goes_on, **times)

    def _lost(self, error: LeaseError) -> None:
        """Whatever it still writes is refused; it may as well look at once, and stop."""
        del error
        self.look()


def _leave(
    tx: Tx, root_id: str, held: Held, *, ids: Callable[[], str], now_us: int, lease_us: int, goes_on: bool
) -> AgentRun | None:
    """Give a tree back, unless something was asked or said of it since it was looked at: its worker goes on with that.

    Args:
        tx: The open transaction.
        root_id: The tree.
        held: Its lease.
        ids: Makes ids.
        now_us: Microseconds since the epoch, UTC.
        lease_us: As `now_us`, by the database's clock.
        goes_on: Whether its worker goes on with what there is to do, or leaves it to another.

    Returns:
        The root as it is then; None if the tree is to be driven on.

    Raises:
        LeaseError: It was lost (`lease_lost`).
    """
    is_left = tx.repeated and leases.left_epoch(tx, held.thread_id) is None
    root = rest(tx, root_id, held, ids=ids, now_us=now_us, goes_on=goes_on, is_left=is_left)
    if root is not None:
        leases.release(tx, *held, now_us=lease_us)
    return root
