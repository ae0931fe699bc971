"""E10, E31: a worker's stretch with a tree: its lease from the beginning to the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langgraph_ext.engine.conditions import operations_ended
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.rows import Tree
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.engine.task_changes import Activate, WaitFor
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger.leases import DEFAULT_TTL_US
from tests.support.agents import Stub, phase
from tests.support.bench import Bench

TASK = "id-000002"
"""The first task of the first run."""


async def test_e31_a_worker_that_cannot_renew_its_lease_gives_it_back(bench: Bench) -> None:
    root = bench.start("echo")
    bench.renewal.close()
    with pytest.raises(StoreError) as closed:
        await bench.drive(root)
    assert "closed" == closed.value.code
    assert [(1,)] == bench.all("SELECT released_us IS NOT NULL FROM lease")


async def test_e10_a_stop_that_comes_while_a_tree_is_given_back_is_seen_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked found it held, and has left the rest to the worker."""
    root, drive = bench.start("echo"), Driver.drive
    held = bench.hold(root)
    bench.commit(held, Activate(agent_task_id=TASK))
    wait = WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=operations_ended("elsewhere"))
    bench.commit(held, wait)
    bench.clock.advance(us=DEFAULT_TTL_US + 1)
    stretches: list[AgentStatus] = []

    async def then_stopped(driver: Driver) -> Tree:
        tree = await drive(driver)
        if not stretches:
            bench.stop(root)
        stretches.append(tree.root.status)
        return tree

    monkeypatch.setattr(Driver, "drive", then_stopped)
    tree = await asyncio.wait_for(bench.drive(root, Stub(), "another"), 10)
    assert [AgentStatus.RUNNING, AgentStatus.CANCELLED] == stretches
    assert AgentStatus.CANCELLED is tree.root.status
    assert [(1,)] == bench.all("SELECT released_us IS NOT NULL FROM lease")


async def test_e9_a_worker_whose_lease_is_lost_does_not_wait_for_its_call(bench: Bench) -> None:
    called, cancelled = asyncio.Event(), asyncio.Event()

    async def hangs(operation: Any, number: int) -> Any:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    root = bench.start("rounds", {"rounds": 1})
    work = bench.work(root, Stub(answer=hangs), "first")
    driving = asyncio.ensure_future(work.drive())
    await called.wait()
    bench.clock.advance(us=DEFAULT_TTL_US + 1)
    bench.hold(root, "second")
    before = bench.everything()
    work.look()
    with pytest.raises(LeaseError) as lost:
        await asyncio.wait_for(driving, 10)
    assert "lease_lost" == lost.value.code
    assert cancelled.is_set()
    assert before == bench.everything()
