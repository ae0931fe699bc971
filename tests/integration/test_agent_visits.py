"""A2, A4, A5, A8, A15: which agent run a visit has, what it is told of the ones before, and which answers count."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, with_ledger
from langgraph_ext.engine import Limits
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call, fails
from tests.support.apps import CONFIG, graph_of

APPROVE = {"decisions": [{"type": "approve"}]}


class Clerk:
    """A tool, and what it has done."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def node(self, *script: Any, name: str = "clerk", asks: bool = False, **options: Any) -> AgentNode:
        """An agent that has the tool."""

        def pay(order: int) -> str:
            """Pay."""
            self.paid.append(order)
            return f"paid {order}"

        model = ScriptedChatModel(script=list(script))
        return AgentNode(name=name, model=model, tools=[pay], interrupt_on={"pay": asks}, **options)


def pay(order: int) -> Any:
    return call("pay", {"order": order})


def app_of(saver: LedgerSaver, node: Any, state: Any = MessagesState) -> Any:
    return graph_of(node, state).compile(checkpointer=saver)


def say(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def sent(node: AgentNode) -> list[str]:
    model: Any = node.spec.model
    return [each["type"] for each in model.calls[-1].messages]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture
def saver(path: str) -> Iterator[LedgerSaver]:
    with LedgerSaver(path) as saver:
        yield saver


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


# -- which answers count


def test_a2_an_answer_given_again_decides_nothing_that_was_not_shown(saver: LedgerSaver, clerk: Clerk) -> None:
    """Approved, paid, and the model fails: the click that comes again meets the question of another agent run."""
    app = app_of(saver, clerk.node(pay(1), fails(ValueError("down")), pay(1000), asks=True))
    app.invoke(say("Pay 1."), CONFIG)
    with pytest.raises(LangGraphExtError):
        app.invoke(Command(resume=APPROVE), CONFIG)
    assert [1] == clerk.paid
    again = app_of(saver, clerk.node(pay(1), pay(1000), "done", asks=True))
    found = again.invoke(Command(resume=APPROVE), CONFIG)["__interrupt__"][0].value
    assert {"order": 1000} == found["action_requests"][0]["args"]
    assert "before this question was shown" in found["error"]
    assert [1] == clerk.paid
    again.invoke(Command(resume=APPROVE), CONFIG)  # it was shown now
    assert [1, 1000] == clerk.paid


def test_a2_an_answer_before_any_question_decides_nothing(saver: LedgerSaver, clerk: Clerk) -> None:
    with pytest.raises(LangGraphExtError):
        app_of(saver, clerk.node(fails(ValueError("down")), asks=True)).invoke(say("go"), CONFIG)
    app = app_of(saver, clerk.node(pay(7), "done", asks=True))
    found = app.invoke(Command(resume=APPROVE), CONFIG)["__interrupt__"][0].value
    assert "before this question was shown" in found["error"]
    assert [] == clerk.paid
    app.invoke(Command(resume={**APPROVE, "request_id": found["request_id"]}), CONFIG)
    assert [7] == clerk.paid


# -- what the next agent run is told


def test_a8_behind_a_limit_the_next_turn_knows_what_was_done(saver: LedgerSaver, clerk: Clerk) -> None:
    with pytest.raises(LangGraphExtError):
        app_of(saver, clerk.node(pay(1), limits=Limits(model_calls=1))).invoke(say("Pay 1."), CONFIG)
    node = clerk.node(pay(1), "It is paid.", limits=Limits(model_calls=9))
    app_of(saver, node).invoke(say("And?"), CONFIG)
    assert ["human", "ai", "tool", "human"] == sent(node)
    assert [1] == clerk.paid


def test_a8_behind_a_sibling_that_failed_the_next_turn_knows_what_was_done(saver: LedgerSaver, clerk: Clerk) -> None:
    """The agent came to its end, and nothing of that came into the state."""

    def sibling(state: Any) -> Any:
        if len(state["messages"]) == 1:
            raise ValueError("sibling")

    node = clerk.node(pay(1), "done", "It is paid.")
    builder: Any = StateGraph(MessagesState)
    builder.add_node(node)
    builder.add_node(sibling)
    builder.add_edge(START, "clerk")
    builder.add_edge(START, "sibling")
    app = builder.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="sibling"):
        app.invoke(say("Pay 1."), CONFIG)
    assert [1] == clerk.paid
    app.invoke(say("And?"), CONFIG)
    assert ["human", "ai", "tool", "ai", "human"] == sent(node)
    assert [1] == clerk.paid


