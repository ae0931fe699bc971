"""S9: a thread is deleted and its ledger is kept: runs, totals and events, and nothing that anybody said in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from langgraph_ext import AgentNode, Budget, Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.ledger import Dimension
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import CONFIG, Boom, State, answered, asks, graph_of, line, names, says, tried
from tests.support.growing import pieces

SECRET = "the-patient-is-ill"
"""Stands in everything that a run is given, says, keeps and is told."""

GONE = ["thread.deleted"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    with LedgerSaver(path) as saver:
        yield saver


def stored(path: Path) -> str:
    """All that any row of the database holds."""
    with sqlite3.connect(path) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])


@durable(effect="write", accepts_steering=True)
def pays(state: State, frame: Frame) -> Any:
    frame.memo["note"] = SECRET
    return {"log": [frame.once("pay", {"order": SECRET}, lambda key: {"receipt": SECRET}, part=SECRET)["receipt"]]}


def fails(state: State) -> Any:
    raise Boom(SECRET)


def life(saver: LedgerSaver) -> Any:
    """A thread that has seen everything: effects, memos, steering, an answer, an error, and an open question."""
    inner = line(None, asks=asks({"kind": SECRET, "ask": SECRET}))
    app = line(saver, a=says(SECRET * 300), pays=pays, inner=inner)
    tried(app, (SECRET,))
    saver.ledger.steer(saver.ledger.runs()[0].run_id, SECRET)
    (question,) = saver.ledger.interrupts(pending=True)
    saver.ledger.answer({question.interrupt_id: SECRET}, by=SECRET)
    app.invoke(saver.ledger.resume_command("t"), CONFIG)
    tried(line(saver, fails=fails), (SECRET,))
    tried(app, (SECRET,))
    saver.ledger.cancel(saver.ledger.runs()[0].run_id, reason=SECRET)
    tried(app, (SECRET,))


def told(saver: LedgerSaver, run_id: str) -> list[Any]:
    """A run's events, without what anybody said in his own words."""
    return [
        (
            each.cursor,
            each.run_seq,
            each.name,
            each.thread_id,
            each.checkpoint_id,
            each.task_id,
            each.node_path,
            each.at,
        )
        for each in saver.ledger.events(run_id, limit=1000)
    ]


def test_s9_a_kept_ledger_has_the_runs_and_their_events(saver: LedgerSaver) -> None:
    """Each with its name, number, cursor and place; what was open is cancelled."""
    life(saver)
    before = {run.run_id: (run, told(saver, run.run_id)) for run in saver.ledger.runs()}
    saver.delete_thread("t", keep_ledger=True)
    runs = saver.ledger.runs()

    assert list(before) == [run.run_id for run in runs] == [run.run_id for run in saver.ledger.runs(thread_id="t")]
    assert {("t", True)} == {(run.thread_id, run.thread_deleted) for run in runs}
    for run in runs:
        old, events = before[run.run_id]
        now = told(saver, run.run_id)
        assert events == now[: len(events)]
        assert {"run.cancelled"} >= {each[2] for each in now[len(events) :]}
        assert ("cancelled" if not old.status.ended else old.status) == run.status
        assert old.error_type == run.error_type
    assert ([], []) == (saver.ledger.verify(), saver.ledger.interrupts())


def test_s9_a_kept_ledger_holds_nothing_that_was_said(saver: LedgerSaver, path: Path) -> None:
    """No input, no output, no question, answer, message, memo, payload, receipt, error message or reason."""
    life(saver)
    assert SECRET in stored(path)
    assert pieces(path)
    saver.delete_thread("t", keep_ledger=True)

    assert SECRET not in stored(path)


def test_s9_a_kept_ledger_has_the_totals(saver: LedgerSaver) -> None:
    """What models were called for, and how much of it: of the runs, their calls and their agents'."""
    model = ScriptedChatModel(script=[call("look", {"where": SECRET}), SECRET])

    def look(where: str) -> str:
        """Look."""
        return SECRET

    app = graph_of(AgentNode(name="clerk", model=model, tools=[look])).compile(checkpointer=saver)
    app = with_ledger(app, budget=Budget(turns=9, tokens_per_call=100))
    app.invoke({"messages": [HumanMessage(SECRET)]}, CONFIG)
    run = saver.ledger.runs(thread_id="t")[0]
    children = [child.run_id for child in saver.ledger.children(run.run_id)]
    before = [saver.ledger.usage(each) for each in (run.run_id, *children)]
    called = [len(saver.ledger.calls(each)) for each in (run.run_id, *children)]
    events = [list(names(saver.ledger.events(each))) for each in children]
    saver.delete_thread("t", keep_ledger=True)

    assert children
    assert before == [saver.ledger.usage(each) for each in (run.run_id, *children)]
    assert called == [len(saver.ledger.calls(each)) for each in (run.run_id, *children)]
    assert 2 == before[0].spent[Dimension.TURNS].known + sum(
        each.spent[Dimension.TURNS].known for each in before[1:]
    ) or (2 == before[0].spent[Dimension.TURNS].known)
    assert children == [child.run_id for child in saver.ledger.children(run.run_id)]
    assert events == [list(names(saver.ledger.events(each))) for each in children]
    assert [] == saver.ledger.verify()


def test_s9_of_the_agents_of_a_kept_ledger_no_payload_is_left(saver: LedgerSaver, path: Path) -> None:
    model = ScriptedChatModel(script=[SECRET])
    app = graph_of(AgentNode(name="clerk", model=model, tools=[])).compile(checkpointer=saver)
    app.invoke({"messages": [HumanMessage(SECRET)]}, CONFIG)
    saver.delete_thread("t", keep_ledger=True)

    assert SECRET not in stored(path)


