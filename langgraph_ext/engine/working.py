"""Working: a worker's stretch with one tree that no visit drives: the tree's own lease, renewed while it is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langgraph_ext.database import Tx, tell
from langgraph_ext.engine.closing import thread_of
from langgraph_ext.engine.commits import Held, RuntimeCommit, commit
from langgraph_ext.engine.doubts import Pause
from langgraph_ext.engine.driver import Driver, has_something_to_do
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.rows import AgentRun, Tree, read_root, read_tree
from langgraph_ext.engine.store import Store
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases
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
        lease = await leases.atake(
            self._store.database, thread_id=thread_of(self.root_id), owner=self._owner, ttl_us=self._ttl_us
        )
        held = Held(lease.thread_id, lease.epoch)
        driver = Driver(self._store, self._program, self._release, self.root_id, held)
        self._driving = asyncio.get_running_loop(), driver
        try:
            self._renewal.add(lease, self._lost)
            return await self._drive(driver, held)
        except BaseException:
            await self._give_back(leases.release, *held)
            raise
        finally:
            self._driving = None
            self._renewal.remove(lease.thread_id, lease.epoch)

    async def _drive(self, driver: Driver, held: Held) -> Tree:
        while True:
            tree = await driver.drive()
            left = await self._give_back(_leave, self.root_id, held, self._store.clock_us, self._store.ids)
            if left is not None:
                return tree if isinstance(left, bool) else replace(tree, root=left)

    async def _give_back(self, give: Callable[..., AgentRun | bool | None], *args: Any) -> AgentRun | bool | None:
        """Give the lease back; None if the tree is to be driven on, else its root, if that was read."""
        with suppress(StoreError):  # it expires
            return await self._store.transact(give, *args, now_us=self._store.database.clock_us())
        return True

    def _lost(self, error: LeaseError) -> None:
        """Whatever it still writes is refused; it may as well look at once, and stop."""
        del error
        self.look()


def _leave(
    tx: Tx, root_id: str, held: Held, clock_us: Callable[[], int], ids: Callable[[], str], *, now_us: int
) -> AgentRun | None:
    """Give a tree back, unless something was asked or said of it since it was looked at: its worker goes on with that.

    If it waits for somebody to say what came of a call, its clocks stand until then.

    Returns:
        The root as it is then; None if the tree is to be driven on.

    Raises:
        LeaseError: It was lost (`lease_lost`).
    """
    tree = read_tree(tx, root_id, tickets=False)
    root = tree.root
    if not root.status.ended:
        leases.check(tx, *held)  # if it is another worker's by now, this one cannot say how it stands
        if has_something_to_do(tree):
            return None
    if not root.status.ended and root.paused_us is None and any(each.is_in_doubt for each in tree.operations.values()):
        pause = Pause(agent_run_id=root_id)
        wanted = RuntimeCommit(root_id=root_id, key=f"pause:{root_id}:{root.revision}", changes=(pause,))
        commit(tx, wanted, held, now_us=clock_us(), ids=ids)
        root = read_root(tx, root_id)
    leases.release(tx, *held, now_us=now_us)
    return root