def test_a8_behind_a_cancel_while_it_asks_the_next_turn_knows_what_was_done(saver: LedgerSaver, clerk: Clerk) -> None:
    app = with_ledger(app_of(saver, clerk.node(pay(1), "fin", asks=True)))
    app.invoke(say("Pay 1."), CONFIG)
    (parent,) = [each for each in saver.ledger.runs() if each.thread_id == "t"]
    saver.ledger.cancel(parent.run_id)
    final = app.invoke(say("And?"), CONFIG)
    assert ["human", "human", "ai", "tool", "ai"] == [each.type for each in final["messages"]]
    assert [] == clerk.paid
    assert [] == saver.ledger.verify()


def test_a8_behind_two_failures_what_the_first_has_done_is_returned(saver: LedgerSaver, clerk: Clerk) -> None:
    """The second has added nothing but its message, which the state knows."""
    down = fails(ValueError("down"))
    for script in ([pay(1), down], [pay(1000), down]):  # the second goes on behind the first's call
        with pytest.raises(LangGraphExtError):
            app_of(saver, clerk.node(*script)).invoke(say("Pay 1."), CONFIG)
    final = app_of(saver, clerk.node(pay(1000), "It is paid.")).invoke(say("And?"), CONFIG)
    told = [(each.type, each.text) for each in final["messages"]]
    assert ("tool", "paid 1") in told
    assert 6 == len(told)
    assert [1] == clerk.paid
    again = app_of(saver, clerk.node(pay(1000), "", "Yes.")).invoke(say("Really?"), CONFIG)
    assert 8 == len(again["messages"])


def test_a4_siblings_that_failed_go_on_each_with_its_own_history(saver: LedgerSaver, clerk: Clerk) -> None:
    """Two visits of one node by `Send`: what the one has done is not the other's."""

    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]

    def graph(node: AgentNode) -> Any:
        builder: Any = StateGraph(State)
        builder.add_node(node)
        builder.add_conditional_edges(
            START, lambda _: [Send("clerk", {"messages": [HumanMessage(each, id=each)]}) for each in "pq"], ["clerk"]
        )
        return builder.compile(checkpointer=saver)

    def by_topic(messages: Any) -> str:
        topic = next(each.text for each in messages if each.type == "human")
        return f"{topic}{sum(each.type == 'tool' for each in messages)}"

    def node(end: Any) -> AgentNode:
        def act(topic: str) -> str:
            """Act."""
            clerk.paid.append(ord(topic))
            return topic

        script = {f"{each}0": call("act", {"topic": each}) for each in "pq"} | {f"{each}1": end for each in "pq"}
        return AgentNode(name="clerk", model=ScriptedChatModel(script=script, by=by_topic), tools=[act])

    for given in ({"messages": []}, None):
        with pytest.raises(LangGraphExtError):
            graph(node(fails(ValueError("down")))).invoke(given, CONFIG)
    final = graph(node("done")).invoke(None, CONFIG)
    assert sorted(map(ord, "pq")) == sorted(clerk.paid)
    assert ["p", "q"] == [each.text for each in final["messages"] if each.type == "tool"]


def test_a8_a_message_that_was_rewritten_is_seen_as_it_is_now(saver: LedgerSaver, clerk: Clerk) -> None:
    node = clerk.node("one", "two")
    app = app_of(saver, node)
    app.invoke({"messages": [HumanMessage("go", id="first")]}, CONFIG)
    app.invoke({"messages": [HumanMessage("REWRITTEN", id="first"), HumanMessage("next")]}, CONFIG)
    model: Any = node.spec.model
    assert ["REWRITTEN", "one", "next"] == [each["content"] for each in model.calls[-1].messages]


