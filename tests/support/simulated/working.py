"""A process: it takes leases, drives the trees that have not ended, gives up when its database fails, comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from langgraph_ext.engine.rows import read_tree
from langgraph_ext.engine.working import Work
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.owners import Owner
from tests.support.agents import RELEASE
from tests.support.simulated.program import SimulatedProgram
from tests.support.simulated.store import FaultyStore
from tests.support.simulated.witness import Witness

__all__ = ["TTL_US", "Process", "owner_of"]

TTL_US = 5_000_000


def owner_of(process: int, invocation_id: str) -> Owner:
    """A process on a host of its own, of which nobody but the world knows whether it lives."""
    named = {"pid": process, "invocation_id": invocation_id}
    return Owner(host="simulated", boot_id="", pid_ns="", started="", **named)


class Renewing:
    """Renews leases, as ledger/renewal.py does in a thread of its own."""

    def __init__(self, store: FaultyStore) -> None:
        self._store = store
        self._held: dict[tuple[str, int], asyncio.Task[None]] = {}

    def add(self, lease: Lease, on_lost: Callable[[LeaseError], None]) -> None:
        self._held[lease.thread_id, lease.epoch] = asyncio.ensure_future(self._renew(lease))

    def remove(self, thread_id: str, epoch: int) -> None:
        self._held.pop((thread_id, epoch)).cancel()

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(lease.ttl_us / 3e6)
            try:
                now_us = self._store.clock_us()
                await self._store.transact(leases.renew, lease.thread_id, lease.epoch, now_us=now_us)
            except LeaseError:
                return
            except StoreError:
                continue


class Process:
    """One of several workers.

    Args:
        number: Its own; no other ever has it.
        programs: By agent run: what it drives each with, until it has ended.
        tell: Asks somebody what came of the calls of an agent run that are in doubt.
        moods: `one_owner`: whether it is the same owner each time it takes a tree.
    """

    def __init__(
        self,
        number: int,
        programs: Mapping[str, SimulatedProgram],
        tell: Callable[[str], None],
        store: FaultyStore,
        witness: Witness,
        rng: Random,
        moods: dict[str, Any],
    ) -> None:
        self.number = number
        self.store = store
        self._programs = programs
        self._tell = tell
        self._witness = witness
        self._rng = rng
        self._moods = moods
        self._renewing = Renewing(store)
        self._works: dict[str, Work] = {}
        self._taken = 0
        self._is_asked = False

    async def live(self) -> None:
        """Drive every tree until it has ended."""
        await asyncio.gather(*map(self._finish, self._programs))

    async def _finish(self, root_id: str) -> None:
        while not await self._drive(root_id):
            await asyncio.sleep(self._rng.uniform(0.1, 2))
            if self._is_asked:
                self._tell(root_id)

    async def _drive(self, root_id: str) -> bool:
        """One stretch; whether the tree has ended."""
        try:
            tree = await self.store.read(read_tree, root_id)
            if tree.root.status.ended:
                return True
            tree = await self._work_on(root_id).drive()
        except (LeaseError, StoreError):
            return False
        except Exception as error:  # noqa: BLE001 - nothing else may come out
            self._witness.say(f"driving {root_id} raised {type(error).__name__}: {error}")
            return True
        finally:
            self._witness.has_left(root_id, self.number)
        self._is_asked = any(each.is_in_doubt for each in tree.operations.values())
        if not tree.root.status.ended and not self._is_asked:
            states = sorted(f"{each.purpose} {each.state}" for each in tree.operations.values())
            tasks = [str(each.state) for each in tree.tasks.values()]
            self._witness.say(f"{root_id} waits for what nobody does: tasks {tasks}, operations {states}")
        return tree.root.status.ended

    def _work_on(self, root_id: str) -> Work:
        if root_id not in self._works or not self._moods["one_owner"]:
            self._taken += 1
            owner = owner_of(self.number, f"{self.number}.{self._taken}")
            renewing: Any = self._renewing
            self._works[root_id] = Work(
                self.store, renewing, owner, self._programs[root_id], RELEASE, root_id, ttl_us=TTL_US
            )
        return self._works[root_id]
