"""A9, A10, E13, E14, E18: tools, hooks, functions and models of users that misbehave, and what comes of it."""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langgraph_ext import AgentGraphEngine, LedgerSaver
from langgraph_ext.engine import AgentSpec, AgentStatus, Deadlines, Hooks, InjectedIdempotencyKey, ToolPolicy
from langgraph_ext.testing import call, calls
from tests.support.processes import at_once
from tests.support.reacting import Notes, agent, begun_and_left, operations, output_of, results, scripted, sent

Engines = Callable[..., AgentGraphEngine]

_PATIENCE = 30.0
"""Seconds until something that should have happened counts as never happening."""


def exits(*_: Any) -> None:
    """What argparse does with an argument that it does not know."""
    sys.exit(2)


# -- SystemExit


def run_one_that_exits(path: Path, is_async: bool) -> tuple[list[str | None], Any, Any]:
    """What is told of a tool that exits, what its run answers, and one after it."""

    def sync(x: int) -> None:
        """Exit."""
        exits()

    async def soon(x: int) -> None:
        """Exit."""
        exits()

    exiting: Any = soon if is_async else sync
    name = exiting.__name__
    with AgentGraphEngine(path) as engine:
        run = engine.run(agent([call(name, {"x": 1}), "done"], exiting), "go")
        return results(engine, run), run.output, engine.run(agent(["fine"]), "go").output


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_exits_has_failed_and_takes_nothing_along(tmp_path: Path, is_async: bool) -> None:
    """The model is told so, and this program goes on, its other runs as well."""
    expected = (["call_failed: RuntimeError: it raised SystemExit: 2"], "done", "fine")
    assert [expected] == at_once(run_one_that_exits, (tmp_path / "agents.db", is_async), timeout=_PATIENCE)


def run_with_a_hook_that_exits(path: Path, where: str) -> tuple[list[str], Any]:
    """What the tool's result begins with, and what the run answers."""
    hooks = Hooks(**{where: [exits]})
    with AgentGraphEngine(path) as engine:
        run = engine.run(agent([call("t", {"x": 1}), "done"], Notes().tool("t"), hooks=hooks), "go")
        return [(each or "").split(":")[0] for each in results(engine, run)], run.output


@pytest.mark.parametrize("where", ["before_tool", "after_tool"])
def test_e18_a_hook_that_exits_denies(tmp_path: Path, where: str) -> None:
    found = at_once(run_with_a_hook_that_exits, (tmp_path / "agents.db", where), timeout=_PATIENCE)
    assert [(["denied"], "done")] == found


def run_with_a_function_that_exits(path: Path) -> tuple[str, list[str]]:
    """How a run stands whose function has exited, and which calls of it are in doubt."""
    with AgentGraphEngine(path) as first, AgentGraphEngine(path) as second:
        engines = iter((first, second))
        engine, spec, run = left_in_doubt(lambda: next(engines), exits)
        status = engine.drive(run.agent_run_id, spec).status
        return str(status), [each.name for each in engine.doubts(run.agent_run_id)]


def test_a10_if_the_function_exits_a_person_is_asked(tmp_path: Path) -> None:
    found = at_once(run_with_a_function_that_exits, (tmp_path / "agents.db",), timeout=_PATIENCE)
    assert [("running", ["pay"])] == found


# -- results and answers that cannot be stored


def test_a9_a_call_that_was_made_is_not_told_as_failed_when_its_result_cannot_be_stored(
    engine: AgentGraphEngine,
) -> None:
    """Such as half characters, which are what Python makes of file names in other encodings."""
    made = []

    def ls(x: int) -> str:
        """List."""
        made.append(x)
        return os.fsdecode(b"caf\xe9")

    run = engine.run(agent([call("ls", {"x": 1}), "done"], ls), "go")
    assert ("done", [1]) == (output_of(run), made)
    assert (results(engine, run)[0] or "").startswith("tool_result_invalid: the call was made, and its result cannot")


class Says(BaseChatModel):
    """A model that always gives this answer."""

    answer: AIMessage

    @property
    def _llm_type(self) -> str:
        return "says"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer)])


