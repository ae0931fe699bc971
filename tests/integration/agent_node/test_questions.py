"""A1 to A3, A10: what an agent asks a person through its graph, and what becomes of the answers."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext.engine.program import NotKnown
from langgraph_ext.testing import call, calls
from tests.support.acted import Acts
from tests.support.agent_nodes import APPROVE, agent, check_history, engine_of, graph, question, said, texts
from tests.support.reacting import Notes


def test_a1_one_question_suspends_the_graph_and_an_answer_goes_on(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    app = graph(acts.saver, node)
    asked = question(acts.run(app, said("go")))
    assert ("approval", "support", [{"x": 1}]) == (
        asked["kind"],
        asked["agent"],
        [each["args"] for each in asked["action_requests"]],
    )
    assert [] == notes
    final = acts.run(app, Command(resume=APPROVE))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)
    check_history(final["messages"])


def test_a1_several_questions_are_asked_one_after_the_other(acts: Acts) -> None:
    """Each with an interrupt id of its own."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), call("t", {"x": 3}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    found = acts.run(app, said("go"))
    ids = []
    while "__interrupt__" in found:
        ids.append(found["__interrupt__"][0].id)
        found = acts.run(app, Command(resume=APPROVE))
    assert (3, 3, [("t", 1), ("t", 2), ("t", 3)]) == (len(ids), len(set(ids)), notes)
    assert ("ai", "done") == texts(found)[-1]


@pytest.mark.parametrize(
    "bad", ["yes", {"decisions": []}, {"request_id": "approval:other", **APPROVE}, {"decisions": [{"type": "maybe"}]}]
)
def test_a3_scenario_20_a_malformed_answer_is_asked_again(acts: Acts, bad: Any) -> None:
    """With what was wrong; the thread is not wedged, and a good answer goes on."""
    notes = Notes()
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True}))
    first = question(acts.run(app, said("go")))
    again = question(acts.run(app, Command(resume=bad)))
    assert again.pop("error").startswith("nothing was decided")
    assert (first, []) == (again, notes)
    final = acts.run(app, Command(resume={"request_id": first["request_id"], **APPROVE}))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)


def test_a2_a_question_that_was_answered_elsewhere_takes_no_answer(acts: Acts) -> None:
    """What somebody resumes with then is drained: it is not the answer to the next question."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    first = question(acts.run(app, said("go")))
    engine = engine_of(acts)
    engine.answer(first["agent_run_id"], first["request_id"], {"decisions": [{"type": "reject"}]})
    second = question(acts.run(app, Command(resume=APPROVE)))
    assert ([{"x": 2}], []) == ([each["args"] for each in second["action_requests"]], notes)
    acts.run(app, Command(resume=APPROVE))
    assert [("t", 2)] == notes


def test_a2_a_stale_answer_is_not_held_against_the_next_question(acts: Acts) -> None:
    """Who has answered nothing of it is not told that the answer was none."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    first = question(acts.run(app, said("go")))
    engine = engine_of(acts)
    engine.answer(first["agent_run_id"], first["request_id"], APPROVE)
    second = question(acts.run(app, Command(resume={"request_id": first["request_id"], **APPROVE})))
    [asked] = engine.requests(first["agent_run_id"], pending=True)
    assert ({**asked.payload, "request_id": asked.request_id}, [("t", 1)]) == (
        {name: part for name, part in second.items() if name not in ("kind", "agent", "agent_run_id")},
        notes,
    )


def test_a2_a_stale_answer_answers_nothing_that_the_body_around_an_agent_asks(lasting: Acts) -> None:
    """The agent has asked nothing more, and has ended; what was meant for its question is taken all the same."""
    notes = Notes()
    clerk = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})

    def ship(found: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [*found["messages"], AIMessage(f"ship it: {interrupt('ship it?')}")]}

    def body(state: MessagesState) -> dict[str, Any]:
        return ship(clerk.invoke(state))

    async def abody(state: MessagesState) -> dict[str, Any]:
        return ship(await clerk.ainvoke(state))

    builder: Any = StateGraph(MessagesState).add_node("body", body if lasting.form == "sync" else abody)
    app = builder.add_edge(START, "body").compile(checkpointer=lasting.saver)
    first = question(lasting.run(app, said("go")))
    engine_of(lasting).answer(first["agent_run_id"], first["request_id"], {"decisions": [{"type": "reject"}]})
    assert "ship it?" == question(lasting.run(app, Command(resume=APPROVE)))
    final = lasting.run(app, Command(resume="no"))
    assert ([("ai", "done"), ("ai", "ship it: no")], []) == (texts(final)[-2:], notes)


def test_scenario_7_approve_reject_and_edit_through_the_node(acts: Acts) -> None:
    notes = Notes()
    steps = [calls(*(call("t", {"x": x}) for x in (1, 2, 3))), "done", "again"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    acts.run(app, said("go"))
    edited = {"type": "edit", "edited_action": {"name": "t", "args": {"x": 33}}}
    decisions = [{"type": "approve"}, {"type": "reject", "message": "no"}, edited]
    final = acts.run(app, Command(resume={"decisions": decisions}))
    assert [("t", 1), ("t", 33)] == sorted(notes)
    check_history(final["messages"])
    check_history(acts.run(app, said("and now?"))["messages"])


def test_a10_a_call_in_doubt_is_asked_about(lasting: Acts) -> None:
    """A person says what came of it, and the agent goes on with that."""
    payments: list[int] = []

    async def pay(x: int) -> str:
        """Pay."""
        payments.append(x)
        raise NotKnown("it took too long")

    steps: list[Any] = [call("pay", {"x": 1}), "done"]
    app = graph(lasting.saver, agent(steps, pay))
    asked = question(lasting.run(app, said("go")))
    assert ("doubt", [{"x": 1}]) == (asked["kind"], [each["args"] for each in asked["action_requests"]])
    again = question(lasting.run(app, Command(resume={"decisions": [{"type": "edit"}]})))
    assert "error" in again
    final = lasting.run(app, Command(resume={"decisions": [{"type": "respond", "message": "paid"}]}))
    assert [("tool", "paid"), ("ai", "done")] == texts(final)[-2:]
    assert [1] == payments


@pytest.mark.parametrize(("decision", "result", "made"), [("approve", "paid", 2), ("reject", "outcome_unknown", 1)])
def test_a10_or_has_it_called_again_or_left(lasting: Acts, decision: str, result: str, made: int) -> None:
    payments: list[int] = []

    async def pay(x: int) -> str:
        """Pay."""
        payments.append(x)
        if len(payments) == 1:
            raise NotKnown("it took too long")
        return "paid"

    app = graph(lasting.saver, agent([call("pay", {"x": 1}), "done"], pay))
    lasting.run(app, said("go"))
    final = lasting.run(app, Command(resume={"decisions": [{"type": decision}]}))
    assert texts(final)[-2][1].startswith(result)
    assert made == len(payments)
