"""Scenarios 5, 6, 18, 21, 22, 23 and row W01, through an agent node: what people answer, and where processes die."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver, RunLedger, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call, calls, truncated
from tests.support import agent_stories as story
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import run
from tests.support.react_processes import TOOLS, noted
from tests.support.reacting import Notes

APPROVE = {"decisions": [{"type": "approve"}]}
UNKNOWN = "0" * 32


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def results(state: Any) -> list[str]:
    """What the model was told of its calls, in their order."""
    return [each.text for each in state["messages"] if isinstance(each, ToolMessage)]


def question(state: Any) -> Any:
    [asked] = state["__interrupt__"]
    return asked


def sound(path: str) -> bool:
    with RunLedger(path) as ledger:
        return ledger.verify() == []


def test_scenario_05_an_agents_second_question_is_answered_by_nothing_but_its_answer(path: str) -> None:
    """Refused by name, or asked again; and the answer to the first does not count for it."""
    notes = Notes()
    model = ScriptedChatModel(script=[call("t", {"x": 1}), call("t", {"x": 2}), "done"])
    node = AgentNode(name="support", model=model, tools=[notes.tool("t")], interrupt_on={"t": True})
    with LedgerSaver(path) as saver:
        app: Any = with_ledger(graph_of(node).compile(checkpointer=saver))
        first = question(app.invoke(story.GO, CONFIG, durability="sync"))
        elsewhere = {"configurable": {"thread_id": "other"}}
        foreign = question(app.invoke(story.GO, elsewhere, durability="sync"))
        named = {"request_id": first.value["request_id"], **APPROVE}
        second = question(app.invoke(Command(resume=named), CONFIG, durability="sync"))
        refusals = []
        for odd in ({first.id: APPROVE}, {first.id: named}, {UNKNOWN: APPROVE}, {foreign.id: APPROVE}):
            with pytest.raises(LangGraphExtError) as refused:
                app.invoke(Command(resume=odd), CONFIG, durability="sync")
            refusals.append(refused.value.code)
        assert ["answer_conflict", "interrupt_not_pending", "interrupt_not_found", "interrupt_not_found"] == refusals
        for odd in ({}, {1: "v"}, named):
            again = question(app.invoke(Command(resume=odd), CONFIG, durability="sync")).value
            assert again.pop("error").startswith("nothing was decided")
            assert second.value == again
        assert [("t", 1)] == notes
        final = app.invoke(Command(resume=APPROVE), CONFIG, durability="sync")
    assert ("done", [("t", 1), ("t", 2)]) == (final["messages"][-1].text, notes)
    assert sound(path)


def test_scenario_06_two_approvals_and_one_call_that_needs_none(path: str) -> None:
    """Both are seen at once, the third is none of a person's business, and each is decided for itself."""
    notes = Notes()
    asked = calls(call("a", {"x": 1}), call("b", {"x": 2}), call("c", {"x": 3}))
    model = ScriptedChatModel(script=[asked, "done"])
    tools = [notes.tool(name) for name in "abc"]
    node = AgentNode(name="support", model=model, tools=tools, interrupt_on={"a": True, "b": True})
    with LedgerSaver(path) as saver:
        app = graph_of(node).compile(checkpointer=saver)
        shown = question(app.invoke(story.GO, CONFIG, durability="sync")).value
        assert ["a", "b"] == [each["name"] for each in shown["action_requests"]]
        edited = {"type": "edit", "edited_action": {"name": "b", "args": {"x": 20}}}
        final = app.invoke(Command(resume={"decisions": [{"type": "approve"}, edited]}), CONFIG, durability="sync")
    assert [("a", 1), ("b", 20), ("c", 3)] == sorted(notes)
    assert ["1!", "20!", "3!"] == [text.rpartition("\n")[2] for text in results(final)]
    assert sound(path)


@pytest.mark.parametrize("first", ["a", "b"])
def test_scenario_06_of_two_agents_that_ask_each_gets_its_own_answer(path: str, first: str) -> None:
    """Also the second before the first, each by the id of its question."""
    notes, builder = Notes(), StateGraph(MessagesState)
    for name in "ab":
        model = ScriptedChatModel(script=[call(name, {"x": 1}), f"{name} is done"])
        builder.add_node(AgentNode(name=name, model=model, tools=[notes.tool(name)], interrupt_on={name: True}))
        builder.add_edge(START, name)
    with LedgerSaver(path) as saver:
        app = builder.compile(checkpointer=saver)
        asked = app.invoke(story.GO, CONFIG, durability="sync")["__interrupt__"]
        by_agent = {each.value["agent"]: each.id for each in asked}
        assert {"a", "b"} == by_agent.keys()
        left = "b" if first == "a" else "a"
        found = app.invoke(Command(resume={by_agent[first]: APPROVE}), CONFIG, durability="sync")
        assert ([(first, 1)], left) == (notes, question(found).value["agent"])
        app.invoke(Command(resume={by_agent[left]: {"decisions": [{"type": "reject"}]}}), CONFIG, durability="sync")
    assert [(first, 1)] == notes
    assert sound(path)


