"""E18: hooks before and after a ReAct agent's calls of models and tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentStatus, Deny, Hook, Hooks, Replace
from langgraph_ext.engine.applying import operation_of
from langgraph_ext.testing import call, calls
from tests.support.reacting import (
    Notes,
    agent,
    begun_and_left,
    history,
    operations,
    output_of,
    results,
    scripted,
    sent,
)

Engines = Callable[..., AgentGraphEngine]

KINDS = ("before_model", "after_model", "before_tool", "after_tool")


def text_of(outcome: Any) -> Any:
    return outcome["value"]["message"]["data"]


class Asked(list[Any]):
    """What hooks were asked, by kind."""

    def hooks(self, **decisions: Callable[[Any], Any]) -> Hooks:
        """One of each kind, which notes that it was asked; and decides, where it is said how."""
        return Hooks(**{kind: [Hook(call=self._hook(kind, decisions.get(kind)), name=kind)] for kind in KINDS})

    def _hook(self, kind: str, decide: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        def hook(value: Any) -> Any:
            self.append(kind)
            return None if decide is None else decide(value)

        return hook


def test_e18_each_call_is_asked_about_once_before_and_once_after(engine: AgentGraphEngine) -> None:
    asked, notes = Asked(), Notes()
    spec = agent([call("t", {"x": 1}), "done"], notes.tool("t"), hooks=asked.hooks())
    assert "done" == output_of(engine.run(spec, "go"))
    model, tool = ["before_model", "after_model"], ["before_tool", "after_tool"]
    assert [*model, *tool, *model] == asked


def test_e18_a_hook_before_a_model_sees_all_that_is_sent(engine: AgentGraphEngine) -> None:
    seen: list[Any] = []
    spec = agent(["done"], Notes().tool("t"), system_prompt="Be brief.", hooks=Hooks(before_model=[seen.append]))
    output_of(engine.run(spec, "go"))
    [request] = seen
    assert ["system", "human"] == [each["type"] for each in request["messages"]]
    assert ["Be brief.", "go"] == [each["data"]["content"] for each in request["messages"]]
    assert ["t"] == request["tools"]


def test_e18_a_replaced_request_is_what_is_sent_and_the_history_stays(engine: AgentGraphEngine) -> None:
    def other(request: Any) -> Replace:
        return Replace({"messages": [{"type": "human", "data": {"content": "other"}}], "tools": []})

    model = scripted("done", by="request")
    run = engine.run(agent(model, Notes().tool("t"), hooks=Hooks(before_model=[other])), "go")
    assert ([("human", "other")], []) == (sent(model), model.calls[0].tools)
    assert [("input", "go"), ("decision", "done")] == history(engine, run)


def test_e18_a_denied_model_call_is_the_runs_failure(engine: AgentGraphEngine) -> None:
    """It is never dispatched, and takes no loop."""
    model = scripted("never")
    run = engine.run(agent(model, hooks=Hooks(before_model=[lambda request: Deny("not today")])), "go")
    assert (AgentStatus.FAILED, "model_call_failed") == (run.status, run.reason)
    assert "not today" in (run.message or "")
    assert ([], 0, 0, []) == (model.calls, run.model_calls, run.loops_used, engine.tickets(run.agent_run_id))


def test_e18_a_denied_answer_is_the_runs_failure(engine: AgentGraphEngine) -> None:
    """Its call was made and counts; it is no decision."""
    notes = Notes()
    hooks = Hooks(after_model=[lambda outcome: Deny("not that")])
    run = engine.run(agent([call("t", {"x": 1})], notes.tool("t"), hooks=hooks), "go")
    assert (AgentStatus.FAILED, "model_call_failed", []) == (run.status, run.reason, notes)
    assert (1, 0, ["released"]) == (
        run.model_calls,
        run.loops_used,
        [str(each.state) for each in engine.tickets(run.agent_run_id)],
    )


def test_e18_a_replaced_answer_is_the_decision(engine: AgentGraphEngine) -> None:
    def other(outcome: Any) -> Replace:
        text_of(outcome)["content"] = text_of(outcome)["content"].upper()
        return Replace(outcome)

    run = engine.run(agent(["done"], hooks=Hooks(after_model=[other])), "go")
    assert "DONE" == output_of(run)
    assert ("decision", "DONE") == history(engine, run)[-1]


def test_e18_calls_that_a_hook_writes_are_made_and_those_that_it_takes_out_are_not(engine: AgentGraphEngine) -> None:
    notes = Notes()

    def other(outcome: Any) -> Any:
        if not text_of(outcome)["tool_calls"]:
            return None
        made = {"type": "tool_call", "name": "t", "id": None}
        text_of(outcome)["tool_calls"] = [{**made, "args": {"x": 8}}, {**made, "args": {"x": 9}}]
        return Replace(outcome)

    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    run = engine.run(agent(script, notes.tool("t"), hooks=Hooks(after_model=[other])), "go")
    assert ("done", [("t", 8), ("t", 9)]) == (output_of(run), sorted(notes))
    ids = {each.call_id for each in engine.slots(run.agent_run_id)}
    assert (2, False) == (len(ids), "None" in ids)


def test_e18_a_denied_tool_is_a_blocked_result_and_the_others_go_on(engine: AgentGraphEngine) -> None:
    notes, model = Notes(), scripted(calls(call("t", {"x": 1}), call("t", {"x": 2})), "done")
    hooks = Hooks(before_tool=[lambda request: Deny("not one") if request["args"]["x"] == 1 else None])
    run = engine.run(agent(model, notes.tool("t"), hooks=hooks), "go")
    assert ("done", [("t", 2)], 1) == (output_of(run), notes, run.tool_calls)
    assert ["denied: not one", "2!"] == results(engine, run)
    assert {"tool:1:0": 0, "tool:1:1": 1} == {each.purpose: len(each.calls) for each in operations(engine, run, "tool")}


def test_e18_arguments_are_replaced_and_looked_at_as_the_models_are(engine: AgentGraphEngine) -> None:
    """What does not fit the tool denies."""
    notes = Notes()

    def other(request: Any) -> Replace:
        x = request["args"]["x"]
        return Replace({**request, "args": {"x": x + 10 if x == 1 else "two"}})

    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    run = engine.run(agent(script, notes.tool("t"), hooks=Hooks(before_tool=[other])), "go")
    assert ("done", [("t", 11)]) == (output_of(run), notes)
    assert "11!" == results(engine, run)[0]
    assert (results(engine, run)[1] or "").startswith("denied: ")


def test_e18_a_result_is_replaced_or_denied(engine: AgentGraphEngine) -> None:
    """Its tool has run either way; the model reads what the hook lets it read."""

    def other(outcome: Any) -> Any:
        if text_of(outcome)["content"] == "2!":
            return Deny("secret")
        text_of(outcome)["content"] = "***"
        return Replace(outcome)

    notes = Notes()
    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    run = engine.run(agent(script, notes.tool("t"), hooks=Hooks(after_tool=[other])), "go")
    assert ("done", 2, ["***", "denied: secret"]) == (output_of(run), len(notes), results(engine, run))


def test_e18_a_hook_may_make_a_result_of_a_failure(engine: AgentGraphEngine) -> None:
    def other(outcome: Any) -> Any:
        assert "error" in outcome
        return Replace({"value": {"message": {"type": "tool", "data": {"content": "none", "tool_call_id": "any"}}}})

    spec = agent([call("t", {"x": 0}), "done"], Notes().tool("t", lambda x: 1 // x), hooks=Hooks(after_tool=[other]))
    run = engine.run(spec, "go")
    assert ("done", ["none"]) == (output_of(run), results(engine, run))


def test_e18_hooks_are_asked_in_their_order_each_with_what_the_one_before_has_made(engine: AgentGraphEngine) -> None:
    """One that raises denies, unless it is not required."""

    def adds(word: str) -> Callable[[Any], Replace]:
        def hook(outcome: Any) -> Replace:
            text_of(outcome)["content"] += word
            return Replace(outcome)

        return hook

    def raises(outcome: Any) -> None:
        raise ValueError("hook")

    passed_over = Hook(call=raises, name="raises", required=False)
    one, two = Hook(call=adds(" one"), name="one"), Hook(call=adds(" two"), name="two")
    assert "done one two" == output_of(
        engine.run(agent(["done"], hooks=Hooks(after_model=[one, passed_over, two])), "go")
    )
    run = engine.run(agent(["done"], hooks=Hooks(after_model=[one, Hook(call=raises, name="r"), two])), "go")
    assert (AgentStatus.FAILED, "model_call_failed") == (run.status, run.reason)


def test_e18_what_each_hook_has_decided_is_on_record(engine: AgentGraphEngine) -> None:
    """By its name, with the call."""

    def raises(value: Any) -> None:
        raise ValueError("hook")

    before = [Hook(call=lambda value: None, name="one"), Hook(call=raises, name="two", required=False)]
    after = [Hook(call=Replace, name="three"), Hook(call=lambda value: Deny("no"), name="four")]
    script = [call("t", {"x": 1}), "done"]
    run = engine.run(agent(script, Notes().tool("t"), hooks=Hooks(before_tool=before, after_tool=after)), "go")
    [made] = operations(engine, run, "tool")
    row = engine.ledger.database.read(lambda tx: operation_of(tx, made.operation_id))
    failed = {"hook": "two", "decision": "failed", "error": "ValueError"}
    assert [{"hook": "one", "decision": "allowed"}, failed] == row.before
    assert [{"hook": "three", "decision": "replaced"}, {"hook": "four", "decision": "denied"}] == row.after


@pytest.mark.parametrize(
    ("kind", "at", "counted"),
    [
        ("model-ready:", 1, {"before_model": 2, "before_tool": 1}),
        ("model-ready:", 2, {"before_model": 2, "before_tool": 1}),
        ("complete:", 1, {"after_model": 2, "after_tool": 1}),
        ("complete:", 2, {"after_model": 2, "after_tool": 1}),
    ],
)
def test_e18_what_hooks_have_decided_is_stored_and_never_asked_again(
    engines: Engines, kind: str, at: int, counted: dict[str, int]
) -> None:
    """Whoever dies behind that, of a model's call or of a tool's: two calls of the model and one of the tool."""
    asked, notes = Asked(), Notes()
    tool = notes.tool("t", metadata={"effect": "repeatable"})
    spec = agent([call("t", {"x": 1}), "done"], tool, hooks=asked.hooks())
    run = begun_and_left(engines(), spec, kind, at=at)
    assert "done" == output_of(engines().drive(run.agent_run_id, spec))
    assert counted == {name: asked.count(name) for name in counted}


def test_e18_a_denial_is_stored_too(engines: Engines) -> None:
    asked, notes = Asked(), Notes()
    hooks = asked.hooks(before_tool=lambda request: Deny("no"))
    spec = agent([call("t", {"x": 1}), "done"], notes.tool("t"), hooks=hooks)
    run = begun_and_left(engines(), spec, "model-ready:", at=2)
    engine = engines()
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert (["denied: no"], [], 1) == (results(engine, run), notes, asked.count("before_tool"))


def test_e18_an_answer_that_is_stored_is_not_asked_for_again_only_its_hooks_are(engines: Engines) -> None:
    """They had decided nothing that was stored."""
    asked, notes, model = Asked(), Notes(), scripted(call("t", {"x": 1}), "done")
    spec = agent(model, notes.tool("t"), hooks=asked.hooks())
    run = begun_and_left(engines(), spec, "complete:", "before", at=2)
    engine = engines()
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert ([("t", 1)], 2, 2) == (notes, len(model.calls), asked.count("after_tool"))
