"""A6, E20: what a person decides before tools are called, asked once, answered once, and never without effect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentSpec, Approval, Deadlines, Limits, RequestRecord
from langgraph_ext.errors import ConflictError, InvalidArgument, NotFound, StoreError
from langgraph_ext.testing import FixedClock, call, calls
from tests.support.reacting import Notes, agent, answers, begun_and_left, crash_at, output_of, results, scripted

Engines = Callable[..., AgentGraphEngine]

APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "not today"}


def edit(x: Any, name: str = "t") -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": {"x": x}}}


def asking(notes: Notes, *xs: int, **more: Any) -> AgentSpec:
    """An agent that wants to call `t`, with each of these, and `u` besides, of which only `t` needs an approval."""
    wanted = [*(call("t", {"x": x}) for x in xs), call("u", {"x": 9})]
    model = scripted(calls(*wanted), "done")
    return agent(model, notes.tool("t"), notes.tool("u"), **{"interrupt_on": {"t": True}, **more})


def asked(engine: AgentGraphEngine, spec: AgentSpec) -> tuple[AgentRunRecord, RequestRecord]:
    """A run that waits for a person, and its one request."""
    run = engine.run(spec, "go")
    assert "running" == run.status
    [request] = engine.requests(run.agent_run_id, pending=True)
    return run, request


def decide(engine: AgentGraphEngine, run: AgentRunRecord, request: RequestRecord, *decisions: Any) -> AgentRunRecord:
    engine.answer(run.agent_run_id, request.request_id, {"decisions": list(decisions)})
    return engine.drive(run.agent_run_id)


# -- asking


def test_a6_nothing_of_a_decision_is_called_before_it_was_approved(engine: AgentGraphEngine) -> None:
    """Not what needs no approval either; what is shown has LangChain's shape, and the call ids."""
    notes = Notes()
    run, request = asked(engine, asking(notes, 1, 2))

    payload = request.payload
    assert [] == notes
    assert ("approval", "open", None) == (request.kind, request.state, request.answer)
    assert [("t", {"x": 1}), ("t", {"x": 2})] == [(each["name"], each["args"]) for each in payload["action_requests"]]
    assert '{"x":1}' in payload["action_requests"][0]["description"]
    every = ["approve", "edit", "reject", "respond"]
    assert [{"action_name": "t", "allowed_decisions": every}] * 2 == payload["review_configs"]
    assert ["call-0-0", "call-0-1"] == payload["tool_call_ids"]
    assert ["admitting", "admitting", "queued"] == [each.state for each in engine.slots(run.agent_run_id)]
    assert "paused" == engine.ledger.runs()[0].status


def test_a6_approved_calls_are_made_once_with_the_others(engine: AgentGraphEngine) -> None:
    notes = Notes()
    run, request = asked(engine, asking(notes, 1, 2))
    assert "done" == output_of(decide(engine, run, request, APPROVE, APPROVE))
    assert [("t", 1), ("t", 2), ("u", 9)] == sorted(notes)
    assert [APPROVE, APPROVE, None] == [each.decision for each in engine.slots(run.agent_run_id)]
    assert "succeeded" == engine.ledger.runs()[0].status
    assert [] == engine.ledger.verify()


def test_scenario_7_a_rejected_call_never_runs_and_an_edited_one_runs_edited(engine: AgentGraphEngine) -> None:
    """Both versions are on record, each call has one result, in order, and the model knows what happened."""
    notes = Notes()
    run, request = asked(engine, asking(notes, 1, 2, 3))
    assert "done" == output_of(decide(engine, run, request, APPROVE, REJECT, edit(33)))

    assert [("t", 1), ("t", 33), ("u", 9)] == sorted(notes)
    ids, told = zip(*answers(engine, run), strict=True)
    assert ("call-0-0", "call-0-1", "call-0-2", "call-0-3") == ids
    assert ("1!", "9!") == (told[0], told[3])
    assert "rejected" in told[1]
    assert "not today" in told[1]
    assert told[2].endswith("33!")
    assert "changed the arguments" in told[2]
    slot = engine.slots(run.agent_run_id)[2]
    [decision] = [each.message for each in engine.transcript(run.agent_run_id) if each.kind == "decision"][:1]
    assert ({"x": 33}, {"x": 3}) == (slot.decision["edited_action"]["args"], decision.tool_calls[2]["args"])  # type: ignore[attr-defined]


def test_a6_a_response_is_the_result_of_a_call_that_is_not_made(engine: AgentGraphEngine) -> None:
    notes = Notes()
    run, request = asked(engine, asking(notes, 1))
    decide(engine, run, request, {"type": "respond", "message": "ask me tomorrow"})
    assert [("u", 9)] == notes
    assert ["ask me tomorrow", "9!"] == results(engine, run)


