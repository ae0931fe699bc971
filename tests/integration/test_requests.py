"""Requests with a name (L50), and what a graph was when its run began (L51)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.func import entrypoint
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, durable
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument
from langgraph_ext.ledger.records import Run
from langgraph_ext.ledger.requests import Request, begin
from langgraph_ext.saver.callbacks import LedgerCallbackHandler, with_ledger
from langgraph_ext.saver.definition import definition_of
from tests.support.acted import Acts
from tests.support.apps import asks, fails, line, says
from tests.support.driver import Form
from tests.support.processes import at_once
from tests.support.requested import ask_once


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


def named(run_key: Any, thread_id: str = "t") -> Any:
    return {"configurable": {"thread_id": thread_id, "run_key": run_key}}


def newest(acts: Acts) -> Run:
    acts.saver.database.transact(lambda tx: None)
    return acts.saver.ledger.runs()[0]


# -- L50


@pytest.mark.parametrize("attached", [True, False])
def test_l50_a_request_that_comes_again_is_not_run_again(acts: Acts, attached: bool) -> None:
    """On any thread; it is told which run it began, and how that stands. Attached, nothing of it runs."""
    app = line(acts.saver, a=acts.node("a"))
    app = with_ledger(app) if attached else app
    acts.run(app, config=named("order-7"))
    run = newest(acts)
    for thread_id in ("t", "another"):
        with pytest.raises(ConflictError) as refused:
            acts.run(app, config=named("order-7", thread_id))
        assert ("run_exists", run.run_id) == (refused.value.code, refused.value.details["run_id"])
        assert "succeeded" == refused.value.details["status"]

    assert ([run], "order-7") == (acts.saver.ledger.runs(), run.run_key)
    assert not attached or ["a"] == acts.ran
    assert [] == acts.saver.ledger.verify()


def test_l50_attached_its_name_is_kept_also_where_the_end_alone_is_stored(acts: Acts) -> None:
    """Under durability "exit" the first checkpoint that is stored is the last one."""
    app = with_ledger(line(acts.saver, a=says("a")))
    acts.run(app, config=named("order-7"), durability="exit")
    with pytest.raises(ConflictError) as refused:
        acts.run(app, config=named("order-7", "another"), durability="exit")
    acts.run(app, config=named("order-8"), durability="exit")

    assert ("run_exists", "t") == (refused.value.code, refused.value.details["thread_id"])
    assert [("t", "order-8"), ("t", "order-7")] == [(each.thread_id, each.run_key) for each in acts.saver.ledger.runs()]
    assert ["in", "a"] * 2 == app.get_state(named("order-7")).values["log"]


def test_l50_another_run_that_the_same_invocation_begins_has_no_name(acts: Acts) -> None:
    """Its first run keeps the name; the other one is not refused for it."""
    acts.run(with_ledger(line(acts.saver, a=says("a"))), config=named("order-7"))
    first = newest(acts)
    request = Request(run_key="order-7", input_digest=str(first.input_digest), definition=None, made_by="")
    asked = {"request": request, "thread_id": "t", "now_us": 0}
    (epoch,) = acts.saver.database.transact(lambda tx: [tx.one("lease_get", thread_id="t")["epoch"]])
    acts.saver.database.transact(lambda tx: begin(tx, 99, epoch=epoch, **asked))
    with pytest.raises(ConflictError, match=first.run_id):
        acts.saver.database.transact(lambda tx: begin(tx, 99, epoch=epoch + 1, **asked))

    assert "order-7" == newest(acts).run_key


@pytest.mark.parametrize("attached", [True, False])
def test_l50_with_another_input_it_is_a_conflict(acts: Acts, attached: bool) -> None:
    app = line(acts.saver, a=says("a"))
    app = with_ledger(app) if attached else app
    acts.run(app, config=named("order-7"))
    with pytest.raises(ConflictError) as refused:
        acts.run(app, ("other",), config=named("order-7"))

    assert "run_key_conflict" == refused.value.code
    assert ["in", "a"] == app.get_state(named("order-7")).values["log"]


@pytest.mark.parametrize("how", ["asks", "fails"])
def test_l50_who_goes_on_with_its_run_may_name_it(acts: Acts, how: str) -> None:
    """The config of a request serves for its resumes as well."""
    app = with_ledger(line(acts.saver, a=asks("sure?") if how == "asks" else fails(1), b=says("b")))
    acts.run(app, config=named("order-7"))
    acts.run(app, Command(resume="yes") if how == "asks" else None, config=named("order-7"))

    assert ("succeeded", "order-7") == (newest(acts).status, newest(acts).run_key)


def test_l50_a_request_that_began_no_run_may_come_again(acts: Acts) -> None:
    """Its invocation was over before anything of it was stored."""
    broken = LedgerSaver(acts.saver.database)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no such luck")

    broken.put = broken.aput = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="luck"):
        acts.run(with_ledger(line(broken, a=says("a"))), config=named("order-7"))
    acts.run(with_ledger(line(acts.saver, a=says("a"))), config=named("order-7", "another"))

    assert ("order-7", "another", "succeeded") == (newest(acts).run_key, newest(acts).thread_id, newest(acts).status)


def test_l50_a_request_of_a_deleted_thread_may_come_again(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=says("a")))
    for _ in range(2):
        acts.run(app, config=named("order-7"))
        newest(acts)
        acts.saver.delete_thread("t")

    assert [] == acts.saver.ledger.runs()


@pytest.mark.parametrize("run_key", ["", 7, "x" * 1025])
def test_l50_a_name_is_text(acts: Acts, run_key: Any) -> None:
    app = with_ledger(line(acts.saver, a=acts.node("a")))
    with pytest.raises(InvalidArgument, match="run_key") as refused:
        acts.run(app, config=named(run_key))

    assert len(str(refused.value)) < 200
    assert ([], None) == (acts.ran, acts.saver.get_tuple(named("x")))


@pytest.mark.parametrize("attached", [True, False])
def test_scenario_03_the_same_request_in_several_processes_at_once(tmp_path: Path, attached: bool) -> None:
    """One run; the others are told, also the one with another body."""
    calls = [(str(tmp_path), attached, number, "other" if number == 3 else "in") for number in range(4)]
    answers = at_once(ask_once, *calls)

    with LedgerSaver(tmp_path / "runs.db") as saver:
        runs = saver.ledger.runs()
    assert 1 == len(runs)
    assert 1 == answers.count("done")
    assert {"done", "run_exists", "run_key_conflict"} >= set(answers)


# -- L51


def test_l51_a_run_says_what_it_was_begun_with(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=acts.node("a")))
    acts.run(app)
    run = newest(acts)

    assert ("LangGraph", definition_of(app).digest) == (run.graph, run.definition_digest)
    assert run.input_digest is not None
    assert run.input_digest.startswith("sha256:")
    assert run.made_by is not None
    assert "langgraph-ext" in run.made_by
    acts.run(line(acts.saver, a=acts.node("a")))
    assert (None, None) == (newest(acts).graph, newest(acts).definition_digest)


def changed(acts: Acts, on_change: Any = "name", **nodes: Any) -> Any:
    return with_ledger(line(acts.saver, **nodes), on_change=on_change)


def test_l51_what_has_changed_is_named_once(acts: Acts) -> None:
    acts.run(changed(acts, a=says("a"), b=fails(1)))
    for _ in range(2):
        acts.run(changed(acts, a=says("a"), b=fails(3), c=says("c")), None)
    acts.run(changed(acts, a=says("a"), b=says("b"), c=says("c")), None)
    (event,) = [each for each in acts.saver.ledger.events(limit=1000) if each.name == "run.definition_changed"]

    assert ["b", "c", "(channels)"] == event.details["nodes"]
    assert "succeeded" == newest(acts).status


def test_l51_a_change_may_be_refused(acts: Acts) -> None:
    """Before anything runs, and the run can still be gone on with by what began it."""
    app = changed(acts, a=says("a"), b=fails(1))
    acts.run(app)
    with pytest.raises(AdmissionError, match="b") as refused:
        acts.run(changed(acts, "refuse", a=says("a"), b=acts.node("b"), c=acts.node("c")), None)

    assert ("definition_changed", []) == (refused.value.code, acts.ran)
    assert ["b", "c", "(channels)"] == refused.value.details["nodes"]
    acts.run(app, None)
    assert ("succeeded", []) == (newest(acts).status, acts.saver.ledger.verify())


@pytest.mark.parametrize("how", ["gone", "effect"])
def test_l51_a_node_that_has_begun_is_neither_gone_nor_another(acts: Acts, how: str) -> None:
    """It asks, and its answer would be for something else."""

    def body(frame: Any) -> Any:
        return {"log": [interrupt("sure?")]}

    acts.run(changed(acts, a=says("a"), b=acts.node("b", body)))
    nodes = {"b": acts.node("b", body, effect="opaque")} if how == "effect" else {"other": says("other")}
    with pytest.raises(AdmissionError) as refused:
        acts.run(changed(acts, a=says("a"), **nodes), Command(resume="yes"))

    assert ("definition_changed", ["b"]) == (refused.value.code, refused.value.details["nodes"])
    acts.run(changed(acts, a=says("a"), b=acts.node("b", body)), Command(resume="yes"))
    assert "succeeded" == newest(acts).status


def test_l51_new_input_begins_a_run_of_the_new_definition(acts: Acts) -> None:
    acts.run(changed(acts, a=says("a"), b=fails(1)))
    app = changed(acts, "refuse", a=says("a"))
    acts.run(app)

    assert ("succeeded", definition_of(app).digest) == (newest(acts).status, newest(acts).definition_digest)


def test_l51_a_definition_is_nodes_edges_channels_and_what_durable_declares(saver: LedgerSaver) -> None:
    """Not a function's code; a subgraph's nodes are in it; an entrypoint has one too."""

    def node(**options: Any) -> Any:
        @durable(**options)
        def body(state: Any) -> Any:
            return {}

        return body

    base = definition_of(line(saver, a=says("x"), b=node()))
    same = definition_of(line(saver, a=says("y"), b=node()))
    others = [
        definition_of(line(saver, b=node(), a=says("x"))),
        definition_of(line(saver, a=says("x"), b=node(effect="write"))),
        definition_of(line(saver, a=says("x"), b=node(), c=says("c"))),
        definition_of(line(saver, a=line(None, inner=says("x")), b=node())),
    ]

    assert base.digest == same.digest
    assert 5 == len({base.digest, *(other.digest for other in others)})
    assert "a:inner" in others[-1].nodes

    @entrypoint(checkpointer=saver)
    def flow(given: Any) -> Any:
        return given

    assert ["flow"] == sorted(definition_of(flow).nodes)


def test_l51_an_option_is_one_of_its_words() -> None:
    with pytest.raises(InvalidArgument, match="on_change"):
        LedgerCallbackHandler(on_change="ask")  # type: ignore[arg-type]
