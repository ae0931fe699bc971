"""A1, A5, A15: an agent is a node like any other: where it stands, what it is given, and what it returns."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

from langgraph_ext import AgentNode
from langgraph_ext.errors import AdmissionError, InvalidArgument
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.acted import Acts
from tests.support.agent_nodes import APPROVE, agent, engine_of, graph, said, texts
from tests.support.apps import graph_of
from tests.support.reacting import Notes


def test_a1_a15_an_agent_is_a_node_that_appends_messages(acts: Acts) -> None:
    """With its own name; what it returns is what it has added, with ids that stay."""
    notes = Notes()
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], notes.tool("t")))
    final = acts.run(app, said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!"), ("ai", "done")] == texts(final)
    assert ("support", [("t", 1)]) == (agent(["x"]).get_name(), notes)
    [run] = engine_of(acts).runs()
    entries = engine_of(acts).transcript(run.agent_run_id)
    assert [each.id for each in final["messages"]] == [each.message.id for each in entries]
    assert [] == acts.saver.ledger.verify()


def test_a15_a_second_turn_goes_on_with_the_conversation(acts: Acts) -> None:
    """Of the model it is sent the whole of it; each turn is an agent run of its own."""
    model = ScriptedChatModel(script=["one", "two"])
    app = graph(acts.saver, AgentNode(name="support", model=model))
    acts.run(app, said("first"))
    assert [("human", "first"), ("ai", "one"), ("human", "second"), ("ai", "two")] == texts(
        acts.run(app, said("second"))
    )
    assert ["first", "one", "second"] == [each["content"] for each in model.calls[1].messages]
    assert 2 == len(engine_of(acts).runs())


class Answer(BaseModel):
    number: int


class Rich(MessagesState):
    structured_response: Any
    agent_runs: Annotated[list[str], operator.add]


def test_a1_keys_that_the_graph_has_are_filled(acts: Acts) -> None:
    node = agent(['{"number": 7}'], response_format=Answer)
    final = acts.run(graph(acts.saver, node, state=Rich), said("go"))
    [run] = engine_of(acts).runs()
    assert ({"number": 7}, [run.agent_run_id]) == (final["structured_response"], final["agent_runs"])
    other: Any = {"configurable": {"thread_id": "other"}}
    plain = acts.run(graph(acts.saver, agent(['{"number": 7}'], response_format=Answer)), said("go"), other)
    assert {"messages"} == set(plain)


class Topic(TypedDict):
    topic: str
    note: str


def test_a1_input_and_output_are_the_callers(acts: Acts) -> None:
    node = agent(
        ["fine"],
        input=lambda state: f"about {state['topic']}",
        output=lambda result: {"note": f"{result.output} after {len(result.messages)}"},
    )
    final = acts.run(graph(acts.saver, node, state=Topic), {"topic": "tea"})
    assert "fine after 1" == final["note"]


def test_a1_what_cannot_be_is_told_where_it_is_made(acts: Acts) -> None:
    for wrong in ({"name": ""}, {"on_failure": "ignore"}, {"strategy": object()}):
        with pytest.raises(InvalidArgument):
            AgentNode(**{"name": "a", "model": ScriptedChatModel(script=["x"]), **wrong})
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        agent(["x"]).invoke(said("go"))
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        acts.run(graph(InMemorySaver(), agent(["x"])), said("go"))
    with pytest.raises(InvalidArgument, match="nothing to begin with"):
        acts.run(graph(acts.saver, agent(["x"])), {"messages": []})


def test_a15_an_agent_in_a_subgraph_asks_through_it(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    outer: Any = StateGraph(MessagesState)
    outer.add_node("inner", graph_of(node).compile())
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=acts.saver)
    acts.run(app, said("go"))
    final = acts.run(app, Command(resume=APPROVE))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)


def test_a5_the_ledger_knows_whose_run_it_is(lasting: Acts) -> None:
    """The child run, by the attempt that has started it; that says how it ended."""
    app = graph(lasting.saver, agent([call("t", {"x": 1}), "done"], Notes().tool("t")))
    lasting.run(app, said("go"))
    ledger = lasting.saver.ledger
    [run] = ledger.runs(thread_id="t")
    [child] = [each for each in ledger.runs() if each.parent_run_id == run.run_id]
    [attempt] = ledger.attempts(run.run_id)
    [agent_run] = engine_of(lasting).runs()
    assert (agent_run.agent_run_id, attempt.attempt_id, "succeeded") == (
        child.run_id,
        child.parent_attempt_id,
        child.status,
    )
    assert ("agent", "succeeded", 1) == (attempt.kind, attempt.status, attempt.number)
