"""A6, A12: limits of an agent, and of the run that its graph runs."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from langgraph_ext import AgentNode, Budget, with_ledger
from langgraph_ext.engine import Limits
from langgraph_ext.errors import AgentRunFailed, BudgetExhausted
from langgraph_ext.ledger import Dimension
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.acted import Acts
from tests.support.agent_nodes import APPROVE, agent, check_history, graph, question, said, texts
from tests.support.reacting import Notes


def test_a12_calls_count_in_the_budget_of_the_graphs_run(lasting: Acts) -> None:
    """A refused call is not made, and is made when the budget was raised; what was done is not done again."""
    notes = Notes()
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "done"])
    built = graph(lasting.saver, AgentNode(name="support", model=model, tools=[notes.tool("t")]))
    app = with_ledger(built, budget=Budget(turns=1))
    with pytest.raises(BudgetExhausted):
        lasting.run(app, said("go"))
    ledger = lasting.saver.ledger
    lasting.saver.database.transact(lambda tx: None)  # behind what was queued before
    [run] = ledger.runs(thread_id="t")
    assert ("budget_exhausted", [("t", 1)], 1) == (run.status, notes, len(model.calls))
    ledger.raise_budget(run.run_id, turns=5)
    final = lasting.run(app, None)
    assert (("ai", "done"), [("t", 1)], 2) == (texts(final)[-1], notes, len(model.calls))
    assert 2 == sum(each.kind == "model" for each in ledger.calls(run.run_id))


def test_a6_at_a_limit_a_person_is_asked_through_the_graph(acts: Acts) -> None:
    """As of an approval; a rejection is the node's failure."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), limits=Limits(model_calls=1, on_limit="ask")))
    asked = question(acts.run(app, said("go")))
    assert ("limit", {"limit": "model_calls", "to": 2}) == (asked["kind"], asked["action_requests"][0]["args"])
    again = question(acts.run(app, Command(resume=APPROVE)))
    assert asked["request_id"] != again["request_id"]
    with pytest.raises(AgentRunFailed) as failed:
        acts.run(app, Command(resume={"decisions": [{"type": "reject"}]}))
    assert "model_calls_exhausted" == failed.value.code
    assert [("t", 1), ("t", 2)] == notes


def test_a6_or_the_agent_finishes_with_what_there_is(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), limits=Limits(model_calls=1, on_limit="finish"))
    final = acts.run(graph(acts.saver, node), said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!")] == texts(final)[:3]
    assert "limits.model_calls is 1" in texts(final)[-1][1]
    check_history(final["messages"])


def test_l39_an_agent_run_is_a_spawn_of_the_run_that_has_begun_it(lasting: Acts) -> None:
    """One too many is not begun; it is when the budget was raised, and what was done is not done again."""
    models = [ScriptedChatModel(script=[text], by=lambda _: 0) for text in ("one", "two")]
    nodes = [AgentNode(name=f"agent-{number}", model=model) for number, model in enumerate(models)]
    app = with_ledger(graph(lasting.saver, *nodes), budget=Budget(spawns=1))
    with pytest.raises(BudgetExhausted) as refused:
        lasting.run(app, said("go"))
    ledger = lasting.saver.ledger
    lasting.saver.database.transact(lambda tx: None)  # behind what was queued before
    [run] = ledger.runs(thread_id="t")
    assert ("spawns", 1, 1) == tuple(refused.value.details[each] for each in ("dimension", "limit", "used"))
    assert ("budget_exhausted", 1, [1, 0]) == (
        run.status,
        len(ledger.children(run.run_id)),
        [len(m.calls) for m in models],
    )
    ledger.raise_budget(run.run_id, spawns=2)
    assert [("ai", "one"), ("ai", "two")] == texts(lasting.run(app, None))[-2:]
    spent = ledger.usage(run.run_id).spent[Dimension.SPAWNS]
    assert (2, 0, [1, 1]) == (spent.used, spent.reserved, [len(m.calls) for m in models])
    assert 2 == ledger.usage(run.run_id).spent[Dimension.TURNS].used
    assert (["settled"] * 2, []) == (lasting.saver.database.read(_slices), ledger.verify())


def _slices(tx: Any) -> list[str]:
    return [row["status"] for row in tx._execute("SELECT status FROM budget_slice", {}).fetchall()]
