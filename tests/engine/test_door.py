"""The engine's door: what it refuses, and what a caller may do beside a worker."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from langgraph_ext import AgentGraphEngine
from langgraph_ext.database import open_database
from langgraph_ext.engine import AgentStatus, Begin, Behaviours, Complete, Runtime, Wait, operations_ended
from langgraph_ext.errors import InvalidArgument, LangGraphExtError, LeaseError, StoreError
from tests.support.agents import Told, Yielded, phase


async def one_model(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Asks a model, and gives back its outcome."""
    asked = runtime.operations.get("m")
    if asked is None:
        request = {"messages": [{"type": "human", "data": {"content": "?"}}]}
        begin = Begin(agent_task_id=runtime.task.agent_task_id, purpose="m", kind="model", name="chat", request=request)
        yield Wait(continuation=phase("a"), condition=operations_ended("m"), changes=(begin,))
    else:
        yield Complete(output=asked.outcome, continuation=phase("completed"))


class Model(FakeListChatModel):
    """Tells that it was called, and answers after a while, or raises."""

    called: Any = None
    seconds: float = 0.0
    error: Any = None
    disable_streaming: bool = True

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        if self.called is not None:
            self.called.set()
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return await super()._agenerate(*args, **kwargs)


def spec(model: FakeListChatModel | None = None, **more: Any) -> dict[str, Any]:
    return {
        "kind": "react",
        "entry": "asker",
        "roles": [{"name": "asker", "role": "react", "model": "chat"}],
        "bindings": [{"role": "asker", "behaviour": "one-model", "version": 1}],
        "models": {"chat": model or Model(responses=["42"])},
        **more,
    }


Engines = Callable[..., AgentGraphEngine]


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    """Makes engines on one file."""
    made: list[AgentGraphEngine] = []

    def make(**options: Any) -> AgentGraphEngine:
        behaviours = Behaviours()
        behaviours.register("one-model", 1, lambda: Told(one_model))
        made.append(AgentGraphEngine(tmp_path / "agents.db", behaviours=behaviours, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def engine(engines: Engines) -> AgentGraphEngine:
    return engines()


# -- life


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_an_engine_closes_what_it_has_opened_and_nothing_else(tmp_path: Path, is_async: bool, shared: bool) -> None:
    database = open_database(tmp_path / "agents.db")
    behaviours = Behaviours()
    behaviours.register("one-model", 1, lambda: Told(one_model))
    engine = AgentGraphEngine(database if shared else tmp_path / "agents.db", behaviours=behaviours)
    run = engine.run(spec(), None)
    if is_async:
        asyncio.run(engine.aclose())
    else:
        engine.close()
    engine.close()
    if shared:
        assert run == engine.get_run(run.agent_run_id)
    else:
        with pytest.raises(StoreError) as closed:
            engine.get_run(run.agent_run_id)
        assert "closed" == closed.value.code
    database.close()


def test_a_worker_whose_engine_is_closed_leaves_its_run_to_others(engines: Engines) -> None:
    engine = engines()
    driving = Driving(engine)
    engine.close()
    assert "closed" == driving.ended().code
    assert AgentStatus.RUNNING is engines().get_run(driving.run.agent_run_id).status


# -- bad input


@pytest.mark.parametrize("seconds", ["1", None, True, 0, 1e-9, -1, float("nan"), float("inf"), 1e300, 90_000])
def test_a_lease_holds_for_a_time(engines: Engines, seconds: Any) -> None:
    with pytest.raises(InvalidArgument):
        engines(lease_ttl_seconds=seconds)


def test_behaviours_are_some(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument):
        AgentGraphEngine(tmp_path / "agents.db", behaviours={})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "factory"), [("", Told), (5, Told), ([], Told), ("\ud800", Told), ("n", None)], ids=repr
)
def test_a_behaviour_has_a_name_and_can_be_made(name: Any, factory: Any) -> None:
    with pytest.raises(InvalidArgument):
        Behaviours().register(name, 1, factory)


@pytest.mark.parametrize("bad", [5, {}, b"x", "\ud800", object()], ids=["int", "dict", "bytes", "half", "object"])
def test_ids_and_reasons_are_text(engine: AgentGraphEngine, bad: Any) -> None:
    run = engine.start(spec(), None)
    acts: list[Callable[[], Any]] = [
        lambda: engine.get_run(bad),
        lambda: engine.operations(bad),
        lambda: engine.drive(bad, spec()),
        lambda: engine.cancel(bad),
        lambda: engine.cancel(run.agent_run_id, reason=bad),
        lambda: engine.runs(before=bad),
    ]
    for act in acts:
        with pytest.raises(InvalidArgument):
            act()
    assert AgentStatus.RUNNING is engine.get_run(run.agent_run_id).status


