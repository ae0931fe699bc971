"""Cancelling a run, from outside and in any state; limits of a run; what an attached graph tells of its invocations."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from langgraph.channels import LastValue
from langgraph.errors import GraphDrained
from langgraph.pregel import NodeBuilder, Pregel
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument, NotFound
from langgraph_ext.ledger import active_time, leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.records import Run
from langgraph_ext.nodes import AttemptInterrupted, Frame, durable
from langgraph_ext.saver.callbacks import LedgerCallbackHandler, with_ledger
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, asks, fails, fan, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


def newest(acts: Acts) -> Run:
    """The newest run, behind all that was queued before."""
    acts.saver.database.transact(lambda tx: None)
    return acts.saver.ledger.runs()[0]


def current(acts: Acts) -> Run:
    """The run whose node asks: under async its first checkpoint may still be on its way."""
    while not (found := acts.saver.ledger.runs()):
        time.sleep(0.002)
    return found[0]


def sleeps(name: str, seconds: float) -> Any:
    def node(state: State) -> Any:
        time.sleep(seconds)
        return {"log": [name]}

    return node


def cancels(acts: Acts, reason: str | None = None) -> Any:
    """A node during which somebody cancels its run."""

    def node(state: State) -> Any:
        acts.saver.ledger.cancel(current(acts).run_id, reason=reason)
        return {"log": ["stored"]}

    return node


def seen_to(acts: Acts) -> list[bool]:
    return [entry.consumed_at is not None for entry in acts.saver.ledger.inbox(newest(acts).run_id)]


# -- a run that nobody runs


@pytest.mark.parametrize("how", ["asks", "fails"])
def test_l18_a_run_at_rest_is_cancelled_at_once(acts: Acts, how: str) -> None:
    """With its open question; the thread is free for new input, and no answer runs anything of it."""
    node = asks("sure?") if how == "asks" else fails(1)
    app = line(acts.saver, a=says("a"), node=node, after=acts.node("after"))
    acts.run(app)
    run = acts.saver.ledger.cancel(newest(acts).run_id, reason="changed my mind")
    questions = acts.saver.ledger.interrupts(run_id=run.run_id, pending=True)
    with pytest.raises(AdmissionError) as refused:
        acts.run(app, Command(resume="yes") if how == "asks" else None)

    assert ("cancelled", [], "cancelled") == (run.status, questions, refused.value.code)
    assert ([], [True], []) == (acts.ran, seen_to(acts), acts.saver.ledger.verify())
    acts.run(line(acts.saver, a=says("a")))
    assert "succeeded" == newest(acts).status


def test_l17_a_paused_attempt_of_a_cancelled_run_goes_on_no_more(acts: Acts) -> None:
    """It is cancelled with its question, before the body runs again."""
    app = line(acts.saver, a=acts.node("a", lambda frame: {"log": [interrupt("sure?")]}))
    acts.run(app)
    acts.saver.ledger.cancel(newest(acts).run_id)
    with pytest.raises(AdmissionError) as refused:
        acts.run(app, Command(resume="yes"))

    assert ("cancelled", ["a"], [("a", 1, "cancelled")]) == (refused.value.code, acts.ran, acts.attempts())
    assert ["requested", "superseded"] == [name.partition(".")[2] for name in acts.events("interrupt")]


def test_l18_asking_again_changes_nothing(acts: Acts) -> None:
    acts.run(line(acts.saver, a=asks("sure?")))
    run_id = newest(acts).run_id
    first, again = (acts.saver.ledger.cancel(run_id) for _ in range(2))

    assert (first, [True]) == (again, seen_to(acts))
    assert 1 == acts.events("run").count("run.cancelled")


def test_l46_a_run_that_has_ended_is_cancelled_no_more(acts: Acts) -> None:
    acts.run(line(acts.saver, a=says("a")))
    run_id = newest(acts).run_id
    with pytest.raises(ConflictError) as refused:
        acts.saver.ledger.cancel(run_id)

    assert ("run_closed", "succeeded", []) == (refused.value.code, newest(acts).status, seen_to(acts))
    with pytest.raises(NotFound):
        acts.saver.ledger.cancel("nobody")
    with pytest.raises(InvalidArgument):
        acts.saver.ledger.cancel(run_id, reason=7)  # type: ignore[arg-type]


def test_l18_a_run_whose_owner_is_gone_is_cancelled_at_once(acts: Acts) -> None:
    """Its process died while it ran; what its attempt had begun is known no more."""
    app = line(acts.saver, a=acts.node("a", gone))
    with pytest.raises(KeyboardInterrupt):
        acts.run(app)
    database = acts.saver.database
    run_id = newest(acts).run_id
    dead = replace(Owner.here("gone"), pid=2**22 + 1)
    leases.take(database, thread_id="t", owner=dead, ttl_us=60_000_000)

    assert "cancelled" == acts.saver.ledger.cancel(run_id).status


def gone(frame: Frame) -> Any:
    raise KeyboardInterrupt


# -- a run that is being run


def test_l18_the_next_durable_node_of_a_cancelled_run_does_not_run(acts: Acts) -> None:
    """In a graph that is not attached; what was running is finished and stored."""
    app = line(acts.saver, a=cancels(acts, "enough"), b=acts.node("b"), c=acts.node("c"))
    with pytest.raises(AdmissionError) as refused:
        acts.run(app)
    stored = app.get_state(CONFIG).values["log"]

    assert ("cancelled", [], ["in", "stored"]) == (refused.value.code, acts.ran, stored)
    assert ("cancelled", [True]) == (newest(acts).status, seen_to(acts))
    assert ["run.started", "run.cancel_requested", "run.cancelled"] == acts.events("run")
    assert [] == acts.saver.ledger.verify()


def test_l18_an_attached_graph_is_drained(acts: Acts) -> None:
    """Also one without durable nodes: at the end of its step, or, under async, at most of the next one."""
    app = with_ledger(line(acts.saver, a=cancels(acts, "enough"), **{f"n{n}": sleeps(f"n{n}", 0.3) for n in range(5)}))
    with pytest.raises(GraphDrained, match="enough"):
        acts.run(app)
    stored = app.get_state(CONFIG).values["log"]

    assert ["in", "stored"] == stored[:2]
    assert len(stored) <= (2 if acts.durability == "sync" else 3)
    assert ("cancelled", [True], False) == (newest(acts).status, seen_to(acts), acts.lease()[1])
    with pytest.raises(AdmissionError):
        acts.run(app, None)
    assert stored == app.get_state(CONFIG).values["log"]


def test_l18_a_drain_reaches_out_of_a_subgraph(acts: Acts) -> None:
    inner = line(None, a=cancels(acts), **{f"n{n}": sleeps(f"n{n}", 0.3) for n in range(5)})
    app = with_ledger(line(acts.saver, sub=inner, after=says("after")))
    with pytest.raises(GraphDrained):
        acts.run(app)

    assert "cancelled" == newest(acts).status
    assert "after" not in app.get_state(CONFIG).values.get("log", [])


def test_l46_a_run_that_succeeds_first_has_succeeded(acts: Acts) -> None:
    """What was asked stays in sight, and stops no later run."""
    app = with_ledger(line(acts.saver, a=says("a"), last=cancels(acts)))
    acts.run(app)
    first = newest(acts)
    acts.run(with_ledger(line(acts.saver, a=says("a"), b=says("b"))))

    assert ("succeeded", "succeeded") == (acts.saver.ledger.run(first.run_id).status, newest(acts).status)
    assert [None] == [entry.consumed_at for entry in acts.saver.ledger.inbox(first.run_id)]


def test_l18_who_is_asked_while_another_fork_runs_is_not_taken_for_it(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=says("a"), b=asks("sure?"), c=says("c")))
    acts.run(app)
    old = newest(acts)
    begun = next(state for state in app.get_state_history(CONFIG) if state.next == ("a",))
    forked = app.update_state(begun.config, {"log": ["forked"]})
    acts.run(app, None, config=forked)
    acts.saver.ledger.cancel(old.run_id)
    acts.run(app, Command(resume="yes"))

    assert ("cancelled", "succeeded") == (acts.saver.ledger.run(old.run_id).status, newest(acts).status)


# -- limits of a run


def test_l18_a_run_makes_so_many_visits_at_most(acts: Acts) -> None:
    """Those of plain nodes count; over a resume they count on, and a higher limit goes on where it stopped."""
    nodes = {"a": says("a"), "b": asks("sure?"), "c": acts.node("c"), "d": acts.node("d")}
    acts.run(with_ledger(line(acts.saver, **nodes), max_transitions=3))
    with pytest.raises(AdmissionError, match="max_transitions=3") as refused:
        acts.run(with_ledger(line(acts.saver, **nodes), max_transitions=3), Command(resume="yes"))

    assert ("transition_limit", ["c"]) == (refused.value.code, acts.ran)
    assert [("c", 1, "succeeded")] == acts.attempts()
    acts.run(with_ledger(line(acts.saver, **nodes), max_transitions=4), None)
    assert ["c", "d"] == acts.ran


def test_l18_who_comes_again_does_not_meet_the_limit(acts: Acts) -> None:
    """A visit that failed, and one that asked, go on."""
    left = iter("x")

    def once(frame: Frame) -> Any:
        for _ in left:
            raise AttemptInterrupted("gone", "no idea")
        return {"log": [interrupt("sure?")]}

    app = with_ledger(line(acts.saver, a=says("a"), b=acts.node("b", once)), max_transitions=2)
    with pytest.raises(AttemptInterrupted):
        acts.run(app)
    acts.run(app, None)
    acts.run(app, Command(resume="yes"))

    assert [("b", 1, "interrupted"), ("b", 2, "succeeded")] == acts.attempts()


def test_l18_of_a_fan_out_as_many_begin_as_there_may_be(acts: Acts) -> None:
    names = [f"n{number}" for number in range(5)]
    app = with_ledger(fan(acts.saver, *names, **{name: acts.node(name) for name in names}), max_transitions=3)
    with pytest.raises(AdmissionError) as refused:
        acts.run(app)

    assert "transition_limit" == refused.value.code
    assert len(acts.attempts()) <= 3


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_l18_a_limit_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(InvalidArgument, match="max_transitions"):
        LedgerCallbackHandler(max_transitions=limit)


# -- what is in doubt


def test_l20_a_run_that_waits_for_recovery_says_so(acts: Acts) -> None:
    """Until somebody has said what came of it, and it runs on."""
    left = iter("x")

    def lost(frame: Frame) -> Any:
        for _ in left:
            raise AttemptInterrupted("gone", "no idea")
        return {"log": ["done"]}

    app = line(acts.saver, a=acts.node("a", lost, effect="opaque"))
    with pytest.raises(AttemptInterrupted):
        acts.run(app)
    for _ in range(2):
        with pytest.raises(Exception, match="authorize_recovery"):
            acts.run(app, None)
    waits = newest(acts).status
    acts.saver.ledger.authorize_recovery(acts.saver.ledger.attempts(newest(acts).run_id)[0].attempt_id)
    acts.run(app, None)

    assert ("recovery_required", "succeeded") == (waits, newest(acts).status)
    assert 1 == acts.events("run").count("run.recovery_required")
    assert [] == acts.saver.ledger.verify()


# -- what an attached graph tells


def test_l38_active_time_is_that_of_invocations_and_not_of_pauses(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=sleeps("a", 0.15), b=asks("sure?"), c=sleeps("c", 0.15)))
    begun = time.monotonic()
    acts.run(app)
    between = newest(acts).active_seconds
    time.sleep(0.5)
    acts.run(app, Command(resume="yes"))
    active, passed = newest(acts).active_seconds, time.monotonic() - begun

    assert between is not None
    assert active is not None
    assert between >= 0.15
    assert between + 0.15 <= active <= passed - 0.5


def test_l38_of_a_graph_that_is_not_attached_it_is_not_known(acts: Acts) -> None:
    acts.run(line(acts.saver, a=acts.node("a")))

    assert newest(acts).active_seconds is None


def test_l38_after_a_crash_it_counts_until_the_lease_has_expired(acts: Acts) -> None:
    """Who takes over says so; the run that crashed is the one at the head."""
    app = with_ledger(line(acts.saver, a=asks("sure?"), b=says("b")))
    acts.run(app)
    before = newest(acts).active_seconds
    elsewhere = replace(Owner.here("gone"), host="elsewhere", boot_id="another", pid_ns="another")
    leases.take(acts.saver.database, thread_id="t", owner=elsewhere, ttl_us=300_000)
    time.sleep(0.6)
    begun = time.monotonic()
    acts.run(app, Command(resume="yes"))
    after, passed = newest(acts).active_seconds, time.monotonic() - begun

    assert before is not None
    assert after is not None
    assert before + 0.3 <= after <= before + 0.3 + passed


def test_an_attached_graph_says_when_its_nodes_began(acts: Acts) -> None:
    """In subgraphs too; in one that is not attached, nobody knows."""
    inner = line(None, leaf=sleeps("leaf", 0.05))
    app = with_ledger(line(acts.saver, a=sleeps("a", 0.05), sub=inner, fails=fails(1)))
    acts.run(app)
    acts.run(app, None)
    attached = acts.saver.ledger.visits(newest(acts).run_id)
    acts.run(line(acts.saver, a=says("a")))

    assert ["a", "sub/leaf", "sub", "fails"] == [visit.node_path for visit in attached]
    for visit in attached[:3]:
        assert visit.started_at is not None
        assert 0.05 <= (visit.last_at - visit.started_at).total_seconds() < 30
    assert attached[3].started_at is not None
    assert attached[3].started_at < attached[3].first_at
    assert [None] == [visit.started_at for visit in acts.saver.ledger.visits(newest(acts).run_id)]


@pytest.mark.parametrize("attached", [True, False])
def test_l54_an_attached_graph_says_that_it_has_ended(acts: Acts, attached: bool) -> None:
    """Of a bare Pregel no checkpoint does."""
    node = NodeBuilder().subscribe_only("a").do(lambda value: value + "!").write_to("b")
    app = Pregel(
        nodes={"one": node},
        channels={"a": LastValue(str), "b": LastValue(str)},
        input_channels=["a"],
        output_channels=["b"],
        checkpointer=acts.saver,
    )
    acts.run(with_ledger(app) if attached else app, {"a": "in"})

    assert ("succeeded" if attached else "idle") == newest(acts).status
    assert [] == acts.saver.ledger.verify()


@pytest.mark.parametrize("how", ["new input", "update_state", "cancel"])
def test_l46_no_attempt_of_a_run_that_is_over_waits_for_an_answer(acts: Acts, how: str) -> None:
    """However it came to its end: its questions are closed, and so are the attempts that asked them."""

    def body(frame: Frame) -> Any:
        return {"log": [interrupt("sure?")]}

    app = line(acts.saver, a=says("a"), b=acts.node("b", body))
    acts.run(app)
    run_id = newest(acts).run_id
    if how == "new input":
        acts.run(line(acts.saver, a=says("a")))
    elif how == "update_state":
        app.update_state(CONFIG, {"log": ["edited"]})
    else:
        acts.saver.ledger.cancel(run_id)

    assert ["cancelled"] == [str(attempt.status) for attempt in acts.saver.ledger.attempts(run_id)]
    assert [] == acts.saver.ledger.verify()


def test_l46_who_asks_when_its_run_has_been_cancelled_waits_for_no_answer(acts: Acts) -> None:
    """It had begun before that; a node beside it was refused meanwhile, and so the cancel took hold."""
    inner = acts.node("inner")

    @durable
    def node(state: State) -> Any:
        acts.saver.ledger.cancel(current(acts).run_id)
        with pytest.raises(AdmissionError):
            inner(state)
        return {"log": [interrupt("sure?")]}

    @durable
    async def anode(state: State) -> Any:
        await acts.saver.ledger.acancel(current(acts).run_id)
        with pytest.raises(AdmissionError):
            await inner(state)
        return {"log": [interrupt("sure?")]}

    app = with_ledger(line(acts.saver, a=node if acts.form == "sync" else anode))
    acts.run(app)

    assert ("cancelled", [("a", 1, "cancelled")]) == (newest(acts).status, acts.attempts())
    assert [] == acts.saver.ledger.verify()


def test_l54_a_graph_that_was_left_before_its_end_has_not_said_that_it_ended(saver: LedgerSaver) -> None:
    """Of a bare Pregel whose stream is closed at its last value nobody knows whether that is its end."""
    node = NodeBuilder().subscribe_only("a").do(lambda value: value + "!").write_to("b")
    app = with_ledger(
        Pregel(
            nodes={"one": node},
            channels={"a": LastValue(str), "b": LastValue(str)},
            input_channels=["a"],
            output_channels=["b"],
            checkpointer=saver,
        )
    )
    stream: Any = app.stream({"a": "in"}, CONFIG, stream_mode="checkpoints", durability="sync")
    for chunk in stream:
        if chunk["values"].get("b"):
            break
    stream.close()

    assert "idle" == saver.ledger.runs()[0].status


def test_l38_a_clock_that_is_put_back_takes_no_active_time_away(acts: Acts) -> None:
    acts.run(with_ledger(line(acts.saver, a=asks("sure?"))))
    before = newest(acts).active_seconds
    now_us = acts.saver.database.clock_us()
    acts.saver.database.transact(active_time.count, "t", since_us=now_us, until_us=now_us - 10_000_000)

    assert before == newest(acts).active_seconds
