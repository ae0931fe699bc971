"""A15: an agent node in the places where graphs live: functions, notebooks, servers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.func import entrypoint, task
from langgraph.types import Command

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, with_ledger
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import CONFIG, graph_of
from tests.support.server import ServerAdapter

APPROVE = Command(resume={"decisions": [{"type": "approve"}]})


class Till:
    """Where agents pay, and how often they did."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def clerk(self, order: str = "a") -> AgentNode:
        def pay(order: str) -> str:
            """Pay."""
            self.paid.append(order)
            return f"paid {order}"

        model = ScriptedChatModel(script=[call("pay", {"order": order}), f"{order} is paid."])
        return AgentNode(name="clerk", model=model, tools=[pay], interrupt_on={"pay": True})

    def graph(self, checkpointer: Any) -> Any:
        return graph_of(self.clerk()).compile(checkpointer=checkpointer)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture
def till() -> Till:
    return Till()


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id="ask")]}


def test_a15_agents_in_tasks_of_a_workflow(path: str, till: Till) -> None:
    """Two side by side, each asked about by itself. The workflow's body runs again; what its agents did is kept."""
    clerks = {each: till.clerk(each) for each in ("a", "b")}

    @task
    def settle(order: str) -> str:
        return str(clerks[order].invoke(said(f"Pay {order}."))["messages"][-1].text)

    with LedgerSaver(path) as saver:

        @entrypoint(checkpointer=saver)
        def workflow(orders: list[str]) -> list[str]:
            return [each.result() for each in [settle(order) for order in orders]]

        found = workflow.invoke(["a", "b"], CONFIG)
        while "__interrupt__" in found:  # LangGraph shows one of them, or both
            asked = found["__interrupt__"]
            by_id = {each.id: {**APPROVE.resume, "request_id": each.value["request_id"]} for each in asked}
            found = workflow.invoke(Command(resume=by_id), CONFIG)
        assert ["a is paid.", "b is paid."] == found
        assert 2 == len(AgentGraphEngine(saver.ledger).runs())
        assert [] == saver.ledger.verify()
    assert ["a", "b"] == sorted(till.paid)


def test_a15_an_agent_in_the_body_of_a_workflow(path: str, till: Till) -> None:
    clerk = till.clerk()
    with LedgerSaver(path) as saver:

        @entrypoint(checkpointer=saver)
        def workflow(text: str) -> str:
            return str(clerk.invoke(said(text))["messages"][-1].text)

        assert "__interrupt__" in workflow.invoke("Pay.", CONFIG)
        assert "a is paid." == workflow.invoke(APPROVE, CONFIG)
        assert [] == saver.ledger.verify()
    assert ["a"] == till.paid


async def test_a15_sync_and_async_in_a_loop_that_runs(path: str, till: Till) -> None:
    """As in a notebook, whose cells run in one: asked by the one, answered by the other."""
    with LedgerSaver(path) as saver:
        app = till.graph(saver)
        for first, second in (("t1", "t2"), ("t3", "t4")):
            for name, begins_sync in ((first, True), (second, False)):
                config: Any = {"configurable": {"thread_id": name}}
                found = app.invoke(said("Pay."), config) if begins_sync else await app.ainvoke(said("Pay."), config)
                assert "approval" == found["__interrupt__"][0].value["kind"]
                found = await app.ainvoke(APPROVE, config) if begins_sync else app.invoke(APPROVE, config)
                assert "a is paid." == found["messages"][-1].text
    assert ["a"] * 4 == till.paid


def test_a15_an_agent_under_the_servers_adapter(path: str, till: Till) -> None:
    """A run of the server asks, and one in another process and loop, with a saver of its own, goes on."""
    metadata = {"langgraph_version": "1.2", "langgraph_api_url": "http://localhost", "run_attempt": 1}
    config: Any = {"configurable": {"thread_id": "t"}, "metadata": metadata}

    async def serve(given: Any, run_id: str) -> Any:
        async with LedgerSaver(path) as saver:
            app = with_ledger(till.graph(None)).copy(update={"checkpointer": ServerAdapter(saver, run_id=run_id)})
            return await app.ainvoke(given, config)

    assert "__interrupt__" in asyncio.run(serve(said("Pay."), "run 1"))
    final = asyncio.run(serve(APPROVE, "run 2"))
    assert "a is paid." == final["messages"][-1].text
    assert ["a"] == till.paid
    with LedgerSaver(path) as saver:
        assert [] == saver.ledger.verify()