@pytest.mark.parametrize(
    ("value", "kind"),
    [(datetime.datetime(2026, 1, 1), "datetime"), (float("-inf"), "float"), ("half \ud83d", "str")],
    ids=["a time", "no number", "half a character"],
)
def test_e14_metadata_that_is_no_json_is_named_and_the_answer_counts(
    engine: AgentGraphEngine, value: Any, kind: str
) -> None:
    """What else is in it is kept."""
    answer = AIMessage("ok", response_metadata={"odd": value, "even": 2})
    run = engine.run(AgentSpec(model=Says(answer=answer)), "go")
    assert "ok" == output_of(run)
    kept = engine.transcript(run.agent_run_id)[-1].message.response_metadata
    assert ({"not_stored": kind}, 2) == (kept["odd"], kept["even"])


def test_e14_half_characters_of_an_answer_are_replaced(engine: AgentGraphEngine) -> None:
    assert "half ?" == output_of(engine.run(AgentSpec(model=Says(answer=AIMessage("half \ud83d"))), "go"))


@pytest.mark.parametrize("tokens", [-1, 2**50])
def test_e14_a_number_of_tokens_that_is_none_is_estimated(engine: AgentGraphEngine, tokens: int) -> None:
    """And the answer counts."""
    usage: Any = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    run = engine.run(AgentSpec(model=Says(answer=AIMessage("ok", usage_metadata=usage))), "go")
    [operation] = operations(engine, run, "model")
    assert ("ok", [True]) == (output_of(run), [each.tokens_estimated for each in operation.calls])
    assert 0 < run.tokens_in < 100


class BreaksOff(BaseChatModel):
    """A model whose stream breaks off behind its first piece."""

    piece: AIMessageChunk
    asked: list[int] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "breaks off"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        self.asked.append(1)
        yield ChatGenerationChunk(message=self.piece)
        raise ConnectionError("reset")


@pytest.mark.parametrize(
    "piece",
    [
        AIMessageChunk(content="half \ud83d"),
        AIMessageChunk(content="half", response_metadata={"at": datetime.datetime(2026, 1, 1)}),
    ],
    ids=["half a character", "a time"],
)
def test_e14_a_stream_that_breaks_off_has_failed_whatever_came_of_it(
    engine: AgentGraphEngine, piece: AIMessageChunk
) -> None:
    """It is not asked again by each worker that comes along."""
    model = BreaksOff(piece=piece, asked=[])
    run = engine.start(AgentSpec(model=model), "go")
    for _ in range(2):
        assert AgentStatus.FAILED is engine.drive(run.agent_run_id).status
    assert [1] == model.asked


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ({"role": "user", "content": [{"type": "image", "data": b"png"}]}, "png"),
        ({"role": "remove", "content": "", "id": "x"}, "remove"),
        (HumanMessage("half \ud83d"), "half"),
    ],
    ids=["bytes", "a removal", "half a character"],
)
def test_e13_what_is_steered_and_cannot_be_stored_as_a_message_is_told_as_text(
    tmp_path: Path, said: Any, heard: str
) -> None:
    """A ledger with a serde, as that of a saver, takes it; it breaks no run."""
    model = scripted("done")
    with LedgerSaver(tmp_path / "agents.db") as saver, AgentGraphEngine(saver.ledger) as engine:
        run = engine.start(agent(model), "go")
        engine.steer(run.agent_run_id, said)
        assert "done" == output_of(engine.drive(run.agent_run_id))
    kind, text = sent(model)[-1]
    assert ("human", True) == (kind, heard in text)


# -- threads and the event loop


def leaf(x: int) -> str:
    """A tool at the end of a chain of agents."""
    return "leaf"


async def leaf_soon(x: int) -> str:
    """As `leaf`."""
    return "leaf"


def run_many_agents_within(path: Path) -> str:
    """An agent, of as many tools at once as an event loop has threads, each of which runs an agent with a sync tool."""
    many = min(32, (os.cpu_count() or 1) + 4)
    here = threading.Barrier(many)
    with AgentGraphEngine(path) as engine:

        def within(x: int) -> str:
            """Run another agent."""
            here.wait(_PATIENCE)  # all threads are taken now
            return str(engine.run(agent([call("leaf", {"x": x}), "ok"], leaf), "go").output)

        script = [calls(*(call("within", {"x": n}) for n in range(many))), "done"]
        run = engine.run(agent(script, within), "go")
        return f"{run.output} {set(results(engine, run))}"