def test_a6_a_batch_of_which_every_call_is_rejected_goes_back_to_the_model(engine: AgentGraphEngine) -> None:
    notes = Notes()
    spec = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    run, request = asked(engine, spec)
    assert "done" == output_of(decide(engine, run, request, {"type": "reject"}))
    assert [] == notes


def test_a6_when_is_asked_once_and_kept(engines: Engines) -> None:
    """Whoever goes on with the run goes by what it said then; one that raises wants the approval."""
    notes, seen = Notes(), list[Any]()

    def when(request: Any) -> bool:
        seen.append(request.tool_call["args"]["x"])
        if request.tool_call["args"]["x"] == 3:
            raise ValueError("it cannot tell")
        return bool(request.tool_call["args"]["x"] == 2)

    spec = asking(notes, 1, 2, 3, interrupt_on={"t": Approval(when=when)})
    run, request = asked(engines(), spec)
    assert [{"x": 2}, {"x": 3}] == [each["args"] for each in request.payload["action_requests"]]
    engine = engines()
    engine.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE, APPROVE]})
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert [1, 2, 3] == seen


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("Look twice.", "Look twice."),
        (lambda tool_call: f"about {tool_call['args']['x']}", "about 1"),
        (lambda tool_call, state, runtime: f"as LangChain: {tool_call['name']}", "as LangChain: t"),
    ],
)
def test_a6_a_person_is_shown_its_description(engine: AgentGraphEngine, description: Any, shown: str) -> None:
    _, request = asked(engine, asking(Notes(), 1, interrupt_on={"t": Approval(description=description)}))
    assert shown == request.payload["action_requests"][0]["description"]


def test_a6_what_is_rejected_anyway_is_not_asked_about(engine: AgentGraphEngine) -> None:
    """A call whose arguments do not fit is made by nobody."""
    notes = Notes()
    spec = agent(
        [calls(call("t", {"x": "no"}), call("t", {"x": 2})), "done"], notes.tool("t"), interrupt_on={"t": True}
    )
    run, request = asked(engine, spec)
    assert [{"x": 2}] == [each["args"] for each in request.payload["action_requests"]]
    decide(engine, run, request, APPROVE)
    assert [("t", 2)] == notes


@pytest.mark.parametrize("parallel", [True, False])
def test_e20_serial_tools_begin_one_by_one_behind_the_approval(engine: AgentGraphEngine, parallel: bool) -> None:
    notes = Notes()
    run, request = asked(engine, asking(notes, 1, 2, parallel_tools=parallel))
    assert "done" == output_of(decide(engine, run, request, APPROVE, REJECT))
    assert [("t", 1), ("u", 9)] == (notes if not parallel else sorted(notes))


# -- answering


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("yes", "answer with"),
        ({"decisions": [APPROVE]}, "2 actions"),
        ({"decisions": [APPROVE, {"type": "maybe"}]}, "decision 2"),
        ({"decisions": [APPROVE, edit("no")]}, "/x"),
        ({"decisions": [APPROVE, edit(1, "u")]}, "'t'"),
        ({"decisions": [APPROVE, {"type": "respond"}]}, "message"),
        ({"decisions": [{"type": "reject", "message": 7}, APPROVE]}, "no text"),
        ({"decisions": [APPROVE, {"type": "edit"}]}, "edited_action"),
        ({"decisions": [APPROVE, None]}, "None"),
    ],
)
def test_a3_an_answer_that_is_none_changes_nothing_and_says_why(
    engine: AgentGraphEngine, answer: Any, why: str
) -> None:
    """The request stays open, and a good one is taken after it."""
    notes = Notes()
    run, request = asked(engine, asking(notes, 1, 2))
    with pytest.raises(InvalidArgument, match=why) as refused:
        engine.answer(run.agent_run_id, request.request_id, answer)
    assert "answer_invalid" == refused.value.code
    assert "open" == engine.requests(run.agent_run_id)[0].state
    decide(engine, run, request, APPROVE, APPROVE)
    assert 3 == len(notes)


def test_a6_a_decision_that_is_not_allowed_is_refused(engine: AgentGraphEngine) -> None:
    spec = asking(Notes(), 1, interrupt_on={"t": Approval(allowed_decisions=["approve"])})
    run, request = asked(engine, spec)
    with pytest.raises(InvalidArgument, match="one of approve"):
        engine.answer(run.agent_run_id, request.request_id, {"decisions": [REJECT]})


