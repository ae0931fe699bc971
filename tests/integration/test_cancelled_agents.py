"""L45: who cancels a run stops the agents in it; what of an agent comes to its end first is said by the mode."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import convert_to_openai_messages
from langgraph.errors import GraphDrained
from langgraph.graph import START, MessagesState, StateGraph
from typer.testing import CliRunner

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, RunLedger, with_ledger
from langgraph_ext.cli.app import app as cli
from langgraph_ext.engine import AgentRunRecord
from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger import Run
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.acted import Acts
from tests.support.apps import CONFIG
from tests.support.driver import Form
from tests.support.message_rules import openai_faults
from tests.support.reacting import Notes, agent


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


@pytest.fixture
def others(acts: Acts) -> Iterator[RunLedger]:
    """A ledger of its own, as another process has it."""
    acts.saver.setup()
    with RunLedger(Path(acts.saver.database.name)) as ledger:
        yield ledger


def app_of(saver: LedgerSaver, node: Any, attached: bool = True) -> Any:
    """The agent's node, and one behind it."""
    builder: Any = StateGraph(MessagesState).add_node(node).add_node("behind", lambda state: {})
    app = builder.add_edge(START, node.name).add_edge(node.name, "behind").compile(checkpointer=saver)
    return with_ledger(app) if attached else app


def clerk(notes: Notes, *script: Any, act: Any = str, **options: Any) -> AgentNode:
    return AgentNode(
        name="clerk", model=ScriptedChatModel(script=list(script)), tools=[notes.tool("t", act)], **options
    )


