"""A4, A5, A8: agent runs that nobody goes on with: what they did is known to the next, and nothing is done twice."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support import agent_processes as children
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import run
from tests.support.react_processes import noted
from tests.support.reacting import Notes


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "plain"])
def test_a4_new_input_behind_a_crash_knows_what_was_done(path: str, attached: bool) -> None:
    """The agent run that died is stopped: its settled call has its result, and of the other nobody knows."""
    assert run(children.pay_and_die, path, "sync", attached).killed
    with LedgerSaver(path) as saver:
        app: Any = children.paying(path).compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        final = app.invoke({"messages": [HumanMessage("What is paid?")]}, CONFIG)
        results = [each.text for each in final["messages"] if each.type == "tool"]
        engine = AgentGraphEngine(saver.ledger)
        died, went_on = reversed(engine.runs())
        assert ("cancelled", "succeeded") == (died.status, went_on.status)
        assert ["pay"] == [each.name for each in engine.doubts(died.agent_run_id)]
        assert [] == saver.ledger.verify()
    assert "paid a" == results[0]
    assert results[1].startswith("outcome_unknown")
    assert {"a": 1, "b": 1} == Counter(noted(f"{path}.log"))


def test_a15_under_exit_the_same_input_goes_on_with_the_agent_run_that_died(path: str) -> None:
    """Nothing but that is there of its graph: the call of which nobody knows is asked about."""
    assert run(children.pay_and_die, path, "exit", False).killed
    with LedgerSaver(path) as saver:
        app = children.paying(path).compile(checkpointer=saver)
        given = {"messages": [HumanMessage("Pay a and b.", id="first")]}
        found = app.invoke(given, CONFIG, durability="exit")
        assert "doubt" == found["__interrupt__"][0].value["kind"]
        assert 1 == len(AgentGraphEngine(saver.ledger).runs())
    assert {"a": 1, "b": 1} == Counter(noted(f"{path}.log"))


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "plain"])
async def test_a4_a_message_that_comes_while_the_agent_works_repeats_nothing(path: str, attached: bool) -> None:
    """Where the thread is not held it takes the head away from the first turn; what that did is known all the same."""
    paid, at_work, is_told = list[str](), asyncio.Event(), asyncio.Event()

    async def pay(order: str) -> str:
        """Pay."""
        at_work.set()
        await is_told.wait()
        paid.append(order)
        return "paid"

    model = ScriptedChatModel(script=[call("pay", {"order": "a"}), "done", "well"])
    builder = graph_of(AgentNode(name="clerk", model=model, tools=[pay]))

    async def say(app: Any, given: Any) -> Any:
        try:
            return await app.ainvoke(given, CONFIG, durability="sync")
        except LangGraphExtError as error:
            return error.code

    async with LedgerSaver(path) as saver:
        app = builder.compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        first = asyncio.ensure_future(say(app, {"messages": [HumanMessage("Pay a.")]}))
        await at_work.wait()
        assert "thread_busy" == await say(app, {"messages": [HumanMessage("Are you there?")]})
        is_told.set()
        assert attached or "thread_conflict" == await first
        await first
        final = await say(app, None)
    assert ["a"] == paid
    assert ["paid"] == [each.text for each in final["messages"] if each.type == "tool"]


def test_a5_a_waiting_agent_is_no_finding_of_verify(path: str) -> None:
    """Its run is paused, and the question is its graph's."""
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "done"])
    node = AgentNode(name="support", model=model, tools=[Notes().tool("t")], interrupt_on={"t": True})
    with LedgerSaver(path) as saver:
        graph_of(node).compile(checkpointer=saver).invoke({"messages": [HumanMessage("go")]}, CONFIG)
        assert ["paused", "paused"] == [each.status for each in saver.ledger.runs()]
        assert [] == saver.ledger.verify()


def test_a5_a_visit_leaves_no_engine_behind(path: str) -> None:
    """Nor, with it, the database of a saver that nobody has any more."""
    with LedgerSaver(path) as saver:
        node = AgentNode(name="support", model=ScriptedChatModel(script=["done"]))
        graph_of(node).compile(checkpointer=saver).invoke({"messages": [HumanMessage("go")]}, CONFIG)
        database = weakref.ref(saver.ledger.database)
    del saver
    gc.collect()
    assert database() is None
