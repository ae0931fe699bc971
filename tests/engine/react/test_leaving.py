"""E10, E11: what happens to a run just when its worker has nothing more to do for it, or has just got an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Tx
from langgraph_ext.engine import AgentGraphEngine, AgentSpec, Deadlines, driver, working
from langgraph_ext.engine.commits import Committed, RuntimeCommit
from langgraph_ext.engine.program import NotKnown
from langgraph_ext.engine.store import Store
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.testing import ScriptedChatModel, call, say
from tests.support.bench import Once, raises
from tests.support.reacting import strikes_of


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[AgentGraphEngine]:
    with AgentGraphEngine(tmp_path / "runs.db") as made:
        yield made


def paying() -> AgentSpec:
    """An agent that pays, which nobody knows the end of."""

    async def pay(order: str) -> str:
        """Pay an order."""
        raise NotKnown("it took too long")

    return AgentSpec(model=ScriptedChatModel(script=[call("pay", {"order": "a"}), say("done")]), tools=[pay])


def as_it_leaves(monkeypatch: pytest.MonkeyPatch, act: Callable[[Tx, str], None]) -> None:
    """Let something happen, once, between the last look of a worker and its giving the run back."""
    leave, left = working._leave, []

    def leaves(tx: Tx, root_id: str, *args: Any, **named: Any) -> Any:
        if not left:
            left.append(root_id)
            act(tx, root_id)
        return leave(tx, root_id, *args, **named)

    monkeypatch.setattr(working, "_leave", leaves)


def settle(tx: Tx, root_id: str, engine: AgentGraphEngine) -> None:
    """Say what came of the call that is in doubt."""
    rows = tx.all("agent_operations_live", root_id=root_id)
    (operation_id,) = (row["operation_id"] for row in rows if row["state"] == "unknown")
    engine._resolve(root_id, operation_id, True, "paid")(tx)


def test_e10_a_doubt_that_is_settled_while_its_worker_leaves_is_gone_on_with(
    engine: AgentGraphEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who settles it sees that a worker holds the run, and leaves the rest to that one."""
    as_it_leaves(monkeypatch, lambda tx, root_id: settle(tx, root_id, engine))
    assert "done" == engine.run(paying(), "Go.").output


def test_e9_a_worker_that_is_taken_over_while_it_leaves_is_told(
    engine: AgentGraphEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot say how the run stands, which another one drives by now."""

    def take_over(tx: Tx, root_id: str) -> None:
        thread_id, later_us = f"agent:{root_id}", engine._store.database.clock_us() + leases.DEFAULT_TTL_US + 1
        leases.acquire(tx, thread_id=thread_id, owner=Owner.here("x"), ttl_us=1_000_000, now_us=later_us, whole=True)
        settle(tx, root_id, engine)

    as_it_leaves(monkeypatch, take_over)
    with pytest.raises(LeaseError) as lost:
        engine.run(paying(), "Go.")
    assert "lease_lost" == lost.value.code


async def test_e23_the_clocks_stand_also_when_a_worker_that_leaves_a_doubt_is_stopped(
    engine: AgentGraphEngine,
) -> None:
    """And the ledger's run says what it waits for."""
    called = asyncio.Event()

    async def pay(order: str) -> str:
        """Pay an order."""
        called.set()
        await asyncio.sleep(60)
        return "paid"

    spec = AgentSpec(model=ScriptedChatModel(script=[call("pay", {"order": "a"}), say("done")]), tools=[pay])
    driving = asyncio.ensure_future(engine.arun(spec, "Go.", key="k"))
    await called.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    (run,) = await engine.aruns()
    assert run.paused_at is not None
    assert "recovery_required" == engine.ledger.runs()[0].status
    assert ["pay"] == [each.name for each in await engine.adoubts(run.agent_run_id)]


def stored_by(engine: AgentGraphEngine, kind: type[Any]) -> Any:
    """Give an engine another store."""
    found = engine._store
    engine._store = kind(found.database, clock_us=found.clock_us, ids=found.ids, serde=found.serde)
    return engine._store


class Late(Store):
    """A store that is long in telling that a model's answer is stored."""

    async def commit(self, wanted: RuntimeCommit, *args: Any, **named: Any) -> Committed:
        committed = await super().commit(wanted, *args, **named)
        if wanted.key.startswith("call-raw:"):
            await asyncio.sleep(0.5)  # longer than the driver waits before it looks by itself
        return committed


def test_e11_an_answer_that_is_consumed_before_its_loop_has_heard_of_it_ends_the_run(
    engine: AgentGraphEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver finds it in the rows, and goes on to the end; the loop behind it has nothing left to do."""
    monkeypatch.setattr(driver, "_LOOK_SECONDS", 0.05)
    stored_by(engine, Late)
    assert "done" == engine.run(AgentSpec(model=ScriptedChatModel(script=[say("done")])), "Go.").output


class Stopping(Store):
    """A store that calls `stop` behind a decision's commit, before anybody has its answer."""

    stop: Callable[[], Any]

    async def commit(self, wanted: RuntimeCommit, *args: Any, **named: Any) -> Committed:
        committed = await super().commit(wanted, *args, **named)
        if wanted.key.startswith("accept-model:"):
            self.stop()
            await asyncio.sleep(0.01)  # its worker hears of it
        return committed


def test_e28_a_call_that_is_on_record_and_was_not_made_is_cancelled_and_in_no_doubt(engine: AgentGraphEngine) -> None:
    """It is stopped in between: whoever put it on record knows that it has not begun."""
    made: list[str] = []

    async def pay(order: str) -> str:
        """Pay an order."""
        made.append(order)
        return "paid"

    stored_by(engine, Stopping).stop = lambda: engine.cancel(engine.runs()[0].agent_run_id)
    run = engine.run(AgentSpec(model=ScriptedChatModel(script=[call("pay", {"order": "a"})]), tools=[pay]), "Go.")

    (slot,) = engine.slots(run.agent_run_id)
    operations = {each.kind: each for each in engine.operations(run.agent_run_id)}
    assert ("cancelled", []) == (run.status, made)
    assert ("cancelled", "interrupted") == (operations["tool"].state, operations["tool"].calls[0].state)
    assert slot.result is not None
    assert "cancelled" in slot.result.text
    assert [] == engine.doubts(run.agent_run_id)


def test_e23_no_clock_stands_for_a_run_that_closes(engine: AgentGraphEngine) -> None:
    """Its worker is gone before it is over: the next one ends it, here and in the ledger, though a call is in doubt."""

    async def pay(order: str) -> str:
        """Pay an order."""
        await asyncio.sleep(60)
        return "paid"

    model = ScriptedChatModel(script=[call("pay", {"order": "a"})])
    spec = AgentSpec(model=model, tools=[pay], deadlines=Deadlines(run_seconds=1.5))
    strikes_of(engine).append(Once("before", "terminal:", raises(StoreError("the database is gone"))))
    with pytest.raises(StoreError):
        engine.run(spec, "Go.", key="k")
    (run,) = engine.runs()
    assert ("closing", None, "unknown") == (run.status, run.paused_at, engine.operations(run.agent_run_id)[-1].state)

    ended = engine.drive(run.agent_run_id)
    assert ("failed", "failed") == (ended.status, engine.ledger.runs()[0].status)