@pytest.mark.parametrize("stored", [0, 5])
def test_scenario_18_through_the_node_no_tool_that_acts_once_acts_twice(path: str, stored: int) -> None:
    """What nobody knows is asked of a person, one call after the other."""
    assert run(story.act_and_die, path, "once", stored).killed
    asked = []
    with story.opened(path, story.crew(path, "once")) as app:
        found = app.invoke(None, CONFIG, durability="sync")
        while "__interrupt__" in found:
            doubt = question(found).value
            [request] = doubt["action_requests"]
            asked.append(request["args"]["number"])
            answer = {"type": "respond", "message": f"acted {asked[-1]}"}
            resumed = Command(resume={"request_id": doubt["request_id"], "decisions": [answer]})
            found = app.invoke(resumed, CONFIG, durability="sync")
    assert list(range(stored, TOOLS)) == sorted(asked)
    assert [f"acted {number}" for number in range(TOOLS)] == results(found)
    assert {f"act {number}": 1 for number in range(TOOLS)} == Counter(noted(f"{path}.log"))
    assert sound(path)


@pytest.mark.parametrize("effect", ["repeatable", "keyed"])
def test_scenario_18_through_the_node_those_that_may_be_repeated_are(path: str, effect: Any) -> None:
    assert run(story.act_and_die, path, effect, 5).killed
    final = story.go(path, story.crew(path, effect), None)
    assert [f"acted {number}" for number in range(TOOLS)] == results(final)
    times = {f"act {number}": 1 if number < 5 else 2 for number in range(TOOLS)}
    assert times == Counter(noted(f"{path}.log"))


def test_scenario_21_decisions_on_four_calls_outlive_a_kill_behind_the_second_effect(path: str) -> None:
    """None is lost, none is taken for another call's; the call that was cut off is asked about."""
    story.go(path, story.four(path))
    assert run(story.approve_and_die, path).killed
    with story.opened(path, story.four(path)) as app:
        doubt = question(app.invoke(None, CONFIG, durability="sync")).value
        assert ("doubt", [{"number": 2}]) == (doubt["kind"], [each["args"] for each in doubt["action_requests"]])
        answer = {"decisions": [{"type": "respond", "message": "acted 2"}]}
        final = app.invoke(Command(resume=answer), CONFIG, durability="sync")
    assert ["act 0", "act 2", "act 30"] == noted(f"{path}.log")
    told = [text.rpartition("\n")[2] for text in results(final)]
    assert ["acted 0", "acted 2", "acted 30"] == [told[0], *told[2:]]
    assert "not this one" in told[1]
    assert ("done", True) == (final["messages"][-1].text, sound(path))


@pytest.mark.parametrize("moment", ["middle", "after"])
def test_scenario_22_through_the_node_crashes_do_not_raise_a_limit(path: str, moment: str) -> None:
    """Three dispatches, however often the model's process dies; the fourth worker is told why."""
    told = [run(story.ask_and_die, path, moment, nth) for nth in range(4)]
    assert [True, True, True, False] == [each.killed for each in told]
    assert "model_calls_exhausted" == told[3].value()
    assert ["model"] * 3 == noted(f"{path}.log")
    assert sound(path)


def test_scenario_23_through_the_node_no_call_of_an_answer_that_is_cut_off_is_made(path: str) -> None:
    notes = Notes()
    cut_off = truncated("Both.", call("t", {"x": 1}), call("t", {"x": 2}))
    node = AgentNode(name="a", model=ScriptedChatModel(script=[cut_off, "done"]), tools=[notes.tool("t")])
    with LedgerSaver(path) as saver:
        app = graph_of(node).compile(checkpointer=saver)
        final = app.invoke(story.GO, CONFIG, durability="sync")
    assert ([], "done") == (notes, final["messages"][-1].text)
    assert [True] * 2 == [each.startswith("response_truncated: ") for each in results(final)]


def test_w01_a_node_that_died_behind_its_agents_end_returns_what_the_hooks_made_of_it(path: str) -> None:
    """One agent run, which is not driven again: nothing is called, and nothing raw is seen."""
    assert run(story.end_and_die, path).killed
    with RunLedger(path) as ledger:
        assert ["succeeded"] == [str(each.status) for each in AgentGraphEngine(ledger).runs()]
    final = story.go(path, story.replacing(path), None)
    assert (["effective"], "effective answer") == (results(final), final["messages"][-1].text)
    assert ["look", "model"] == noted(f"{path}.log")
    with RunLedger(path) as ledger:
        assert 1 == len(AgentGraphEngine(ledger).runs())
    assert sound(path)