def test_s9_a_thread_that_begins_anew_has_nothing_to_do_with_what_was_kept(saver: LedgerSaver) -> None:
    """Neither by its runs, nor when it is pruned, and deleted with its ledger kept again."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    for _ in range(2):
        tried(app)
        answered(app)
        tried(app)
        saver.prune(["t"])
        assert ["paused", "succeeded"] == [run.status for run in saver.ledger.runs(thread_id="t", limit=2)]
        saver.delete_thread("t", keep_ledger=True)
    runs = saver.ledger.runs(thread_id="t")

    assert ["cancelled", "succeeded"] * 2 == [run.status for run in runs]
    assert [run.run_id for run in runs[1:3]] == [
        run.run_id for run in saver.ledger.runs(thread_id="t", before=runs[0].run_id, limit=2)
    ]
    assert ["cancelled"] * 2 == [run.status for run in saver.ledger.runs(thread_id="t", status="cancelled")]
    assert [] == saver.ledger.verify()


@pytest.mark.parametrize("again", [False, True], ids=["of what is there no more", "of what has begun anew"])
def test_s9_a_deletion_that_keeps_nothing_takes_what_was_kept(saver: LedgerSaver, path: Path, again: bool) -> None:
    """The last word on a thread is that nothing of it is left, but the tombstone and that event."""
    app = line(saver, a=says("a"))
    tried(app)
    saver.delete_thread("t", keep_ledger=True)
    if again:
        tried(app)
    saver.delete_thread("t")
    kept = [event.name for event in saver.ledger.events()]

    assert ([], {"thread.deleted"}) == (saver.ledger.runs(), set(kept))
    assert [] == saver.ledger.verify()


@pytest.mark.parametrize("keep_ledger", [True, False])
def test_s9_a_sweep_has_no_thread_in_what_was_kept(saver: LedgerSaver, path: Path, keep_ledger: bool) -> None:
    """Neither the one that kept it, which comes by its name later, nor one after it; a thread of such a name is one."""
    app = line(saver, a=says("a"))
    for thread in ("a", "t"):
        app.invoke({"log": []}, {"configurable": {"thread_id": thread}})
    policy: Any = {"older_than_seconds": 0, "keep_last": 0}
    did = [saver.sweep(**policy, keep_ledger=True)]
    app.invoke({"log": []}, {"configurable": {"thread_id": "kept:b"}})
    did += [saver.sweep(**policy, keep_ledger=keep_ledger), saver.sweep(**policy, keep_ledger=keep_ledger)]

    assert [2, 1, 0] == [each.deleted for each in did] == [each.threads for each in did]
    left = ["kept:b", "t", "a"] if keep_ledger else ["t", "a"]
    assert left == [run.thread_id for run in saver.ledger.runs()]
    assert left[-2:] == [saver.ledger.events(run.run_id)[0].thread_id for run in saver.ledger.runs()][-2:]
    with sqlite3.connect(path) as connection:
        named = [row[0] for row in connection.execute("SELECT thread_id FROM tombstone ORDER BY thread_id")]
    assert (["a", "kept:b", "t"], []) == (named, saver.ledger.verify())


def test_s9_visits_and_errors_of_a_kept_ledger_are_read(saver: LedgerSaver) -> None:
    """Which node ran how often, and how it went, in subgraphs too."""
    tried(line(saver, a=says("a"), inner=line(None, b=says("b")), fails=fails))
    run_id = saver.ledger.runs()[0].run_id
    before = [(each.node_path, each.status, each.ordinal, each.transition) for each in saver.ledger.visits(run_id)]
    saver.delete_thread("t", keep_ledger=True)

    assert before == [
        (each.node_path, each.status, each.ordinal, each.transition) for each in saver.ledger.visits(run_id)
    ]
    assert {"t"} == {each.thread_id for each in saver.ledger.visits(run_id)}
    assert [("fails", "Boom", "")] == [
        (each.node_path, each.error_type, each.error_message) for each in saver.ledger.errors(run_id)
    ]


def test_s9_a_request_of_a_deleted_thread_may_come_again(saver: LedgerSaver) -> None:
    """As without a kept ledger: its name is free."""
    app = line(saver, a=says("a"))
    named: Any = {"configurable": {"thread_id": "t", "run_key": "r"}}
    tried(app, config=named, durability="sync")
    saver.delete_thread("t", keep_ledger=True)
    tried(app, config=named, durability="sync")

    assert ["r", "r"] == [run.run_key for run in saver.ledger.runs(thread_id="t")]


def test_s9_a_reader_of_all_events_is_shown_each_once(saver: LedgerSaver) -> None:
    """Who has read some of them before the deletion goes on behind them, and is shown the rest."""
    builder = StateGraph(State).add_node("inner", line(None, b=says("b"), ask=asks("sure?"))).add_edge(START, "inner")
    app = builder.compile(checkpointer=saver)
    tried(app, durability="async")
    app.invoke(Command(resume="yes"), CONFIG, durability="async")
    whole = saver.ledger.events(limit=1000)
    for cut in range(len(whole)):
        assert whole[cut + 1 :] == saver.ledger.events(after=whole[cut].cursor, limit=1000)
    saver.delete_thread("t", keep_ledger=True)
    for cut in range(len(whole)):
        found = saver.ledger.events(after=whole[cut].cursor, limit=1000)
        assert [each.cursor for each in whole[cut + 1 :]] == [each.cursor for each in found[:-1]]
        assert GONE == [each.name for each in found[-1:]]
