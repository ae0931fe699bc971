"""A4, A8: agent runs that fail, that are stopped, and that stand side by side."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, RetryPolicy, Send

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver
from langgraph_ext.errors import AgentRunFailed
from langgraph_ext.testing import ScriptedChatModel, call, calls, fails, say, tries
from tests.support.acted import Acts
from tests.support.agent_nodes import APPROVE, agent, check_history, engine_of, graph, question, said, texts
from tests.support.apps import CONFIG
from tests.support.driver import Form
from tests.support.reacting import Notes


def test_a4_a_retry_behind_a_failure_is_another_agent_run_that_knows_what_was_done(lasting: Acts) -> None:
    """Numbered; the first one's decision and result are its history, so that nothing is done twice."""
    notes = Notes()

    model = ScriptedChatModel(script=[call("t", {"x": 1}), tries(fails(ValueError("gone")), "done")])
    node = AgentNode(name="support", model=model, tools=[notes.tool("t")])
    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=AgentRunFailed)
    app = graph(lasting.saver, node, retry_policy=policy)
    final = lasting.run(app, said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!"), ("ai", "done")] == texts(final)
    assert ([("t", 1)], ["failed", "succeeded"]) == (
        notes,
        [each.status for each in reversed(engine_of(lasting).runs())],
    )


def test_a4_a_failure_is_an_error_of_the_node_and_the_next_turn_knows_of_it(acts: Acts) -> None:
    notes = Notes()
    steps = [call("t", {"x": 1}), fails(ValueError("gone"))]
    app = graph(acts.saver, agent(steps, notes.tool("t")))
    with pytest.raises(AgentRunFailed) as failed:
        acts.run(app, said("go"))
    assert "model_call_failed" == failed.value.code
    if acts.durability == "exit":
        return
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "sorry"])
    app = graph(acts.saver, AgentNode(name="support", model=model, tools=[notes.tool("t")]))
    final = acts.run(app, said("what happened?"))
    assert ("ai", "sorry") == texts(final)[-1]
    sent = [each["content"] for each in model.calls[-1].messages]
    assert ["go", "", "1!", "what happened?"] == sent
    check_history(final["messages"])
    assert {"go", "", "1!", "what happened?", "sorry"} == {text for _, text in texts(final)}


def test_a4_or_an_answer_that_says_so(acts: Acts) -> None:
    model = ScriptedChatModel(script=[fails(ValueError("gone"))])
    app = graph(acts.saver, AgentNode(name="support", model=model, on_failure="return"))
    final = acts.run(app, said("go"))
    kind, text = texts(final)[-1]
    assert "ai" == kind
    assert "gone" in text


def test_scenario_15_instances_under_send_do_not_mix(acts: Acts) -> None:
    """Five at once, one of which asks; and again in a later turn."""
    notes = Notes()

    class Many(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        topics: list[int]

    def by_topic(messages: list[Any]) -> str:
        """They run side by side."""
        topic = next(each.text for each in messages if each.type == "human")
        return f"{topic}:{sum(each.type == 'tool' for each in messages)}"

    script = {}
    for topic in (*range(1, 6), *range(11, 16)):
        script[f"{topic}:0"] = call("t" if topic % 5 else "u", {"x": topic})
        script[f"{topic}:1"] = say(f"{topic}: {topic}!")
    model = ScriptedChatModel(script=script, by=by_topic)
    tools = [notes.tool("t"), notes.tool("u")]
    node = AgentNode(name="support", model=model, tools=tools, interrupt_on={"u": True})
    builder = StateGraph(Many)
    builder.add_node(node)
    builder.add_conditional_edges(
        START, lambda state: [Send("support", said(str(topic))) for topic in state["topics"]], ["support"]
    )
    app = builder.compile(checkpointer=acts.saver)
    for turn in (0, 10):
        topics = [turn + number for number in range(1, 6)]
        found = acts.run(app, {"topics": topics})
        assert [{"x": turn + 5}] == [each["args"] for each in question(found)["action_requests"]]
        final = acts.run(app, Command(resume=APPROVE))
        answered = {each.text for each in final["messages"] if each.type == "ai" and each.text}
        assert {f"{topic}: {topic}!" for topic in topics} <= answered
    assert sorted(x for _, x in notes) == [*range(1, 6), *range(11, 16)]


def test_a8_scenario_8_a_cancelled_graph_leaves_a_valid_history(saver: LedgerSaver, loop: Any, form: Form) -> None:
    """The finished sibling's result is kept, the other's is closed, and the next turn goes on with both."""
    if form == "sync":
        pytest.skip("a sync graph cannot be cancelled")
    begun = asyncio.Event()
    done: list[str] = []

    async def quick() -> str:
        """Be quick."""
        done.append("quick")
        return "was quick"

    async def slow() -> str:
        """Be slow."""
        begun.set()
        await asyncio.sleep(60)
        return "was slow"

    model = ScriptedChatModel(script=[calls(call("quick"), call("slow")), "never", "hello"])
    app = graph(saver, AgentNode(name="support", model=model, tools=[quick, slow]))
    engine = AgentGraphEngine(saver.ledger)

    async def cancelled() -> None:
        running = asyncio.ensure_future(app.ainvoke(said("go"), CONFIG))
        await begun.wait()
        [agent_run] = await engine.aruns()
        while "settled" not in [each.state for each in await engine.aslots(agent_run.agent_run_id)]:
            assert not running.done(), running
            await asyncio.sleep(0.005)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    loop.run_until_complete(cancelled())
    [run] = engine.runs()
    assert "cancelled" == run.status
    final = loop.run_until_complete(app.ainvoke(said("and now?"), CONFIG))
    check_history(final["messages"])
    told = {each.name: each.text for each in final["messages"] if each.type == "tool"}
    assert ("was quick", ["quick"]) == (told["quick"], done)
    assert "slow" in told
    assert ["human", "ai", "tool", "tool", "human"] == [each["type"] for each in model.calls[-1].messages]
