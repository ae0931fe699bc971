"""E13: what a user says to an agent that is at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ModelRateLimitError

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentStatus, Compaction, Deny, Hooks, Retry
from langgraph_ext.engine.rows import decoded
from langgraph_ext.errors import ConflictError, StoreError
from langgraph_ext.testing import ScriptedChatModel, call, fails, say, tries
from tests.support.bench import Once
from tests.support.reacting import (
    FREEZES,
    Notes,
    agent,
    begun_and_left,
    crash_at,
    history,
    output_of,
    scripted,
    sent,
    strikes_of,
)

Engines = Callable[..., AgentGraphEngine]


class Steered:
    """An engine, and an agent run on it that is steered from within its own calls."""

    def __init__(self, engine: AgentGraphEngine) -> None:
        self.engine = engine
        self.run_id = ""

    def say(self, *messages: Any) -> Callable[..., None]:
        def steer(*_: Any) -> None:
            for each in messages:
                self.engine.steer(self.run_id, each)

        return steer

    def run(self, spec: Any, *before: Any) -> AgentRunRecord:
        """Start it, steer it, and drive it."""
        self.run_id = self.engine.start(spec, "go").agent_run_id
        self.say(*before)()
        return self.engine.drive(self.run_id)

    def left(self) -> list[Any]:
        """What was said to it and claimed by nobody."""
        return [each.message for each in self.engine.ledger.inbox(self.run_id) if each.consumed_at is None]


@pytest.fixture
def steered(engine: AgentGraphEngine) -> Steered:
    return Steered(engine)


def test_e13_what_was_said_before_a_request_is_in_it_and_in_the_history_before_its_answer(steered: Steered) -> None:
    model = scripted("done")
    run = steered.run(agent(model), "one", "two")
    assert [("human", "go"), ("human", "one"), ("human", "two")] == sent(model)
    told = [("input", "go"), ("steering", "one"), ("steering", "two"), ("decision", "done")]
    assert told == history(steered.engine, run)
    assert [] == steered.left()


def test_e13_what_is_said_while_the_model_is_at_work_is_in_the_next_request(steered: Steered) -> None:
    """Behind the results of the tools, and not in the request that is under way."""
    model = scripted(call("t", {"x": 1}, during=steered.say("wait")), "done")
    run = steered.run(agent(model, Notes().tool("t")))
    assert [("human", "go")] == sent(model, 0)
    assert [("human", "go"), ("ai", ""), ("tool", "1!"), ("human", "wait")] == sent(model, 1)
    kinds = ["input", "decision", "result", "steering", "decision"]
    assert kinds == [kind for kind, _ in history(steered.engine, run)]


def test_e13_what_is_said_while_a_tool_is_at_work_is_in_the_next_request(steered: Steered) -> None:
    model = scripted(call("t", {"x": 1}), "done")
    steered.run(agent(model, Notes().tool("t", lambda x: steered.say("wait")())))
    assert ("human", "wait") == sent(model)[-1]


def test_e13_a_message_is_in_the_history_once(steered: Steered) -> None:
    """In every later request at its place, and never claimed again."""
    model = scripted(call("t", {"x": 1}), call("t", {"x": 2}), "done")
    steered.run(agent(model, Notes().tool("t")), "one")
    assert [("human", "go"), ("human", "one")] == [each for each in sent(model) if each[0] == "human"]
    assert ("human", "one") == sent(model)[1]


def test_e13_equal_words_said_twice_are_two_messages(steered: Steered) -> None:
    model = scripted("done")
    steered.run(agent(model), "more", "more")
    assert [("human", "more")] * 2 == sent(model)[1:]


def test_e13_a_request_holds_what_was_chosen_for_it_and_nothing_later(steered: Steered) -> None:
    """A message that comes between the choice and the freezing is left for the next request, and not lost."""
    asked = iter([steered.say("late"), steered.say()])
    model = scripted(call("t", {"x": 1}), "done")
    hooks = Hooks(before_model=[lambda request: next(asked)()])
    run = steered.run(agent(model, Notes().tool("t"), hooks=hooks), "early")
    assert [("human", "go"), ("human", "early")] == sent(model, 0)
    assert ("human", "late") == sent(model, 1)[-1]
    assert ["early", "late"] == [text for kind, text in history(steered.engine, run) if kind == "steering"]


@pytest.mark.parametrize("where", ["before", "after"])
def test_e13_messages_are_claimed_with_the_commit_that_freezes_their_request(engines: Engines, where: str) -> None:
    engine = engines()
    run = engine.start(agent(["done"]), "go")
    engine.steer(run.agent_run_id, "one")
    crash_at(engine, FREEZES, where)
    with pytest.raises(StoreError):
        engine.drive(run.agent_run_id)
    [entry] = engine.ledger.inbox(run.agent_run_id)
    assert (where == "after") == (entry.consumed_at is not None)


def test_e13_a_frozen_request_never_changes(engines: Engines) -> None:
    """Another worker sends what the first one has frozen; what was said since then comes behind it."""
    model = scripted(call("t", {"x": 1}), "done")
    spec = agent(model, Notes().tool("t"))
    first = engines()
    run = first.start(spec, "go")
    first.steer(run.agent_run_id, "early")
    crash_at(first, FREEZES)
    with pytest.raises(StoreError):
        first.drive(run.agent_run_id)
    engine = engines()
    engine.steer(run.agent_run_id, "late")
    output_of(engine.drive(run.agent_run_id, spec))
    assert [("human", "go"), ("human", "early")] == sent(model, 0)
    assert [("human", "go"), ("human", "early"), ("ai", ""), ("tool", "1!"), ("human", "late")] == sent(model, 1)


def test_e13_another_call_of_the_same_request_holds_the_same_messages(steered: Steered) -> None:
    """Whatever was said since the first one."""
    step = tries(fails(ModelRateLimitError("busy"), during=steered.say("late")), say("done"))
    model = scripted(step)
    steered.run(agent(model, retry=Retry(wait_seconds=0.0)), "early")
    assert [[("human", "go"), ("human", "early")]] * 2 == [sent(model, 0), sent(model, 1)]
    assert ["late"] == steered.left()


def test_e13_what_is_said_during_a_compaction_is_in_the_request_behind_it(steered: Steered) -> None:
    """It is no part of the summary."""
    summaries = ScriptedChatModel(script=say("in short", during=steered.say("late")))
    model = scripted(call("t", {"x": 1}), "done", by="request")
    tool = Notes().tool("t", lambda x: "word " * 100)
    run = steered.run(agent(model, tool, compaction=Compaction(soft_tokens=100, model=summaries)))
    assert ("done", 1) == (output_of(run), len(summaries.calls))
    assert ("human", "late") == sent(model)[-1]
    assert "late" not in str(sent(summaries))


def test_e13_steering_a_closed_run_is_refused(steered: Steered) -> None:
    steered.run(agent(["done"]))
    with pytest.raises(ConflictError) as refused:
        steered.say("late")()
    assert "run_closed" == refused.value.code


def test_e13_what_nobody_has_claimed_when_the_run_ends_is_handed_back(steered: Steered) -> None:
    """It stays readable, in the commit that ends the run as in the inbox, and stands in no history."""
    model = scripted(say("done", during=steered.say("late")))
    run = steered.run(agent(model))
    assert [("input", "go"), ("decision", "done")] == history(steered.engine, run)
    assert ["late"] == steered.left()


def test_e13_the_commit_that_ends_the_run_says_what_it_hands_back(steered: Steered) -> None:
    """What comes before it is handed back; what would come behind it is refused."""
    strikes_of(steered.engine).append(Once("before", "terminal:", steered.say("just before")))
    steered.run(agent(["done"]))
    [left] = steered.engine.ledger.inbox(steered.run_id)
    key = {"root_id": steered.run_id, "commit_key": f"terminal:{steered.run_id}"}
    row = steered.engine.ledger.database.read(lambda tx: tx.one("agent_commit_get", **key))
    assert [left.entry] == decoded(row["result"])["handed_back"]


def test_e13_what_a_denied_request_would_have_held_is_handed_back(steered: Steered) -> None:
    run = steered.run(agent(["never"], hooks=Hooks(before_model=[lambda request: Deny("no")])), "one")
    assert (AgentStatus.FAILED, ["one"]) == (run.status, steered.left())


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "user", "content": "stop"}, "stop"),
        ({"a": [1]}, '{"a": [1]}'),
        (5, "5"),
        ({"role": "nobody", "content": 1}, '{"role": "nobody", "content": 1}'),
    ],
    ids=["a message", "json", "a number", "no message"],
)
def test_e13_whatever_is_said_the_model_is_told(steered: Steered, message: Any, told: str) -> None:
    model = scripted("done")
    steered.run(agent(model), message)
    assert ("human", told) == sent(model)[-1]


def test_e13_a_run_that_waits_for_a_person_is_told_when_it_goes_on(engines: Engines) -> None:
    engine = engines()
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "done"])
    spec = agent(model, Notes().tool("t"))
    run = begun_and_left(engine, spec, "call-raw:", "before", at=2)
    engine = engines()
    run = engine.drive(run.agent_run_id, spec)
    engine.steer(run.agent_run_id, "never mind")
    [doubt] = engine.doubts(run.agent_run_id)
    engine.resolve(run.agent_run_id, doubt.operation_id, happened=True, result="1!")
    output_of(engine.drive(run.agent_run_id))
    assert [("tool", "1!"), ("human", "never mind")] == sent(model)[-2:]
