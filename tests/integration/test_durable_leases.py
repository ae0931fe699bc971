"""The lease that an attempt takes by itself is renewed while a body runs under it, and at no end for longer."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import pytest
from langgraph.types import interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.ledger import leases
from langgraph_ext.nodes import Frame, durable
from tests.support.acted import Acts, cancelled_inside
from tests.support.apps import CONFIG, Boom, State, fan, line
from tests.support.driver import Form


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


def renewed(saver: LedgerSaver) -> int:
    """How many leases the saver keeps alive."""
    return sum(len(roster._held) for roster in saver.renewal._rosters.values())


def _raises() -> Any:
    raise Boom("over")


@pytest.mark.parametrize(
    "end", [lambda: {"log": []}, lambda: {"log": [interrupt("sure?")]}, _raises], ids=["returned", "paused", "raised"]
)
def test_l14_a_body_that_has_ended_keeps_no_lease_alive(acts: Acts, end: Any) -> None:
    """While it runs, it does."""
    seen: list[int] = []
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: (seen.append(renewed(acts.saver)), end())[1])))

    assert ([1], 0) == (seen, renewed(acts.saver))
    assert not acts.lease()[1]


def test_l14_a_cancelled_body_keeps_no_lease_alive(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    acts = Acts(saver, "async", "sync", loop)
    kept = loop.run_until_complete(cancelled_inside(saver, lambda: renewed(saver)))

    assert (1, 0) == (kept, renewed(saver))
    assert not acts.lease()[1]


def test_l14_a_body_whose_loop_is_gone_is_given_up(saver: LedgerSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cancelled it, nobody will ever run it: when it is thrown away, its end is recorded."""
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)  # LangGraph's own coroutines want the loop
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # "Task was destroyed but it is pending!"
    entered = asyncio.Event()

    @durable
    async def slow(state: State) -> Any:
        entered.set()
        await asyncio.Event().wait()

    running = loop.create_task(line(saver, slow=slow).ainvoke({"log": []}, CONFIG))
    loop.run_until_complete(entered.wait())
    loop.close()
    del running, loop
    acts = Acts(saver, "sync", "sync", None)  # type: ignore[arg-type]
    until = time.monotonic() + 20
    while acts.lease()[1] and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)

    assert ([("slow", 1, "interrupted")], False) == (acts.attempts(), acts.lease()[1])
    assert 0 == renewed(saver)


def test_l14_a_lease_is_renewed_until_the_last_body_of_its_step_has_ended(
    acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One ends at once, the other after three times its TTL."""
    monkeypatch.setattr(leases, "DEFAULT_TTL_US", 300_000)
    seen: list[Any] = []
    long_runs = threading.Event()

    def short(frame: Frame) -> Any:
        assert acts.form == "async" or long_runs.wait(30), "they run side by side"
        return {"log": ["short"]}

    def long(frame: Frame) -> Any:
        long_runs.set()
        time.sleep(0.9)
        now_us = acts.saver.database.clock_us()
        seen.append(acts.saver.database.transact(leases.holder, "t", now_us=now_us))
        return {"log": ["long"]}

    acts.run(fan(acts.saver, "short", "long", short=acts.node("short", short), long=acts.node("long", long)))

    (held,) = seen
    assert held is not None
    assert [("long", 1, "succeeded"), ("short", 1, "succeeded")] == sorted(acts.attempts())
    assert (0, False) == (renewed(acts.saver), acts.lease()[1])