def test_agents_in_tools_of_an_agent_do_not_wait_for_each_others_threads(tmp_path: Path) -> None:
    assert ["done {'ok'}"] == at_once(run_many_agents_within, (tmp_path / "agents.db",), timeout=2 * _PATIENCE)


def run_three_deep(path: Path, is_async: bool) -> Any:
    """An agent in a tool of an agent in a tool of an agent, each with the sync `run`."""
    with AgentGraphEngine(path) as engine:

        def deeper(tool: Any, x: int) -> Any:
            return engine.run(agent([call(tool.__name__, {"x": x}), f"{tool.__name__} {x}"], tool), "go").output

        async def middle_soon(x: int) -> Any:
            """An agent's."""
            return deeper(leaf_soon, x + 1)

        def middle(x: int) -> Any:
            """An agent's."""
            return deeper(leaf_soon, x + 1)

        async def outer(x: int) -> Any:
            """An agent's."""
            return deeper(middle_soon if is_async else middle, x + 1)

        return deeper(outer, 1)


@pytest.mark.parametrize("is_async", [True, False])
def test_agents_three_deep_in_tools_that_await_nothing_come_to_an_end(tmp_path: Path, is_async: bool) -> None:
    """Also in async tools, which should have awaited `arun`."""
    assert ["outer 1"] == at_once(run_three_deep, (tmp_path / "agents.db", is_async), timeout=_PATIENCE)


def test_a9_sync_tools_of_a_batch_run_side_by_side_however_many_they_are(engine: AgentGraphEngine) -> None:
    """Each of these waits for all others: none is late before it has begun."""
    here = threading.Barrier(40)

    def meets(x: int) -> str:
        """Meet the others."""
        here.wait(_PATIENCE)
        return "met"

    script = [calls(*(call("meets", {"x": n}) for n in range(40))), "done"]
    run = engine.run(agent(script, meets, deadlines=Deadlines(tool_seconds=_PATIENCE)), "go")
    assert ("done", ["met"] * 40) == (output_of(run), results(engine, run))


def test_e18_a_hook_that_holds_its_thread_up_holds_up_nobody_else(engine: AgentGraphEngine) -> None:
    """This one waits for the call of another tool."""
    other = threading.Event()

    def waits(request: Any) -> None:
        if request["args"]["x"] == 1 and not other.wait(_PATIENCE):
            raise TimeoutError

    tool = Notes().tool("t", lambda x: other.set() if x == 2 else "first")
    script = [calls(call("t", {"x": 1}), call("t", {"x": 2})), "done"]
    run = engine.run(agent(script, tool, hooks=Hooks(before_tool=[waits])), "go")
    assert ("done", "first") == (output_of(run), results(engine, run)[0])


async def test_a9_a_call_is_not_late_because_the_event_loop_was_held_up(engine: AgentGraphEngine) -> None:
    """By a tool of another run, say: what has ended by the time that anybody can look has ended in time."""
    loop, held = asyncio.get_running_loop(), threading.Event()

    def hold_up() -> None:
        held.set()
        time.sleep(1.0)

    def ends(x: int) -> str:
        """End while the loop is held up."""
        loop.call_soon_threadsafe(hold_up)
        held.wait(_PATIENCE)
        return "in time"

    spec = agent([call("ends", {"x": 1}), "done"], ends, deadlines=Deadlines(tool_seconds=0.8))
    run = await engine.arun(spec, "go")
    assert ("done", ["in time"]) == (output_of(run), results(engine, run))


# -- functions that find out


def left_in_doubt(engines: Engines, find_out: Any, **more: Any) -> tuple[AgentGraphEngine, AgentSpec, Any]:
    """An agent whose tool was called, and whose worker died before the result was stored; and a second worker."""
    policies = {"pay": ToolPolicy(on_unknown=find_out)}
    spec = agent([call("pay", {"x": 1}), "done"], Notes().tool("pay"), tool_policies=policies, **more)
    run = begun_and_left(engines(), spec, "call-raw:", "before", at=2)
    return engines(), spec, run


