"""The engine's door: agents of a spec, with langchain-core's models and tools, sync and async, from several places."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core import exceptions
from langchain_core.tools import tool

from langgraph_ext import AgentGraphEngine, LedgerSaver
from langgraph_ext.engine import AgentStatus, Deny, Hook, Hooks, Replace
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument, LeaseError, NotFound, SpecInvalid
from langgraph_ext.testing import ScriptedChatModel, call, fails, hangs, say, tries
from tests.database.notes import until
from tests.support.asking import asking, behaviours


@tool
def add(a: int, b: int) -> str:
    """Adds."""
    return str(a + b)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[AgentGraphEngine]:
    with AgentGraphEngine(tmp_path / "agents.db", behaviours=behaviours()) as made:
        yield made


def test_an_agent_answers(engine: AgentGraphEngine) -> None:
    run = engine.run(asking(ScriptedChatModel(script=say("42"))), "six times seven?")

    assert (AgentStatus.SUCCEEDED, "42", 1, 1) == (run.status, run.output, run.loops_used, run.model_calls)
    assert run == engine.get_run(run.agent_run_id)
    assert [run] == engine.runs()
    assert [("ask", "model", "completed", 1)] == [
        (each.purpose, each.kind, each.state, len(each.calls)) for each in engine.operations(run.agent_run_id)
    ]
    assert [] == engine.ledger.verify()


def test_a_tool_is_called_as_the_model_says(engine: AgentGraphEngine) -> None:
    model = ScriptedChatModel(script=call("add", {"a": 2, "b": 3}))
    run = engine.run(asking(model, tools=(add,)), "2 + 3?")

    assert ("5", 1) == (run.output, run.loops_used)
    assert ["ask", "act"] == [each.purpose for each in engine.operations(run.agent_run_id)]


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_the_sync_form_works_with_and_without_a_loop(engine: AgentGraphEngine, on_a_loop: bool) -> None:
    """As in a notebook, where one runs."""
    spec = asking(ScriptedChatModel(script=say("yes")))

    async def cell() -> Any:
        return engine.run(spec, "?")

    assert "yes" == (asyncio.run(cell()) if on_a_loop else engine.run(spec, "?")).output


async def test_the_async_form_does_the_same(engine: AgentGraphEngine) -> None:
    spec = asking(ScriptedChatModel(script=say("yes")))
    run = await engine.arun(spec, "?", key="k")

    assert run == await engine.aget_run(run.agent_run_id) == await engine.arun(spec, "?", key="k")
    assert [run] == await engine.aruns()
    events = [each.name for each in await engine.aevents(run.agent_run_id)]
    assert ("run.started", "run.succeeded") == (events[0], events[-1])


def test_e4_a_key_is_one_agent_run(engine: AgentGraphEngine) -> None:
    """Whoever asks again gets it as it is; with another input, or another spec, it is refused."""
    model = ScriptedChatModel(script=say("yes"))
    first = engine.run(asking(model), "?", key="k")

    assert first == engine.run(asking(model), "?", key="k")
    assert (1, 1) == (len(model.calls), len(engine.runs()))
    for spec, input in ((asking(model), "!"), (asking(model, name="another"), "?")):
        with pytest.raises(ConflictError) as raised:
            engine.start(spec, input, key="k")
        assert "idempotency_conflict" == raised.value.code


def test_another_process_goes_on(engine: AgentGraphEngine, tmp_path: Path) -> None:
    run = engine.start(asking(ScriptedChatModel(script=say("from there"))), "?")
    code = (
        "import sys\n"
        "from langgraph_ext import AgentGraphEngine\n"
        "from langgraph_ext.testing import ScriptedChatModel, say\n"
        "from tests.support.asking import asking, behaviours\n"
        "with AgentGraphEngine(sys.argv[1], behaviours=behaviours()) as engine:\n"
        "    spec = asking(ScriptedChatModel(script=say('from there')))\n"
        "    print(engine.drive(sys.argv[2], spec).output)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "agents.db"), run.agent_run_id]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2])

    assert ("from there\n", "") == (ran.stdout, ran.stderr)
    assert "from there" == engine.get_run(run.agent_run_id).output


def test_bad_input_is_refused_before_anything_is_written(engine: AgentGraphEngine) -> None:
    spec = asking(ScriptedChatModel(script=say("yes")))
    refused: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: engine.start(spec, object()), InvalidArgument),
        (lambda: engine.start(spec, float("nan")), InvalidArgument),
        (lambda: engine.start(spec, "?", key=""), InvalidArgument),
        (lambda: engine.start(spec, "?", key=5), InvalidArgument),  # type: ignore[arg-type]
        (lambda: engine.start({**spec, "entry": "nobody"}, "?"), SpecInvalid),
        (
            lambda: engine.start({**spec, "bindings": [{"role": "asker", "behaviour": "x", "version": 1}]}, "?"),
            AdmissionError,
        ),
        (lambda: engine.get_run("nobody"), NotFound),
        (lambda: engine.drive("nobody"), NotFound),
        (lambda: engine.cancel("nobody"), NotFound),
        (lambda: engine.operations("nobody"), NotFound),
        (lambda: engine.runs(limit=0), InvalidArgument),
        (lambda: AgentGraphEngine("x.db", lease_ttl_seconds=0), InvalidArgument),
    ]
    for act, kind in refused:
        with pytest.raises(kind):
            act()
    assert [] == engine.runs()


def test_a_run_keeps_the_spec_that_it_was_started_with(engine: AgentGraphEngine) -> None:
    model = ScriptedChatModel(script=say("yes"))
    run = engine.start(asking(model), "?")
    with pytest.raises(AdmissionError) as raised:
        engine.drive(run.agent_run_id, asking(model, name="changed"))

    assert "definition_changed" == raised.value.code
    assert "yes" == engine.drive(run.agent_run_id).output


def test_k01_a_run_that_nobody_drives_is_stopped_at_once(engine: AgentGraphEngine) -> None:
    model = ScriptedChatModel(script=say("yes"))
    run = engine.start(asking(model), "?")
    stopped = engine.cancel(run.agent_run_id, reason="enough")

    assert (AgentStatus.CANCELLED, "stopped", "enough") == (stopped.status, stopped.reason, stopped.message)
    assert stopped == engine.drive(run.agent_run_id)
    assert [] == model.calls
    assert "cancelled" == engine.ledger.run(run.agent_run_id).status
    with pytest.raises(ConflictError) as raised:
        engine.cancel(run.agent_run_id)
    assert "run_closed" == raised.value.code


def test_k01_a_run_that_is_driven_ends_at_its_workers_next_turn(engine: AgentGraphEngine) -> None:
    """Stopped from another thread, while its model says nothing."""
    model = ScriptedChatModel(script=hangs())
    run = engine.start(asking(model), "?")
    found: list[Any] = []
    worker = threading.Thread(target=lambda: found.append(engine.drive(run.agent_run_id)))
    worker.start()
    until(lambda: len(model.calls) == 1, "its model is called")
    with pytest.raises(LeaseError) as raised:
        engine.drive(run.agent_run_id)
    engine.cancel(run.agent_run_id)
    worker.join(30)

    assert "thread_busy" == raised.value.code
    assert [AgentStatus.CANCELLED] == [each.status for each in found]
    assert ["cancelled"] == [each.state for each in engine.operations(run.agent_run_id)]


def test_e18_hooks_replace_and_deny(engine: AgentGraphEngine) -> None:
    """What they decided is on record, and a request that is denied is never sent."""
    model = ScriptedChatModel(script=say("yes"))

    def shout(request: Any) -> Any:
        return Replace({**request, "messages": [{"type": "human", "data": {"content": "LOUD"}}]})

    def louder(outcome: Any) -> Any:
        return Replace({"value": {"message": {"type": "ai", "data": {"content": "YES"}}}})

    loud = engine.run(asking(model, hooks=Hooks(before_model=(shout,), after_model=(louder,))), "quiet")
    denied = engine.run(asking(model, hooks=Hooks(before_model=(lambda _: Deny("no"),))), "quiet")

    assert ("YES", {"error": {"code": "denied", "message": "no"}}) == (loud.output, denied.output)
    assert (1, 0) == (len(model.calls), denied.loops_used)
    assert "LOUD" == engine.operations(loud.agent_run_id)[0].request["messages"][0]["data"]["content"]


@pytest.mark.parametrize("required", [True, False])
def test_e18_a_hook_that_raises_denies_unless_it_need_not_be_asked(engine: AgentGraphEngine, required: bool) -> None:
    def broken(request: Any) -> Any:
        raise ValueError("secret")

    hook = Hook(call=broken, required=required)
    run = engine.run(asking(ScriptedChatModel(script=say("yes")), hooks=Hooks(before_model=(hook,))), "?")

    assert ("yes" == run.output) is not required
    assert "secret" not in json.dumps(run.output)


def test_e23_what_may_help_is_tried_again(engine: AgentGraphEngine) -> None:
    """Another call of the same operation, under the same ticket; an error that says nothing of it is the outcome."""
    limited = getattr(exceptions, "ModelRateLimitError", None)
    if limited is None:
        pytest.skip("the lowest version of langchain-core has no such error")
    again = {"retry": {"calls": 2, "wait_seconds": 0.01}}
    model = ScriptedChatModel(script=tries(fails(limited("slow down")), say("yes")))
    run = engine.run(asking(model, **again), "?")
    other = engine.run(asking(ScriptedChatModel(script=fails(ValueError("no"))), **again), "?")

    assert ("yes", 1, 2) == (run.output, run.loops_used, run.model_calls)
    assert (("call_failed", 1)) == (other.output["error"]["code"], other.model_calls)


def test_e23_a_model_that_says_nothing_is_given_up(engine: AgentGraphEngine) -> None:
    spec = asking(ScriptedChatModel(script=hangs()), deadlines={"model_seconds": 0.05})

    assert "deadline_exceeded" == engine.run(spec, "?").output["error"]["code"]


def test_a_saver_and_an_engine_share_a_database(tmp_path: Path) -> None:
    """And a ledger: `close` of the engine leaves it open."""
    with LedgerSaver(tmp_path / "runs.db") as saver:
        with AgentGraphEngine(saver.ledger, behaviours=behaviours()) as engine:
            run = engine.run(asking(ScriptedChatModel(script=say("yes"))), "?")
        assert [run.agent_run_id] == [each.run_id for each in saver.ledger.runs()]


def test_steering_stays_in_sight_until_it_is_claimed(engine: AgentGraphEngine) -> None:
    run = engine.start(asking(ScriptedChatModel(script=say("yes"))), "?")
    engine.steer(run.agent_run_id, "be brief")
    engine.drive(run.agent_run_id)

    (entry,) = engine.ledger.inbox(run.agent_run_id)
    assert ("be brief", None) == (entry.message, entry.consumed_at)
    with pytest.raises(ConflictError) as raised:
        engine.steer(run.agent_run_id, "too late")
    assert "run_closed" == raised.value.code


async def test_many_agent_runs_share_commits_and_none_starves(tmp_path: Path) -> None:
    """Two hundred at once: the slowest waits at most three times as many commits as the median."""
    async with AgentGraphEngine(tmp_path / "agents.db", behaviours=behaviours()) as engine:
        spec = asking(ScriptedChatModel(script=say("yes")))
        runs = await asyncio.gather(*(engine.arun(spec, f"{number}") for number in range(200)))
        order = engine.ledger.database.read(_commits)

    assert {"yes"} == {run.output for run in runs}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, root_id in enumerate(order):
        first.setdefault(root_id, place)
        last[root_id] = place
    waits = sorted(last[root_id] - first[root_id] for root_id in first)
    assert waits[-1] <= 3 * waits[len(waits) // 2]


def _commits(tx: Any) -> list[str]:
    """The roots of all commits, in their order."""
    rows = tx._execute("SELECT root_id FROM agent_commit ORDER BY rowid", {}).fetchall()
    return [row["root_id"] for row in rows]


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("limits.cost_usd", {"limits": {"cost_usd": 1.0}}),
    ],
)
def test_what_nothing_enforces_yet_is_refused(engine: AgentGraphEngine, part: str, more: dict[str, Any]) -> None:
    """A limit that its user relies on in vain would be worse than none."""
    with pytest.raises(InvalidArgument, match=r"a graph's Budget\(cost_usd=") as raised:
        engine.start(asking(ScriptedChatModel(script=say("yes")), **more), "?")

    assert ("spec_unsupported", [part]) == (raised.value.code, raised.value.details["parts"])
    assert [] == engine.runs()