def test_a2_the_first_answer_counts(engines: Engines) -> None:
    """The same again changes nothing, from whichever process; another one is told which it was."""
    notes = Notes()
    spec = asking(notes, 1)
    run, request = asked(engines(), spec)
    first, second = engines(), engines()
    first.answer(run.agent_run_id, request.request_id, {"decisions": [REJECT]})
    second.answer(run.agent_run_id, request.request_id, {"decisions": [{**REJECT, "more": 1}]})
    with pytest.raises(ConflictError) as refused:
        second.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
    assert ("request_answered", {"decisions": [REJECT]}) == (refused.value.code, refused.value.details["answer"])
    second.drive(run.agent_run_id, spec)
    assert [("u", 9)] == notes
    second.answer(run.agent_run_id, request.request_id, {"decisions": [REJECT]})


def test_a2_of_answers_at_once_one_counts(engines: Engines) -> None:
    spec = asking(Notes(), 1)
    run, request = asked(engines(), spec)
    told, ready = list[str](), threading.Barrier(4)

    def answer(number: int) -> None:
        engine = engines()
        ready.wait()
        try:
            decision = {"type": "respond", "message": str(number)}
            engine.answer(run.agent_run_id, request.request_id, {"decisions": [decision]})
        except ConflictError as refused:
            told.append(refused.code)
        else:
            told.append("answered")

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert ["answered", *["request_answered"] * 3] == sorted(told)


def test_a2_unknown_requests_are_refused_by_name(engine: AgentGraphEngine) -> None:
    run, request = asked(engine, asking(Notes(), 1))
    with pytest.raises(NotFound, match="no request"):
        engine.answer(run.agent_run_id, "approval:x", {"decisions": []})
    with pytest.raises(NotFound):
        engine.answer("nobody", request.request_id, {"decisions": [APPROVE]})


@pytest.mark.parametrize("kind", ["accept-model:", "decide-batch:"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a2_a_worker_that_dies_around_an_approval_loses_nothing(engines: Engines, kind: str, moment: str) -> None:
    """Asked once, answered once, called once, whoever dies at which commit."""
    notes = Notes()
    effects = {"tool_policies": {name: {"effect": "repeatable"} for name in ("t", "u")}}
    spec = asking(notes, 1, **effects)
    if kind == "accept-model:":
        run = begun_and_left(engines(), spec, kind, moment)
        engine = engines()
        run = engine.drive(run.agent_run_id, spec)
        [request] = engine.requests(run.agent_run_id)
    else:
        first = engines()
        run, request = asked(first, spec)
        first.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
        crash_at(first, kind, moment)
        with pytest.raises(StoreError):
            first.drive(run.agent_run_id)
    engine = engines()
    engine.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert [("t", 1), ("u", 9)] == sorted(notes)
    assert 1 == len(engine.requests(run.agent_run_id))


# -- waiting


def test_e23_the_clocks_stand_while_a_person_decides(engines: Engines, clock: FixedClock) -> None:
    engine = engines()
    spec = asking(Notes(), 1, deadlines=Deadlines(run_seconds=60.0))
    run, request = asked(engine, spec)
    clock.advance(3_600)
    assert "running" == engine.drive(run.agent_run_id).status
    assert "done" == output_of(decide(engine, run, request, APPROVE))


def test_e27_cancelling_closes_what_is_asked(engine: AgentGraphEngine) -> None:
    """Each call has a result, none was made, and an answer is refused then."""
    notes = Notes()
    run, request = asked(engine, asking(notes, 1))
    assert "cancelled" == engine.cancel(run.agent_run_id).status
    assert ["cancelled"] == [each.state for each in engine.requests(run.agent_run_id)]
    assert [] == engine.requests(run.agent_run_id, pending=True)
    assert ["call-0-0", "call-0-1"] == [call_id for call_id, _ in answers(engine, run)]
    with pytest.raises(ConflictError) as refused:
        engine.answer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
    assert ("run_closed", []) == (refused.value.code, notes)


def test_a6_calls_beyond_a_limit_are_not_asked_about(engine: AgentGraphEngine) -> None:
    run = engine.run(asking(Notes(), 1, 2, limits=Limits(tool_calls=2)), "go")
    assert ("exhausted", []) == (run.status, engine.requests(run.agent_run_id, pending=True))


async def test_a6_answers_have_an_async_form(engine: AgentGraphEngine) -> None:
    notes = Notes()
    run = await engine.arun(asking(notes, 1), "go")
    [request] = await engine.arequests(run.agent_run_id, pending=True)
    answered = await engine.aanswer(run.agent_run_id, request.request_id, {"decisions": [APPROVE]})
    assert ("answered", {"decisions": [APPROVE]}) == (answered.state, answered.answer)
    assert "done" == output_of(await engine.adrive(run.agent_run_id))
