"""A9, A10, E9: workers that are told to stop in the middle of something, and what they leave to the next one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentStatus, ToolPolicy
from langgraph_ext.ledger import leases
from langgraph_ext.testing import call
from tests.support.reacting import Notes, agent, output_of, results

_PATIENCE = 30.0
"""Seconds until something that should have happened counts as never happening."""


async def stop(driving: asyncio.Task[Any]) -> None:
    """Tell a worker to stop, and wait until it has; it may be done already."""
    driving.cancel()
    await asyncio.wait({driving}, timeout=_PATIENCE)
    assert driving.done()


@pytest.mark.parametrize("rounds", [None, 0, 1, 2, 3])
async def test_a10_no_function_is_asked_while_the_tool_of_a_stopped_worker_goes_on(
    engine: AgentGraphEngine, rounds: int | None
) -> None:
    """It would find nothing yet, and have the tool called a second time: a person is asked. Also if the worker is told
    to stop once more, so many rounds of the event loop later."""
    begun, over = threading.Event(), threading.Event()
    charged, asked = [], []

    def charge(x: int) -> str:
        """Charge, in a thread that nobody can stop."""
        begun.set()
        over.wait(_PATIENCE)
        charged.append(x)
        return "charged"

    policies = {"charge": ToolPolicy(on_unknown=lambda *given: asked.append(given))}
    spec = agent([call("charge", {"x": 1}), "done"], charge, tool_policies=policies)
    run_id = (await engine.astart(spec, "go")).agent_run_id
    driving = asyncio.ensure_future(engine.adrive(run_id))
    try:
        assert await asyncio.to_thread(begun.wait, _PATIENCE)
        if rounds is not None:
            driving.cancel()
            for _ in range(rounds):
                await asyncio.sleep(0)
        await stop(driving)
        assert AgentStatus.RUNNING is (await engine.adrive(run_id)).status
        assert ([], []) == (charged, asked)
    finally:
        over.set()
    [doubt] = await engine.adoubts(run_id)
    await engine.aresolve(run_id, doubt.operation_id, happened=True, result="charged")
    run = await engine.adrive(run_id)
    assert ("done", ["charged"]) == (output_of(run), results(engine, run))


async def paying(engine: AgentGraphEngine, pays: Callable[[int], str], notes: Notes) -> str:
    """An agent run whose tool does this; its id."""
    run = await engine.astart(agent([call("pay", {"x": 1}), "done"], notes.tool("pay", pays)), "go")
    return run.agent_run_id


async def is_paid_once(engine: AgentGraphEngine, run_id: str, notes: Notes) -> None:
    """The next worker goes on with the result, and nobody is asked about it."""
    assert [] == await engine.adoubts(run_id)
    run = await engine.adrive(run_id)
    assert ("done", [("pay", 1)], ["paid"]) == (output_of(run), notes, results(engine, run))


@pytest.mark.parametrize("rounds", range(4))
async def test_a9_a_result_that_has_come_is_known_whenever_its_worker_is_stopped(
    engine: AgentGraphEngine, rounds: int
) -> None:
    """After so many rounds of the event loop, in which the result goes from hand to hand."""
    returned, notes = asyncio.Event(), Notes()

    def pays(x: int) -> str:
        returned.set()
        return "paid"

    run_id = await paying(engine, pays, notes)
    driving = asyncio.ensure_future(engine.adrive(run_id))
    await asyncio.wait_for(returned.wait(), _PATIENCE)
    for _ in range(rounds):
        await asyncio.sleep(0)
    await stop(driving)
    await is_paid_once(engine, run_id, notes)


async def test_a9_so_is_that_of_a_tool_that_stops_its_own_worker(engine: AgentGraphEngine) -> None:
    """Just before it returns."""
    workers: list[asyncio.Task[Any]] = []
    notes = Notes()

    def pays(x: int) -> str:
        workers[0].cancel()
        return "paid"

    run_id = await paying(engine, pays, notes)
    workers.append(asyncio.ensure_future(engine.adrive(run_id)))
    await asyncio.wait(workers, timeout=_PATIENCE)
    await is_paid_once(engine, run_id, notes)


async def test_e9_a_worker_that_is_stopped_as_it_takes_the_lease_gives_it_back(
    engine: AgentGraphEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has been taken, and the worker has not heard of it yet."""
    taken, is_told = asyncio.Event(), asyncio.Event()
    atake = leases.atake

    async def takes_and_is_long_in_telling(*args: Any, **named: Any) -> leases.Lease:
        lease = await atake(*args, **named)
        taken.set()
        await is_told.wait()
        return lease

    monkeypatch.setattr(leases, "atake", takes_and_is_long_in_telling)
    run = await engine.astart(agent(["done"]), "go")
    driving = asyncio.ensure_future(engine.adrive(run.agent_run_id))
    await asyncio.wait_for(taken.wait(), _PATIENCE)
    driving.cancel()
    await asyncio.sleep(0)
    is_told.set()
    with pytest.raises(asyncio.CancelledError):
        await driving
    assert "done" == output_of(await engine.adrive(run.agent_run_id))


async def test_e9_a_worker_that_is_stopped_leaves_no_lease_whenever_that_is(engine: AgentGraphEngine) -> None:
    """After so many rounds of its event loop: the next one goes on at once."""
    for rounds in range(0, 24, 2):
        run = await engine.astart(agent(["done"]), "go")
        driving = asyncio.ensure_future(engine.adrive(run.agent_run_id))
        for _ in range(rounds):
            await asyncio.sleep(0.0005)
        await stop(driving)
        assert "done" == output_of(await engine.adrive(run.agent_run_id))