def test_a10_an_awaitable_that_a_function_returns_is_awaited(engines: Engines) -> None:
    """As that of a hook is."""

    async def find(args: Any, key: str) -> str:
        return "paid after all"

    def look(args: Any, key: str) -> Any:
        return find(args, key)

    engine, spec, run = left_in_doubt(engines, look)
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert ["paid after all"] == results(engine, run)


@pytest.mark.parametrize("is_async", [True, False])
def test_a10_a_function_that_hangs_is_given_up_at_the_tools_deadline(engines: Engines, is_async: bool) -> None:
    """A person is asked, and what that one says is gone on with."""
    over, returned = threading.Event(), []

    async def hangs_soon(args: Any, key: str) -> None:
        await asyncio.sleep(_PATIENCE)
        returned.append(key)

    def hangs(args: Any, key: str) -> None:
        over.wait(_PATIENCE)
        returned.append(key)

    find_out = hangs_soon if is_async else hangs
    engine, spec, run = left_in_doubt(engines, find_out, deadlines=Deadlines(tool_seconds=0.2))
    assert AgentStatus.RUNNING is engine.drive(run.agent_run_id, spec).status
    assert [] == returned
    over.set()
    [doubt] = engine.doubts(run.agent_run_id)
    engine.resolve(run.agent_run_id, doubt.operation_id, happened=True, result="paid")
    assert "done" == output_of(engine.drive(run.agent_run_id))
    assert ["paid"] == results(engine, run)


# -- keyed calls that are late


@pytest.mark.parametrize(("late", "told"), [(1, "charged"), (2, "outcome_unknown: nobody knows whether it was done")])
def test_a10_a_keyed_call_that_is_late_is_made_once_more_with_its_key(
    engine: AgentGraphEngine, late: int, told: str
) -> None:
    """It may have been booked, so that no call with another key may follow unasked; nor is it said to have failed."""
    keys: list[str] = []

    async def charge(x: int, key: Annotated[str, InjectedIdempotencyKey]) -> str:
        """Charge."""
        keys.append(key)
        if len(keys) <= late:
            await asyncio.sleep(1000)
        return "charged"

    keyed = {"charge": ToolPolicy(effect="keyed")}
    script = [call("charge", {"x": 1}), "done"]
    run = engine.run(agent(script, charge, tool_policies=keyed, deadlines=Deadlines(tool_seconds=0.3)), "go")
    [operation] = operations(engine, run, "tool")
    assert [operation.idempotency_key] * 2 == keys
    assert ("done", [told]) == (output_of(run), results(engine, run))


# -- what an engine keeps


def test_a_run_is_driven_with_the_tools_that_it_was_started_with(engine: AgentGraphEngine) -> None:
    """And not with those of another run, whose spec looks the same."""

    def spec(user: str) -> AgentSpec:
        def pay(x: int) -> str:
            """Pay."""
            return f"paid by {user}"

        return agent([call("pay", {"x": 1}), "done"], pay)

    runs = [engine.start(spec("ann"), "go"), engine.start(spec("bob"), "go")]
    for run in runs:
        output_of(engine.drive(run.agent_run_id))
    assert runs[0].release == runs[1].release
    assert [["paid by ann"], ["paid by bob"]] == [results(engine, run) for run in runs]


def test_an_engine_keeps_nothing_of_runs_that_are_over(engine: AgentGraphEngine) -> None:
    """Whoever runs an agent for each user, with a prompt of its own, has no more in memory for that."""
    for n in range(3):
        output_of(engine.run(agent(["done"], system_prompt=f"for {n}"), "go"))
    waiting = engine.start(agent(["done"]), "go")
    assert [waiting.agent_run_id] == list(engine._started)
    output_of(engine.drive(waiting.agent_run_id))
    assert {} == engine._started


def peak_of_batch(engine: AgentGraphEngine, number: int) -> int:
    """Bytes, at most, while so many results of 100 kB come in."""
    tool = Notes().tool("t", lambda x: "x" * 100_000)
    spec = agent([calls(*(call("t", {"x": n}) for n in range(number))), "done"], tool)
    tracemalloc.start()
    try:
        output_of(engine.run(spec, "go"))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_results_of_a_batch_and_not_with_their_square(engine: AgentGraphEngine) -> None:
    few, many = peak_of_batch(engine, 10), peak_of_batch(engine, 40)
    assert many < 6 * few
