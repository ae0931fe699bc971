"""S9: what the ledger holds of a thread goes with it, also where no checkpoint tells of it, or none does any more."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, with_ledger
from langgraph_ext.database import open_database
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support import agent_processes as children
from tests.support.apps import CONFIG, graph_of, line, says
from tests.support.faults import run

SECRET = "the-patient-is-ill"

LEFT = {"migration", "lease", "definition", "agent_release", "tombstone", "checkpoint_log"}
"""Tables that may have rows when all is deleted; of the log, events of the deletion."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    with LedgerSaver(path) as saver:
        yield saver


def stored(path: Path) -> dict[str, list[Any]]:
    """All rows, by table."""
    with sqlite3.connect(path) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    return {table: rows for table, rows in found.items() if rows}


def clerk(saver: LedgerSaver, *, attached: bool = False) -> Any:
    """A graph of an agent that looks once and says what it saw; twice."""

    def look(where: str) -> str:
        """Look."""
        return SECRET

    model = ScriptedChatModel(script=[call("look", {"where": SECRET}), SECRET] * 2)
    app = graph_of(AgentNode(name="clerk", model=model, tools=[look])).compile(checkpointer=saver)
    return with_ledger(app) if attached else app


def turn(app: Any, run_id: str) -> None:
    app.invoke({"messages": [HumanMessage(SECRET)]}, {**CONFIG, "metadata": {"run_id": run_id}})


def agents(path: Path) -> int:
    return len(stored(path).get("agent_run", []))


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("first", ["one", "two"])
def test_s9_agents_go_with_the_last_of_the_runs_that_share_their_history(
    saver: LedgerSaver, path: Path, attached: bool, first: str
) -> None:
    """The turns of a chat go on with one history: a later turn needs what an earlier one has stored."""
    app = clerk(saver, attached=attached)
    turn(app, "one")
    turn(app, "two")
    engine = AgentGraphEngine(saver.ledger)
    before = {each.agent_run_id: engine.transcript(each.agent_run_id) for each in engine.runs()}
    saver.delete_for_runs([first])
    assert before == {each.agent_run_id: engine.transcript(each.agent_run_id) for each in engine.runs()}
    assert (1, 2, []) == (len(saver.ledger.runs(thread_id="t")), agents(path), saver.ledger.verify())
    saver.delete_for_runs([{"one": "two", "two": "one"}[first]])

    assert ([], []) == (saver.ledger.runs(), saver.ledger.verify())
    assert LEFT - {"tombstone"} >= stored(path).keys()
    assert SECRET not in repr(stored(path))


def test_s9_a_chat_goes_on_when_its_first_run_is_gone(saver: LedgerSaver, path: Path) -> None:
    """With all that was said in it; another conversation goes with its own run."""
    model = ScriptedChatModel(script=["a", "b", "c", "other"])
    app: Any = graph_of(AgentNode(name="clerk", model=model, tools=[])).compile(checkpointer=saver)
    for run_id in ("one", "two"):
        turn(app, run_id)
    saver.delete_for_runs(["one"])
    turn(app, "three")
    app.invoke(
        {"messages": [HumanMessage("Hi.")]}, {"configurable": {"thread_id": "u"}, "metadata": {"run_id": "four"}}
    )
    assert [SECRET, "a", SECRET, "b", SECRET, "c"] == [each.text for each in app.get_state(CONFIG).values["messages"]]
    assert [1, 3, 5, 1] == [len(each.request["messages"]) for each in model.calls]
    saver.delete_for_runs(["four"])

    assert (3, []) == (agents(path), saver.ledger.verify())


@pytest.mark.parametrize("keep_ledger", [False, True])
@pytest.mark.parametrize("events", ["there", "gone"])
def test_s9_runs_whose_checkpoints_are_gone_go_with_their_thread(
    saver: LedgerSaver, path: Path, keep_ledger: bool, events: str
) -> None:
    """The first run's were pruned, and the second one was deleted: of the thread, only the first run is left."""
    app = line(saver, a=says(SECRET))
    for run_id in ("one", "two"):
        app.invoke({"log": []}, {**CONFIG, "metadata": {"run_id": run_id}})
    saver.prune(["t"])
    saver.delete_for_runs(["two"])
    if events == "gone":
        app.invoke({"log": []}, {"configurable": {"thread_id": "u"}})
        saver.sweep(events_older_than_seconds=0)
    assert ["one"] == [run.run_id for run in saver.ledger.runs(thread_id="t")]
    saver.delete_thread("t", keep_ledger=keep_ledger)

    assert (["one"] if keep_ledger else []) == [run.run_id for run in saver.ledger.runs(thread_id="t")]
    assert [run.thread_deleted for run in saver.ledger.runs(thread_id="t")] == [True] * keep_ledger
    assert ([], 1) == (saver.ledger.verify(), len(stored(path)["tombstone"]))
    saver.delete_thread("t", keep_ledger=True)
    assert 1 == len(stored(path)["tombstone"])
    saver.delete_thread("t")
    assert [] == saver.ledger.runs(thread_id="t")


def test_s9_a_run_without_checkpoints_goes_when_no_event_is_left_of_its_thread(saver: LedgerSaver, path: Path) -> None:
    app = line(saver, a=says("a"))
    for run_id in ("one", "two"):
        app.invoke({"log": []}, {**CONFIG, "metadata": {"run_id": run_id}})
    saver.prune(["t"])
    saver.delete_for_runs(["two"])
    app.invoke({"log": []}, {"configurable": {"thread_id": "u"}})
    saver.sweep(events_older_than_seconds=0)
    saver.delete_for_runs(["one"])

    assert ([], []) == (saver.ledger.runs(thread_id="t"), saver.ledger.verify())


@pytest.mark.parametrize("keep_ledger", [False, True])
def test_s9_an_agent_whose_graph_has_stored_nothing_goes(path: Path, keep_ledger: bool) -> None:
    """Under "exit", and its process died before the end."""
    assert run(children.pay_and_die, str(path), "exit", False).killed
    assert agents(path) == 1
    with LedgerSaver(open_database(path, clock_us=lambda: time.time_ns() // 1000 + 10**9)) as later:  # no lease is live
        later.delete_thread("t", keep_ledger=keep_ledger)
        assert (0, []) == (agents(path), later.ledger.verify())

    assert "Pay a and b." not in repr(stored(path))


def test_s9_an_agents_own_thread_is_none_that_is_deleted(saver: LedgerSaver, path: Path) -> None:
    """It goes with its graph's thread, or its run."""
    turn(clerk(saver), "one")
    (own,) = [run.thread_id for run in saver.ledger.runs() if run.thread_id != "t"]
    before = stored(path)
    for keep_ledger in (True, False):
        saver.delete_thread(own, keep_ledger=keep_ledger)

    assert before == stored(path)


@pytest.mark.parametrize("keep_ledger", [False, True])
def test_s9_agents_under_leases_of_their_own_go_with_their_thread(
    saver: LedgerSaver, path: Path, keep_ledger: bool
) -> None:
    """As they have under "exit"."""
    clerk(saver).invoke({"messages": [HumanMessage(SECRET)]}, CONFIG, durability="exit")
    saver.delete_thread("t", keep_ledger=keep_ledger)

    assert (0, []) == (agents(path), saver.ledger.verify())
    assert (2 if keep_ledger else 0) == len(saver.ledger.runs())
    assert SECRET not in repr(stored(path))
