"""What can be seen of a ReAct agent: while it runs and after, and from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentStatus
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.testing import call, calls, say
from tests.support import faults
from tests.support.reacting import (
    Notes,
    agent,
    answers,
    begun_and_left,
    history,
    output_of,
    scripted,
    transcript_at,
)

Engines = Callable[..., AgentGraphEngine]


@pytest.fixture
def ended(engine: AgentGraphEngine) -> AgentRunRecord:
    """A run of two tool calls that has ended."""
    script = [calls("So:", call("t", {"x": 1}), call("gone", {"x": 2})), "done"]
    return engine.run(agent(script, Notes().tool("t")), "go")


# -- input


@pytest.mark.parametrize(
    "given",
    [HumanMessage("go"), [HumanMessage("go")], {"messages": [HumanMessage("go")]}, [("user", "go")], "go"],
    ids=["message", "list", "messages", "pair", "text"],
)
def test_an_input_is_text_or_messages_as_langchain_writes_them(engine: AgentGraphEngine, given: Any) -> None:
    run = engine.run(agent(["done"]), given)
    assert ("done", ["go"]) == (output_of(run), [each.message.text for each in engine.transcript(run.agent_run_id)[:1]])


def test_what_another_run_has_said_may_be_gone_on_with(engine: AgentGraphEngine, ended: AgentRunRecord) -> None:
    """Its transcript, and the next thing that its user says."""
    said = [each.message for each in engine.transcript(ended.agent_run_id)]
    run = engine.run(agent(["done", "never", "again"], Notes().tool("t")), [*said, HumanMessage("and now?")])
    assert 7 == len(engine.transcript(run.agent_run_id))


# -- transcript


def test_a_transcript_holds_every_message_with_its_kind(engine: AgentGraphEngine, ended: AgentRunRecord) -> None:
    found = engine.transcript(ended.agent_run_id)
    assert [1, 2, 3, 4, 5] == [each.seq for each in found]
    assert ["input", "decision", "result", "result", "decision"] == [each.kind for each in found]
    kinds = [HumanMessage, AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert kinds == [type(each.message) for each in found]
    assert ["go", "So:", "1!"] == [each.message.text for each in found[:3]]
    assert all(isinstance(each.stored_at, datetime) for each in found)


def test_its_messages_have_ids_that_stay(engines: Engines, ended: AgentRunRecord) -> None:
    """The same each time they are read, by whoever reads them; each its own."""
    first, second = ([each.message.id for each in engines().transcript(ended.agent_run_id)] for _ in range(2))
    assert first == second
    assert (5, True) == (len(set(first)), all(first))


def test_a_model_that_gives_an_id_to_its_message_finds_it_there(engine: AgentGraphEngine) -> None:
    """So that what was streamed and what is stored are known to be one message."""
    run = engine.run(agent([say("done", message_id="msg_1")]), "go")
    assert "msg_1" == engine.transcript(run.agent_run_id)[-1].message.id


def test_a_transcript_is_read_in_pages(engine: AgentGraphEngine, ended: AgentRunRecord) -> None:
    whole = engine.transcript(ended.agent_run_id)
    pages, after = [], 0
    while page := engine.transcript(ended.agent_run_id, after=after, limit=2):
        pages.append(page)
        after = page[-1].seq
    assert [2, 2, 1] == [len(page) for page in pages]
    assert whole == [each for page in pages for each in page]


@pytest.mark.parametrize(
    "bad", [{"after": -1}, {"limit": 0}, {"after": "1"}, {"limit": None}, {"limit": 1.5}], ids=repr
)
def test_a_page_is_some(engine: AgentGraphEngine, ended: AgentRunRecord, bad: Any) -> None:
    with pytest.raises(InvalidArgument):
        engine.transcript(ended.agent_run_id, **bad)


def test_a_transcript_is_read_while_the_agent_is_at_work(engines: Engines) -> None:
    """By another object, too: it holds what is committed, and begins with the input."""
    engine, other = engines(), engines()
    seen: list[Any] = []

    def look(*_: Any) -> None:
        [run] = other.runs()
        seen.append([kind for kind, _ in history(other, run)])

    step = call("t", {"x": 1}, during=look)
    output_of(engine.run(agent([step, "done"], Notes().tool("t", lambda x: look())), "go"))
    assert [["input"], ["input", "decision"]] == seen


def test_a_run_that_nobody_has_driven_has_an_empty_transcript(engine: AgentGraphEngine) -> None:
    run = engine.start(agent(["done"]), "go")
    assert ([], [], []) == (
        engine.transcript(run.agent_run_id),
        engine.slots(run.agent_run_id),
        engine.operations(run.agent_run_id),
    )
    assert [None] == [each.phase for each in engine.tasks(run.agent_run_id)]


def test_a_transcript_is_read_from_another_process(engine: AgentGraphEngine, ended: AgentRunRecord) -> None:
    """Which has neither its spec nor its models."""
    whole = [
        (each.seq, each.kind, each.message.id, each.message.text) for each in engine.transcript(ended.agent_run_id)
    ]
    assert whole == faults.run(transcript_at, engine.ledger.database.name, ended.agent_run_id).value()


async def test_reading_has_async_forms(engine: AgentGraphEngine) -> None:
    run = await engine.arun(agent([call("t", {"x": 1}), "done"], Notes().tool("t")), "go")
    run_id = run.agent_run_id
    assert engine.transcript(run_id, after=1) == await engine.atranscript(run_id, after=1)
    assert engine.slots(run_id) == await engine.aslots(run_id)
    assert engine.tickets(run_id) == await engine.atickets(run_id)
    assert engine.tasks(run_id) == await engine.atasks(run_id)
    assert engine.operations(run_id) == await engine.aoperations(run_id)
    assert engine.doubts(run_id) == await engine.adoubts(run_id)


# -- slots, tickets, tasks


def test_slots_say_what_became_of_each_call(engine: AgentGraphEngine, ended: AgentRunRecord) -> None:
    one, two = engine.slots(ended.agent_run_id)
    assert ("t", "call-0-0", "settled", False) == (one.name, one.call_id, one.state, one.operation_id is None)
    assert ("gone", "call-0-1", "settled", True) == (two.name, two.call_id, two.state, two.operation_id is None)
    assert isinstance(two.result, ToolMessage)
    assert ("error", "call-0-1") == (two.result.status, two.result.tool_call_id)


def test_slots_are_read_while_some_are_open(engine: AgentGraphEngine) -> None:
    """One after the other: the first is admitted, and the second is queued."""
    seen: list[Any] = []

    def look(x: int) -> str:
        [run] = engine.runs()
        seen.append([(each.state, each.result is None) for each in engine.slots(run.agent_run_id)])
        return f"{x}!"

    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    output_of(engine.run(agent(script, Notes().tool("t", look), parallel_tools=False), "go"))
    assert [[("admitted", True), ("queued", True)], [("settled", False), ("admitted", True)]] == seen


def test_slots_are_in_the_order_of_the_decisions(engine: AgentGraphEngine) -> None:
    """On a clock that stands still."""
    script = [calls(call("t", {"x": n}), call("t", {"x": n + 1})) for n in (0, 2, 4)]
    run = engine.run(agent([*script, "done"], Notes().tool("t")), "go")
    assert [f"call-{n}-{m}" for n in range(3) for m in range(2)] == [s.call_id for s in engine.slots(run.agent_run_id)]


def test_tickets_say_what_became_of_each_loop(engine: AgentGraphEngine) -> None:
    seen: list[Any] = []

    def look(*_: Any) -> None:
        [run] = engine.runs()
        seen.append([(str(each.state), each.reason) for each in engine.tickets(run.agent_run_id)])
        seen.append((run.loops_used, run.loops_reserved))

    run = engine.run(agent([call("t", {"x": 1}), say("done", during=look)], Notes().tool("t")), "go")
    assert [[("consumed", "decision"), ("reserved", None)], (1, 1)] == seen
    assert (2, 0) == (run.loops_used, run.loops_reserved)
    models = [each.operation_id for each in engine.operations(run.agent_run_id) if each.kind == "model"]
    assert models == [each.operation_id for each in engine.tickets(run.agent_run_id)]


def test_a_tasks_phase_says_where_it_stands(engines: Engines) -> None:
    """While its model is at work, while it waits for a tool, and when it has ended."""
    engine, seen = engines(), []

    def look(*_: Any) -> str:
        [run] = engine.runs()
        [task] = engine.tasks(run.agent_run_id)
        seen.append((str(task.state), task.phase, task.waits_for is not None, task.role))
        return "ok"

    script = [call("t", {"x": 1}, during=look), "done"]
    run = engine.run(agent(script, Notes().tool("t", look)), "go")
    role = seen[0][-1]
    assert [("waiting", "call_model", True, role), ("waiting", "wait_batch", True, role)] == seen
    [task] = engine.tasks(run.agent_run_id)
    assert ("succeeded", "completed", None) == (str(task.state), task.phase, task.waits_for)


def test_a_task_that_has_failed_says_why(engine: AgentGraphEngine) -> None:
    run = engine.run(agent([say("")]), "go")
    [task] = engine.tasks(run.agent_run_id)
    assert ("failed", "model_protocol_error") == (str(task.state), (task.error or {}).get("code"))


def test_what_a_worker_left_is_read_before_anybody_goes_on(engines: Engines) -> None:
    """A call whose worker has died is under way, as far as anybody knows."""
    spec = agent([call("t", {"x": 1}), "done"], Notes().tool("t"))
    run = begun_and_left(engines(), spec, "call-raw:", "before", at=2)
    engine = engines()
    assert AgentStatus.RUNNING is engine.get_run(run.agent_run_id).status
    assert [("admitted", None)] == [(each.state, each.result) for each in engine.slots(run.agent_run_id)]
    assert [("input", "go"), ("decision", "")] == history(engine, run)
    assert [] == engine.doubts(run.agent_run_id)


def test_a_call_that_never_began_has_a_result_when_the_run_has_ended(engine: AgentGraphEngine) -> None:
    """So that the history holds one for every call, whatever ended the run."""

    async def is_cancelled(x: int) -> None:
        await engine.acancel(engine.runs()[0].agent_run_id)
        await asyncio.sleep(30)

    tool = Notes().tool("t", is_cancelled, metadata={"effect": "repeatable"})
    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "never"]
    run = engine.run(agent(script, tool, parallel_tools=False), "go")
    assert AgentStatus.CANCELLED is run.status
    stopped = [("call-0-0", "cancelled: it was stopped while it ran"), ("call-0-1", "cancelled: it has not begun")]
    assert stopped == answers(engine, run)


@pytest.mark.parametrize("read", ["tasks", "operations", "doubts", "slots", "tickets", "transcript", "get_run"])
def test_what_is_not_there_is_not_found(engine: AgentGraphEngine, read: str) -> None:
    with pytest.raises(NotFound) as missing:
        getattr(engine, read)("gone")
    assert "agent_run_not_found" == missing.value.code


def test_an_input_is_text_or_messages(engine: AgentGraphEngine) -> None:
    """And anything else is refused before the run begins."""
    model = scripted("done", by="request")
    for given in ("go", [{"role": "user", "content": "go"}], {"messages": [{"role": "user", "content": "go"}]}):
        run = engine.run(agent(model), given)
        assert [("input", "go"), ("decision", "done")] == history(engine, run)
    before = len(engine.runs())
    for bad in (None, "", [], {}, 5, {"text": "go"}, [{"role": "nobody", "content": "go"}], [5]):
        with pytest.raises(InvalidArgument):
            engine.start(agent(model), bad)
    assert before == len(engine.runs())


def test_an_input_is_no_place_for_what_is_the_engines(engine: AgentGraphEngine) -> None:
    """What an agent node's run goes on with is not for others to say, and nothing that is given is passed over."""
    run = engine.run(agent(scripted("done", by="request")), "go")
    context = {"context_id": engine.tasks(run.agent_run_id)[0].agent_task_id, "upto": 2}
    for messages in ([], [{"role": "user", "content": "and now?"}]):
        for more in ({"continues": context}, {"todos": []}):
            with pytest.raises(InvalidArgument, match=f"take {next(iter(more))} out"):
                engine.start(agent(scripted("done")), {"messages": messages, **more})
    assert [run.agent_run_id] == [each.agent_run_id for each in engine.runs()]