def test_a8_messages_without_ids_are_known_again(saver: LedgerSaver, clerk: Clerk) -> None:
    """In a state that is no `MessagesState`."""

    class State(TypedDict):
        messages: Annotated[list[Any], operator.add]

    with pytest.raises(LangGraphExtError):
        app_of(saver, clerk.node(pay(1), fails(ValueError("down"))), State).invoke(say("Pay 1."), CONFIG)
    node = clerk.node(pay(1), "It is paid.")
    app_of(saver, node, State).invoke(say("And?"), CONFIG)
    assert ["human", "ai", "tool", "human"] == sent(node)
    assert [1] == clerk.paid


# -- which agent run it is


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a5_agents_that_one_node_calls_have_agent_runs_of_their_own(
    saver: LedgerSaver, clerk: Clerk, durability: str
) -> None:
    one, two = clerk.node(pay(1), "one", name="one"), clerk.node(pay(2), "two", name="two")

    def both(state: Any) -> Any:
        answers = [each.invoke(state)["messages"][-1].text for each in (one, two, one)]
        return {"messages": [HumanMessage("|".join(answers))]}

    both.name = "both"  # type: ignore[attr-defined]
    final = app_of(saver, both).invoke(say("go"), CONFIG, durability=durability)
    assert final["messages"][-1].text.startswith("one|two|")
    named = [each.release for each in AgentGraphEngine(saver.ledger).runs()]
    assert {one.release.digest, two.release.digest} == set(named)
    assert [1, 2] == clerk.paid[:2]


def test_a15_a_question_asked_under_exit_is_answered_under_sync(saver: LedgerSaver, clerk: Clerk) -> None:
    """The visit keeps its agent run, whichever durability it is come to with."""
    app = app_of(saver, clerk.node(pay(1), "done", asks=True))
    asked = app.invoke({"messages": [HumanMessage("Pay.", id="first")]}, CONFIG, durability="exit")
    final = app.invoke(
        Command(resume={**APPROVE, "request_id": asked["__interrupt__"][0].value["request_id"]}),
        CONFIG,
        durability="sync",
    )
    assert ["human", "ai", "tool", "ai"] == [each.type for each in final["messages"]]
    assert [1] == clerk.paid
    assert 1 == len(AgentGraphEngine(saver.ledger).runs())


def test_a5_where_a_subgraph_stores_nothing_an_agent_is_refused(saver: LedgerSaver, clerk: Clerk) -> None:
    inner = graph_of(clerk.node(pay(1), "done"))
    outer: Any = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile(checkpointer=False))
    outer.add_edge(START, "inner")
    with pytest.raises(LangGraphExtError) as caught:
        outer.compile(checkpointer=saver).invoke(say("go"), CONFIG)
    assert "durability_required" == caught.value.code
    assert [] == clerk.paid


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a8_of_a_deleted_thread_nothing_of_its_agents_is_left(
    path: str, saver: LedgerSaver, clerk: Clerk, durability: str
) -> None:
    """And everything of another thread, whose name begins alike."""
    app = app_of(saver, clerk.node(pay(1), "done", asks=True))
    threads = [{"configurable": {"thread_id": each}} for each in ("t", "t:clerk")]
    for each in threads:
        app.invoke(say("SECRET"), each, durability=durability)
    engine = AgentGraphEngine(saver.ledger)
    assert 2 == len(engine.runs())
    saver.delete_thread("t")
    (left,) = engine.runs()
    assert 1 == len(engine.requests(left.agent_run_id, pending=True))
    saver.delete_thread("t:clerk")
    assert [] == engine.runs()
    assert ["agent_release"] == _kept(path)
    assert [] == saver.ledger.runs()
    assert [] == saver.ledger.verify()


def _kept(path: str) -> list[str]:
    """The engine's tables that hold anything."""
    with sqlite3.connect(path) as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_schema WHERE name LIKE 'agent\\_%' ESCAPE '\\' AND type = 'table'"
            )
        ]
        return sorted(each for each in names if connection.execute(f"SELECT count(*) FROM {each}").fetchone()[0])