def go(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def parent_of(ledger: RunLedger) -> Run:
    """The oldest run of the graph."""
    return [each for each in ledger.runs() if each.parent_run_id is None][-1]


def agent_of(acts: Acts) -> AgentRunRecord:
    """The oldest agent run, behind all that was queued."""
    acts.saver.database.transact(lambda tx: None)
    return AgentGraphEngine(acts.saver.ledger).runs()[-1]


# -- in a graph


@pytest.mark.parametrize("mode", ["now", "after_call"])
@pytest.mark.parametrize(("where", "done"), [("model", []), ("tool", [("t", 1)])])
@pytest.mark.parametrize("attached", [True, False], ids=["attached", "plain"])
def test_l45_an_agent_at_work_stops_with_the_run_of_its_graph(
    acts: Acts, others: RunLedger, mode: str, where: str, done: list[Any], attached: bool
) -> None:
    """Behind the call in which it is asked nothing more is called, and the next turn's history is a valid one."""
    notes, asked = Notes(), iter([0])

    def cancel(x: int = 0) -> str:
        for _ in asked:
            others.cancel(parent_of(others).run_id, mode=mode, reason="enough")
        return f"{x}!"

    during = cancel if where == "model" else None
    node = clerk(notes, call("t", {"x": 1}, during=during), "done", act=str if during else cancel)
    app = app_of(acts.saver, node, attached)
    with pytest.raises(AdmissionError) as refused:
        acts.run(app, go("go"))

    found = agent_of(acts)
    (child,) = others.children(parent_of(others).run_id)
    assert ("cancelled", done, [("clerk", 1, "cancelled")]) == (refused.value.code, notes, acts.attempts())
    assert ("cancelled", "stopped") == (found.status, found.reason)
    assert ["cancelled"] * 2 == [child.status, parent_of(others).status]
    assert [("enough", True)] == [(each.reason, each.consumed_at is not None) for each in others.inbox(child.run_id)]
    final = acts.run(app, go("and now?"))
    assert [] == openai_faults(convert_to_openai_messages(final["messages"]))
    assert [] == others.verify()


def test_l45_an_agent_finishes_with_the_step_that_may_be_finished(acts: Acts, others: RunLedger) -> None:
    """It is a part of that; the node behind it does not begin."""
    notes = Notes()

    def cancel(x: int) -> str:
        others.cancel(parent_of(others).run_id, mode="after_batch", reason="enough")
        return "1!"

    app = app_of(acts.saver, clerk(notes, call("t", {"x": 1}), "done", act=cancel))
    with pytest.raises(GraphDrained, match="enough"):
        acts.run(app, go("go"))

    assert ("succeeded", "cancelled") == (agent_of(acts).status, parent_of(others).status)
    assert "done" == app.get_state(CONFIG).values["messages"][-1].text
    assert ([], []) == (others.inbox(agent_of(acts).agent_run_id), others.verify())


@pytest.mark.parametrize("then", ["turn", "engine", "command line"])
def test_l45_an_agent_that_asks_is_stopped_by_who_comes_next(acts: Acts, others: RunLedger, then: str) -> None:
    """Nobody drives it: it is asked as the run of its graph ends. The command line stops it at once."""
    app = app_of(acts.saver, clerk(Notes(), call("t", {"x": 1}), "done", interrupt_on={"t": True}))
    acts.run(app, go("go"))
    run_id = parent_of(others).run_id
    if then == "command line":
        told = CliRunner().invoke(cli, ["cancel", run_id, "--db", acts.saver.database.name])
        assert (0, True) == (told.exit_code, "is cancelled" in told.output)
    else:
        others.cancel(run_id, mode="after_batch" if then == "turn" else "now")
        assert [False] == [each.consumed_at is not None for each in others.inbox(agent_of(acts).agent_run_id)]
    if then == "engine":
        AgentGraphEngine(others).cancel(agent_of(acts).agent_run_id)
    elif then == "turn":
        acts.run(app, go("and now?"))

    found = agent_of(acts)
    assert ("cancelled", "stopped") == (found.status, found.reason)
    assert ["cancelled"] * 2 == [each.status for each in (others.run(run_id), *others.children(run_id))]
    assert [True] == [each.consumed_at is not None for each in others.inbox(found.agent_run_id)]
    assert [] == others.verify()


def test_l45_an_agent_that_was_done_before_is_not_asked(acts: Acts, others: RunLedger) -> None:
    """Nor is one that failed."""
    builder: Any = StateGraph(MessagesState).add_node(clerk(Notes(), "done"))
    builder.add_node("behind", lambda state: {}).add_edge(START, "clerk").add_edge("clerk", "behind")
    app = with_ledger(builder.compile(checkpointer=acts.saver, interrupt_before=["behind"]))
    acts.run(app, go("go"))
    others.cancel(parent_of(others).run_id)

    assert ("succeeded", []) == (agent_of(acts).status, others.inbox(agent_of(acts).agent_run_id))


# -- by itself


@pytest.mark.parametrize(("mode", "done"), [("now", [1]), ("after_call", [1]), ("after_batch", [1, 2])])
def test_l45_what_still_begins_of_a_batch_is_said_by_the_mode(
    acts: Acts, others: RunLedger, mode: str, done: list[int]
) -> None:
    """Of calls that are made one after the other; behind the batch the model is not asked again."""
    notes = Notes()
    engine = AgentGraphEngine(acts.saver.ledger)

    def cancel(x: int) -> str:
        if x == 1:
            others.cancel(run.agent_run_id, mode=mode)
        return "ok"

    spec = agent(
        [calls(call("t", {"x": 1}), call("t", {"x": 2})), "never"], notes.tool("t", cancel), parallel_tools=False
    )
    run = engine.start(spec, "go")
    found = engine.drive(run.agent_run_id, spec)

    assert ("cancelled", "stopped", done) == (found.status, found.reason, [x for _, x in notes])
    assert ["settled"] * 2 == [each.state for each in engine.slots(run.agent_run_id)]
    assert 1 == len(spec.model.calls)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("mode", "state"), [("now", "unknown"), ("after_call", "completed"), ("after_batch", "completed")]
)
async def test_l45_a_call_under_way_is_cut_off_or_finished_as_the_mode_says(
    saver: LedgerSaver, mode: str, state: str
) -> None:
    """It is told to stop at once, or comes to its end first, with its result."""
    notes, is_asked = Notes(), asyncio.Event()
    engine = AgentGraphEngine(saver.ledger)

    async def work(x: int) -> str:
        if x == 1:
            await saver.ledger.acancel(run.agent_run_id, mode=mode)
            is_asked.set()
            while "settled" not in [each.state for each in await engine.aslots(run.agent_run_id)] or mode == "now":
                await asyncio.sleep(0.005)
        await is_asked.wait()  # the other one's end is what makes the driver look
        return "ok"

    spec = agent([calls(call("t", {"x": 1}), call("t", {"x": 2})), "never"], notes.tool("t", work))
    await saver.asetup()
    run = await engine.astart(spec, "go")
    found = await engine.adrive(run.agent_run_id, spec)

    states = {
        each.request["args"]["x"]: str(each.state)
        for each in await engine.aoperations(run.agent_run_id)
        if each.name == "t"
    }
    assert ("cancelled", {1: state, 2: "completed"}) == (found.status, states)