# -- beside a worker


class Driving:
    """A worker in a thread of its own, whose model has been called."""

    def __init__(self, engine: AgentGraphEngine, *, seconds: float = 30.0) -> None:
        called = threading.Event()
        self.run = engine.start(spec(Model(responses=["42"], seconds=seconds, called=called)), None)
        self.found: list[Any] = []
        self._engine = engine
        self._thread = threading.Thread(target=self._drive)
        self._thread.start()
        assert called.wait(10)

    def _drive(self) -> None:
        try:
            self.found.append(self._engine.drive(self.run.agent_run_id))
        except LangGraphExtError as error:
            self.found.append(error)

    def ended(self) -> Any:
        """Its run, or the error."""
        self._thread.join(10)
        return self.found[0]


def test_e5_e31_a_clock_that_is_ahead_takes_no_tree_from_its_worker(engines: Engines) -> None:
    """Leases go by the database's clock, whoever looks at them."""
    driving = Driving(engines())
    ahead = engines(clock=lambda: time.time_ns() // 1000 + 3_600_000_000)
    assert AgentStatus.RUNNING is ahead.cancel(driving.run.agent_run_id).status
    assert AgentStatus.CANCELLED is driving.ended().status


def test_e11_a_cancel_is_seen_at_once_also_if_a_second_worker_was_refused(
    engine: AgentGraphEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph_ext.engine.driver._LOOK_SECONDS", 30.0)
    driving = Driving(engine)
    with pytest.raises(LeaseError):
        engine.drive(driving.run.agent_run_id)
    engine.cancel(driving.run.agent_run_id)
    assert AgentStatus.CANCELLED is driving.ended().status


def test_e29_a_run_that_has_ended_is_given_out_and_nothing_else(engines: Engines) -> None:
    """By whoever asks, and without its spec; no lease is taken for it."""
    run = engines().run(spec(), None)
    other = engines()
    before = [event.name for event in other.events(run.agent_run_id)]
    assert run == other.drive(run.agent_run_id)
    assert before == [event.name for event in other.events(run.agent_run_id)]
    assert [(1,)] == other.ledger.database.read(lambda tx: [(row["epoch"],) for row in _lease(tx, run.agent_run_id)])


def _lease(tx: Any, agent_run_id: str) -> list[Any]:
    return [tx.one("lease_get", thread_id=f"agent:{agent_run_id}")]


# -- errors by their names


def test_e23_a_call_that_takes_too_long_says_so(engine: AgentGraphEngine) -> None:
    run = engine.run(spec(Model(responses=["42"], seconds=30.0), deadlines={"model_seconds": 0.05}), None)
    assert "deadline_exceeded" == run.output["error"]["code"]
    assert "0.05 s" in run.output["error"]["message"]


def test_e23_a_models_own_timeout_is_its_failure(engine: AgentGraphEngine) -> None:
    """The release's time was not over."""
    run = engine.run(spec(Model(responses=["42"], error=TimeoutError("socket"))), None)
    assert {"error": {"code": "call_failed", "message": "TimeoutError: socket"}} == run.output


# -- Ctrl-C


@pytest.mark.skipif(os.name == "nt", reason="signals")
async def test_e9_ctrl_c_in_a_notebook_stops_the_worker_and_not_the_run(engine: AgentGraphEngine) -> None:
    """It holds the run no longer when the cell has ended: another cell drives it."""
    called = threading.Event()
    model = Model(responses=["42"], seconds=30.0, called=called)
    run = engine.start(spec(model), None)

    def strike() -> None:
        called.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    striking = threading.Thread(target=strike)
    try:
        striking.start()
        with pytest.raises(KeyboardInterrupt):
            engine.drive(run.agent_run_id)
    finally:
        signal.signal(signal.SIGINT, before)
        striking.join()
    assert AgentStatus.RUNNING is engine.get_run(run.agent_run_id).status
    model.seconds = 0.0
    assert AgentStatus.SUCCEEDED is engine.drive(run.agent_run_id).status
