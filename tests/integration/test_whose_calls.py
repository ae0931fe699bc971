"""L33, L37, L47: in which run a model call counts, where that is not plain."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt

from langgraph_ext import Budget, LedgerSaver, with_ledger
from langgraph_ext.errors import BudgetExhausted
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, fails, line, says, tried
from tests.support.driver import Form
from tests.support.models import dispatches, scripted, used


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, request.param, loop)


@pytest.fixture
def log(tmp_path: Path) -> str:
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)  # it tells of every refusal
    return str(tmp_path / "dispatches")


class Held(LedgerSaver):
    """Stores no checkpoint until a model is called, if it is told so."""

    def __init__(self, url: Any) -> None:
        super().__init__(url)
        self.hold: threading.Event | None = None

    def put(self, *args: Any) -> Any:
        """As the saver's."""
        assert self.hold is None or self.hold.wait(30)
        return super().put(*args)


def test_l37_a_run_that_is_named_again_counts_on(tmp_path: Path, log: str) -> None:
    """Input under the run's own id, as a server sends it again, goes on with it; also before its steps are stored."""
    with Held(tmp_path / "runs.db") as saver:
        first, called = fails(1), threading.Event()
        model = scripted(usage=used(), log=log, during=called.set)
        entered: list[str] = []

        def call(state: State) -> Any:
            entered.append("in")
            return {"log": [str(model.invoke("hello").content)]}

        app = with_ledger(line(saver, first=first, a=call, b=call), budget=Budget(turns=1))
        config: Any = {**CONFIG, "metadata": {"run_id": "r"}}
        tried(app, config=config)
        saver.hold = called
        with pytest.raises(BudgetExhausted):
            app.invoke({"log": []}, config, durability="async")
        with pytest.raises(BudgetExhausted, match="has ended"):
            app.invoke({"log": []}, config, durability="async")

        assert (["in"] * 2, 1, 1, []) == (
            entered,
            dispatches(log),
            saver.ledger.usage("r").calls,
            saver.ledger.verify(),
        )


def test_l37_a_call_before_its_run_is_on_record_is_not_the_last_runs(tmp_path: Path, log: str) -> None:
    """New input takes the place of a run that failed: what it calls first counts in the run that it begins."""
    with Held(tmp_path / "runs.db") as saver:
        late, called = fails(1), threading.Event()
        model = scripted(usage=used(), log=log, during=called.set)

        def call(state: State) -> Any:
            return {"log": [str(model.invoke("hello").content), *late(state)["log"]]}

        app = with_ledger(line(saver, a=call), budget=Budget(turns=1))
        tried(app, durability="async")
        called.clear()
        saver.hold = called
        tried(app, durability="async")

        usages = [(str(run.status), saver.ledger.usage(run.run_id).calls) for run in saver.ledger.runs()]
        assert ([("succeeded", 1), ("cancelled", 1)], []) == (usages, saver.ledger.verify())


class Failing(LedgerSaver):
    """Stores no checkpoint of a thread that has none, the first time."""

    fails = True

    def put(self, *args: Any) -> Any:
        """As the saver's."""
        if self.fails:
            self.fails = False
            raise Boom("put")
        return super().put(*args)


def test_l37_a_call_whose_run_was_never_stored_is_no_other_runs(tmp_path: Path, log: str) -> None:
    """Under exit a run may be lost as a whole; the next one on its thread has a budget that nobody has used."""
    with Failing(tmp_path / "runs.db") as saver:
        model = scripted(usage=used(), log=log)
        calling = line(saver, a=lambda state: {"log": [str(model.invoke("hello").content)]})
        tried(with_ledger(calling), durability="exit")
        tried(with_ledger(line(saver, a=says("a"))), durability="exit")
        (run,) = saver.ledger.runs()

        assert (1, 0, []) == (dispatches(log), saver.ledger.usage(run.run_id).calls, saver.ledger.verify())


def test_l47_what_is_done_again_at_an_old_checkpoint_is_another_runs(acts: Acts, log: str) -> None:
    """Its question is answered anew: the run that branches off has a budget of its own, and the old one's stands."""
    model = scripted(usage=used(), log=log)

    def node(state: State) -> Any:
        return {"log": [str(interrupt("go?")), str(model.invoke("hello").content)]}

    app = with_ledger(line(acts.saver, a=node, b=says("b")), budget=Budget(turns=1))
    acts.run(app)
    old = app.get_state(CONFIG).config
    acts.run(app, Command(resume="1"))
    acts.run(app, Command(resume="2"), config=old)

    acts.lease()  # by now, its end is stored
    usages = [acts.saver.ledger.usage(run.run_id).calls for run in acts.saver.ledger.runs()]
    assert (2, [1, 1], []) == (dispatches(log), usages, acts.saver.ledger.verify())


def test_l33_what_a_node_leaves_running_counts(saver: LedgerSaver, loop: asyncio.AbstractEventLoop, log: str) -> None:
    """A task that nobody waits for calls a model when its node has ended, and is bounded as its run is."""
    model = scripted(usage=used(), log=log)
    entered, ended = asyncio.Event(), asyncio.Event()
    left: list[asyncio.Task[Any]] = []

    async def call() -> None:
        await ended.wait()
        await model.ainvoke("hello")
        await model.ainvoke("hello")

    async def leaves(state: State) -> Any:
        left.append(asyncio.create_task(call()))
        return {"log": ["left"]}

    async def waits(state: State) -> Any:
        ended.set()
        (error,) = await asyncio.gather(*left, return_exceptions=True)
        return {"log": [error.code]}

    async def others(state: State) -> Any:
        entered.set()
        await ended.wait()
        return {"log": []}

    app = with_ledger(line(saver, a=leaves, b=waits), budget=Budget(turns=1))
    other = app.copy({"nodes": with_ledger(line(saver, a=others, b=says("b"))).nodes})
    control, elsewhere = RunControl(), {"configurable": {"thread_id": "elsewhere"}}

    async def story() -> Any:  # of two invocations that one control may stop
        first = asyncio.create_task(other.ainvoke({"log": []}, elsewhere, control=control))
        await entered.wait()
        given = await app.ainvoke({"log": []}, CONFIG, control=control)
        await first
        return given

    given = loop.run_until_complete(story())
    calls = {run.thread_id: saver.ledger.usage(run.run_id).calls for run in saver.ledger.runs()}
    assert ["left", "budget_exhausted"] == given["log"]
    assert ({"t": 1, "elsewhere": 0}, 1) == (calls, dispatches(log))
