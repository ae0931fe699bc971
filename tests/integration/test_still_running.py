"""Bodies and calls that outlast their invocation: nobody else gets the thread, and no call is made beside them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from langgraph_ext import EffectNotDone, LedgerSaver, durable
from langgraph_ext.errors import ConflictError, LangGraphExtError, LeaseError
from langgraph_ext.nodes import Frame
from langgraph_ext.saver.callbacks import with_ledger
from tests.support.apps import CONFIG, State, line, says


class Outside:
    """Counts the calls that run at once; each waits until it may go on."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.live = self.most = self.calls = 0
        self.may_go_on = threading.Event()

    def call(self, key: str) -> str:
        with self._mutex:
            self.calls, self.live = self.calls + 1, self.live + 1
            self.most = max(self.most, self.live)
        assert self.may_go_on.wait(30)
        with self._mutex:
            self.live -= 1
        return "receipt"

    async def acall(self, key: str) -> str:
        return await asyncio.to_thread(self.call, key)


def not_done(key: str) -> Any:
    raise EffectNotDone("never heard of it")


OPTIONS: list[dict[str, Any]] = [
    {"on_unknown": "stop"},
    {"on_unknown": "retry"},
    {"on_unknown": "probe", "probe": not_done},
]


async def until(true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


async def goes_on(app: Any) -> None:
    """Invoke as soon as the thread is free."""
    for _ in range(1000):
        try:
            await app.ainvoke(None, CONFIG, durability="sync")
        except LeaseError:
            await asyncio.sleep(0.01)
        else:
            return


@pytest.mark.parametrize("options", OPTIONS, ids=["stop", "retry", "probe"])
@pytest.mark.parametrize("attached", [True, False])
def test_l12_l30_a_call_that_outlasts_its_invocation_is_not_made_beside_itself(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop, attached: bool, options: dict[str, Any]
) -> None:
    """A sync body runs on when its `ainvoke` is cancelled; the thread is busy, and nobody may say what came of it."""
    outside = Outside()

    @durable(effect="write", **options)
    def charge(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("charge", 7, outside.call)]}

    app = line(saver, charge=charge)
    app = with_ledger(app) if attached else app

    async def story() -> None:
        running = asyncio.ensure_future(app.ainvoke({"log": []}, CONFIG, durability="sync"))
        await until(lambda: outside.live == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(LangGraphExtError) as refused:
            await app.ainvoke(None, CONFIG, durability="sync")
        assert refused.value.code == ("thread_busy" if attached else "attempt_running")
        (effect,) = await saver.ledger.aeffects()
        assert (False, "started") == (effect.in_doubt, effect.status)
        with pytest.raises(ConflictError) as conflict:
            await saver.ledger.aresolve_effect(effect.effect_id, happened=False)
        assert "effect_conflict" == conflict.value.code
        outside.may_go_on.set()
        await until(lambda: outside.live == 0)
        if attached:
            await goes_on(app)
            assert "succeeded" == (await saver.ledger.aruns())[0].status

    loop.run_until_complete(story())
    assert (1, 1) == (outside.calls, outside.most)
    assert ["committed"] == [str(effect.status) for effect in saver.ledger.effects()]
    assert [] == saver.ledger.verify()


@pytest.mark.parametrize("options", OPTIONS, ids=["stop", "retry", "probe"])
@pytest.mark.parametrize("attached", [True, False])
def test_l30_a_call_that_outlasts_its_body_is_not_made_beside_itself(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop, attached: bool, options: dict[str, Any]
) -> None:
    """One of two calls side by side raises, and with it the body; the other one still runs when the node is retried."""
    outside = Outside()

    async def fails(key: str) -> str:
        await until(lambda: outside.live == 1)
        raise ConnectionError("lost")

    @durable(effect="write", **options)
    async def both(state: State, frame: Frame) -> Any:
        await asyncio.gather(frame.aonce("slow", 7, outside.acall), frame.aonce("fails", 7, fails))
        return {"log": ["both"]}

    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False)
    app = (
        StateGraph(State)
        .add_node("both", both, retry_policy=policy)
        .add_edge(START, "both")
        .compile(checkpointer=saver)
    )
    app = with_ledger(app) if attached else app

    async def story() -> None:
        with pytest.raises(LangGraphExtError) as refused:
            await app.ainvoke({"log": []}, CONFIG, durability="sync")
        assert refused.value.code in ("recovery_required", "attempt_running")
        slow = next(effect for effect in await saver.ledger.aeffects() if effect.name == "slow")
        assert (False, "started") == (slow.in_doubt, slow.status)
        with pytest.raises(ConflictError):
            await saver.ledger.aresolve_effect(slow.effect_id, happened=False)
        outside.may_go_on.set()
        await until(lambda: outside.live == 0)
        await until(lambda: next(e for e in saver.ledger.effects() if e.name == "slow").in_doubt)

    loop.run_until_complete(story())
    assert (1, 1) == (outside.calls, outside.most)


def test_l12_a_call_cancelled_while_it_takes_the_thread_leaves_it_free(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    """At whatever turn of the loop: the commit goes on, and what it took is given back."""
    app = with_ledger(line(saver, a=says("a")), lease_ttl_seconds=3600)

    async def story(turns: int) -> None:
        config: Any = {"configurable": {"thread_id": f"t{turns}"}}
        running = asyncio.ensure_future(app.ainvoke({"log": []}, config))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        deadline = time.monotonic() + 20
        while True:
            try:
                await app.ainvoke({"log": []}, config)
                return
            except LeaseError:
                assert time.monotonic() < deadline, f"cancelled after {turns} turns, its thread is held"
                await asyncio.sleep(0.01)

    for turns in range(40):
        loop.run_until_complete(story(turns))
