"""Attached graphs: each invocation holds its thread, from its beginning to its end (rules L12–L14)."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument, LeaseError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.saver.callbacks import with_ledger
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, asks, fails, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, request.param, loop)


def held(acts: Acts, seen: list[Any]) -> Any:
    """A node that looks at the lease."""

    def node(state: State) -> Any:
        seen.append(acts.lease())
        return {"log": ["held"]}

    return node


def test_l14_an_invocation_holds_its_thread_and_gives_it_back(acts: Acts) -> None:
    seen: list[Any] = []
    app = with_ledger(line(acts.saver, a=held(acts, seen), b=held(acts, seen)))
    acts.run(app)
    acts.run(app)

    assert isinstance(app, CompiledStateGraph)
    assert [(1, True), (1, True), (2, True), (2, True)] == seen
    assert ((2, False), []) == (acts.lease(), acts.saver.ledger.verify())


@pytest.mark.parametrize("how", ["asks", "fails"])
def test_l14_it_gives_the_thread_back_however_it_ends(acts: Acts, how: str) -> None:
    """A question or an error; who goes on holds it anew."""
    node = asks("sure?") if how == "asks" else fails(1)
    app = with_ledger(line(acts.saver, a=says("a"), node=node))
    acts.run(app)
    assert not acts.lease()[1]
    acts.run(app, Command(resume="yes") if how == "asks" else None)

    assert (2, False) == acts.lease()


def test_l14_it_gives_the_thread_back_when_its_stream_is_left(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=says("a"), b=says("b"), c=says("c")))
    if acts.form == "sync":
        stream = app.stream({"log": []}, CONFIG, durability=acts.durability)
        next(stream)
        stream.close()
    else:

        async def leave() -> None:
            stream: Any = app.astream({"log": []}, CONFIG, durability=acts.durability)
            await anext(stream)
            await stream.aclose()

        acts.loop.run_until_complete(leave())

    assert not acts.lease()[1]


def test_l12_another_invocation_is_refused_before_anything_runs(acts: Acts) -> None:
    """It is told who holds the thread, and until when."""
    _hold(acts)
    app = with_ledger(line(acts.saver, a=acts.node("a")))
    with pytest.raises(LeaseError, match="is held by") as refusal:
        acts.run(app)

    assert ("thread_busy", True, []) == (refusal.value.code, refusal.value.retryable, acts.ran)
    assert acts.saver.get_tuple(CONFIG) is None


def test_l12_or_waits_until_the_thread_is_free(acts: Acts) -> None:
    lease = _hold(acts)
    database = acts.saver.database
    release = partial(database.transact, leases.release, "t", lease.epoch, now_us=database.clock_us())
    timer = threading.Timer(0.3, release)
    timer.start()
    app = with_ledger(line(acts.saver, a=says("a")), on_busy="wait", wait_seconds=20)
    acts.run(app)
    timer.join()

    assert ["in", "a"] == app.get_state(CONFIG).values["log"]


def _hold(acts: Acts) -> Any:
    return leases.take(acts.saver.database, thread_id="t", owner=Owner.here("somebody else"), ttl_us=60_000_000)


def test_l13_a_graph_that_is_not_attached_keeps_away_from_a_held_thread(acts: Acts) -> None:
    """Nothing of it is stored; `update_state` passes."""
    app = line(acts.saver, a=says("a"))
    acts.run(app)
    _hold(acts)
    before = app.get_state(CONFIG).config
    with pytest.raises(LeaseError, match="with_ledger") as refusal:
        acts.run(app)
    assert ("thread_busy", before) == (refusal.value.code, app.get_state(CONFIG).config)
    app.update_state(CONFIG, {"log": ["edited"]})

    assert ["in", "a", "edited"] == app.get_state(CONFIG).values["log"]


def test_l13_who_has_lost_the_thread_writes_nothing_more(acts: Acts) -> None:
    """Another owner takes it over while a node runs: neither its writes nor the next checkpoint are stored."""
    if acts.durability == "exit":
        pytest.skip("under exit nothing is stored meanwhile, and the last checkpoint is refused like these")

    def node(state: State) -> Any:
        acts.saver.database.transact(leases.release, "t", 1, now_us=acts.saver.database.clock_us())
        _hold(acts)
        return {"log": ["lost"]}

    app = with_ledger(line(acts.saver, a=says("a"), b=node, c=acts.node("c")))
    with pytest.raises(LeaseError) as refusal:
        acts.run(app)

    assert "lease_lost" == refusal.value.code
    assert "lost" not in app.get_state(CONFIG).values["log"]  # under async, not even what `a` wrote may be stored
    assert (2, True) == acts.lease()


def test_l12_durable_nodes_and_subgraphs_share_the_invocations_lease(acts: Acts) -> None:
    if acts.durability == "exit":
        pytest.skip("under exit a body without effects runs unrecorded")
    inner = line(None, leaf=acts.node("leaf"), ask=acts.node("ask", lambda frame: {"log": [interrupt("sure?")]}))
    app = with_ledger(line(acts.saver, a=acts.node("a"), sub=inner))
    acts.run(app)
    acts.run(app, Command(resume="yes"))

    assert [("a", 1, "succeeded"), ("leaf", 1, "succeeded"), ("ask", 1, "succeeded")] == acts.attempts()
    assert ((2, False), []) == (acts.lease(), acts.saver.ledger.verify())


def test_l27_a_run_that_stops_without_an_end_is_idle(acts: Acts) -> None:
    """The saver alone would show it as running for ever."""
    app = with_ledger(line(acts.saver, a=says("a"), b=says("b")))
    acts.run(app, interrupt_before=["b"])
    assert (1, False) == acts.lease()
    assert "idle" == acts.saver.ledger.runs()[0].status
    acts.run(app, None)

    assert "succeeded" == acts.saver.ledger.runs()[0].status


def test_with_ledger_refuses_a_graph_with_another_checkpointer(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="InMemorySaver"):
        with_ledger(line(InMemorySaver(), a=says("a")))


def test_with_ledger_refuses_a_graph_that_is_attached(saver: LedgerSaver) -> None:
    """Of two attachments one alone would hold the thread; the calls that the other one counts are nobody's."""
    app = with_ledger(line(saver, a=says("a")))
    with pytest.raises(InvalidArgument, match="attached already"):
        with_ledger(app)
    with pytest.raises(InvalidArgument, match="attached already"):
        with_ledger(app.with_config({"tags": ["x"]}))


@pytest.mark.parametrize("options", [{"lease_ttl_seconds": 0}, {"on_busy": "queue"}, {"wait_seconds": -1}])
def test_with_ledger_refuses_options_out_of_range(saver: LedgerSaver, options: Any) -> None:
    with pytest.raises(InvalidArgument):
        with_ledger(line(saver, a=says("a")), **options)


def test_l14_an_invocation_that_never_asks_for_its_thread_leaves_nothing_behind(acts: Acts) -> None:
    """An attached graph without a checkpointer; the next graph that runs is not taken for it."""
    acts.run(with_ledger(line(None, a=says("a"))), durability=None)
    acts.run(line(acts.saver, b=says("b")))

    assert acts.saver.database.read(lambda tx: tx.maybe("lease_get", thread_id="t")) is None
