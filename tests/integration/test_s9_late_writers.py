"""S9: graphs whose thread is deleted while they run: what they still write is refused, and nothing of it is stored."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from langgraph_ext import AgentNode, Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import ConflictError, LangGraphExtError, LeaseError
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, asks, fan, graph_of, line, says
from tests.support.build import whole
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, request.param, loop)


def deletes(acts: Acts, saver: LedgerSaver | None = None, then: Callable[[], Any] = lambda: None) -> Any:
    """A node in which somebody deletes the thread, once; `then` follows at once."""
    left = iter([True])

    def sync(state: State) -> Any:
        for _ in left:
            (saver or acts.saver).delete_thread("t")
            then()
        return {"log": ["deleted"]}

    async def run(state: State) -> Any:
        for _ in left:
            await (saver or acts.saver).adelete_thread("t")
            then()
        return {"log": ["deleted"]}

    return sync if acts.form == "sync" else run


def rows(acts: Acts) -> list[Any]:
    """What the log holds of the thread, but for events of its deletion."""
    acts.saver.database.transact(lambda tx: None)
    with sqlite3.connect(acts.saver.database.name) as connection:
        return connection.execute(
            "SELECT * FROM checkpoint_log WHERE thread_id = 't' AND coalesce(event, '') <> 'thread.deleted'"
        ).fetchall()


def late(acts: Acts, app: Any, given: Any = ("in",)) -> str:
    """Run it; the code of what it is told."""
    try:
        acts.run(app, {"log": list(given)} if isinstance(given, tuple) else given)
    except LangGraphExtError as error:
        return error.code
    return "nothing"


GRAPHS: dict[str, Callable[[Acts, Any], Any]] = {
    "in the first node": lambda acts, node: line(acts.saver, a=node, b=says("b"), c=says("c")),
    "in the last node": lambda acts, node: line(acts.saver, a=says("a"), b=node),
    "in a subgraph": lambda acts, node: line(
        acts.saver, a=says("a"), inner=line(None, b=node, c=says("c")), d=says("d")
    ),
    "before a subgraph": lambda acts, node: line(acts.saver, a=node, inner=line(None, b=says("b"), c=says("c"))),
    "before a subgraph that keeps its state": lambda acts, node: line(
        acts.saver,
        a=node,
        inner=StateGraph(State).add_node("b", says("b")).add_edge(START, "b").compile(checkpointer=True),
        c=says("c"),
    ),
    "before a question": lambda acts, node: line(acts.saver, a=node, inner=line(None, ask=asks("sure?"))),
    "in a fan-out": lambda acts, node: fan(acts.saver, "a", "b", "a", a=says("a"), b=node),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("turn", ["first", "second"])
def test_s9_a_graph_whose_thread_is_deleted_while_it_runs_is_refused(acts: Acts, graph: str, turn: str) -> None:
    """No row of it is left, also where it had run ahead of what was being saved; the thread begins anew."""
    if turn == "first" and acts.durability == "exit":
        pytest.skip("nothing was stored yet that could be deleted")
    if turn == "second":
        acts.run(line(acts.saver, a=says("before")))
    told = late(acts, GRAPHS[graph](acts, deletes(acts)))

    assert ("thread_deleted", []) == (told, rows(acts))
    acts.run(line(acts.saver, a=says("anew")))
    state: Any = line(acts.saver, a=says("anew")).get_state(CONFIG)
    assert (["in", "anew"], []) == (state.values["log"], acts.saver.ledger.verify())


def test_s9_another_saver_of_the_file_may_delete_it(acts: Acts) -> None:
    """What one remembers of a thread does not bring it back."""
    acts.run(line(acts.saver, a=says("before")))
    with LedgerSaver(acts.saver.database.name) as other:
        told = late(acts, line(acts.saver, a=says("a"), b=deletes(acts, other), c=says("c"), d=says("d")))

    assert ("thread_deleted", []) == (told, rows(acts))


def test_s9_the_thread_may_begin_anew_before_its_old_run_has_noticed(acts: Acts) -> None:
    """Both run at once: the old one is refused, and the new one keeps all that is its own."""
    acts.run(line(acts.saver, a=says("before")))

    def anew() -> None:
        with LedgerSaver(acts.saver.database.name) as other:
            line(other, a=says("anew")).invoke({"log": ["in"]}, CONFIG, durability="sync")

    inner = StateGraph(State).add_node("b", says("b")).add_edge(START, "b").compile(checkpointer=True)
    told = late(acts, line(acts.saver, a=deletes(acts, then=anew), inner=inner, c=says("c")))
    state: Any = line(acts.saver, a=says("anew")).get_state(CONFIG)

    assert ("thread_deleted", ["in", "anew"]) == (told, state.values["log"])
    assert {""} == {each.config["configurable"]["checkpoint_ns"] for each in acts.saver.list(CONFIG)}
    assert (["succeeded"], []) == ([run.status for run in acts.saver.ledger.runs()], acts.saver.ledger.verify())


def test_s9_a_copy_onto_the_deleted_thread_is_not_written_on_by_its_old_run(acts: Acts) -> None:
    """Though it holds the very checkpoint that the old run goes on from, and everything looks as it remembers."""
    if acts.durability == "exit":
        pytest.skip("its checkpoints of before the copy are not stored")
    acts.run(line(acts.saver, a=says("before")))

    def node(state: State) -> Any:
        acts.saver.copy_thread("t", "kept")
        acts.saver.delete_thread("t")
        acts.saver.copy_thread("kept", "t")
        return {"log": ["late"]}

    async def anode(state: State) -> Any:
        await acts.saver.acopy_thread("t", "kept")
        await acts.saver.adelete_thread("t")
        await acts.saver.acopy_thread("kept", "t")
        return {"log": ["late"]}

    told = late(acts, line(acts.saver, a=says("a"), b=node if acts.form == "sync" else anode, c=says("late")))
    there, kept = (
        [(each.checkpoint["id"], each.pending_writes) for each in acts.saver.list(whole(name))]
        for name in ("t", "kept")
    )

    assert ("thread_deleted", kept) == (told, there)


def test_s9_a_durable_node_of_a_deleted_checkpoint_is_refused_at_once(acts: Acts) -> None:
    """It stands in the same step as the node that deletes the thread; it does not wait for a checkpoint in vain."""
    if acts.durability == "exit":
        pytest.skip("nothing is stored that could be deleted")
    ran: list[str] = []

    @durable(effect="write")
    def pays(state: State, frame: Frame) -> Any:
        ran.append("paid")
        return {"log": ["paid"]}

    @durable(effect="write")
    async def apays(state: State, frame: Frame) -> Any:
        ran.append("paid")
        return {"log": ["paid"]}

    app = fan(acts.saver, "a", "b", a=deletes(acts), b=pays if acts.form == "sync" else apays)
    one_at_a_time: Any = {**CONFIG, "max_concurrency": 1}
    with pytest.raises(ConflictError, match="thread_deleted"):
        acts.run(app, {"log": []}, one_at_a_time)

    assert ([], []) == (ran, rows(acts))


def test_s9_a_thread_is_not_deleted_under_a_live_lease(acts: Acts) -> None:
    """An invocation of an attached graph holds it; when that is over it can be deleted."""
    codes: list[str] = []

    def tries(state: State) -> Any:
        with pytest.raises(LeaseError) as refused:
            acts.saver.delete_thread("t")
        codes.append(refused.value.code)
        return {"log": ["tried"]}

    app = with_ledger(line(acts.saver, a=says("a"), tries=tries, ask=asks("sure?")))
    acts.run(app)
    acts.run(app, Command(resume="yes"))
    acts.saver.database.transact(lambda tx: None)  # behind the end of the lease
    acts.saver.delete_thread("t")

    assert (["thread_busy"], []) == (codes, rows(acts))


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_s9_a_thread_is_not_deleted_while_an_agent_of_it_is_driven(saver: LedgerSaver, durability: Any) -> None:
    """Under "exit" its own thread has nothing yet: the agent's is held."""
    told: list[Any] = []

    def look() -> str:
        """Look."""
        with pytest.raises(LeaseError) as refused:
            saver.delete_thread("t")
        told.append((refused.value.code, "agent:" in str(refused.value)))
        return "nothing"

    model = ScriptedChatModel(script=[call("look", {}), "done"])
    app = graph_of(AgentNode(name="clerk", model=model, tools=[look])).compile(checkpointer=saver)
    app.invoke({"messages": [HumanMessage("look")]}, CONFIG, durability=durability)
    saver.delete_thread("t")

    assert [("thread_busy", durability == "exit")] == told
    assert [] == saver.ledger.runs()
