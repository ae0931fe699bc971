"""Bad input of durable nodes and attached graphs: a clear error, and nothing of it on record."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from langgraph_ext import EffectNotDone, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import InvalidArgument, RecoveryRequired
from langgraph_ext.nodes import Frame
from langgraph_ext.testing import EffectLog
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, line, says
from tests.support.driver import Form


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


class Callable1:
    """An object that is called."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __call__(self, *_: Any) -> Any:
        return self._answer


class AsyncCallable(Callable1):
    """One whose call is awaited."""

    async def __call__(self, *_: Any) -> Any:  # type: ignore[override]
        return self._answer


async def apay(key: str) -> str:
    return "paid"


async def unanswered() -> None:
    """What a sync probe would leave unawaited."""


def yields(key: str) -> Any:
    yield key


async def ayields(key: str) -> Any:
    yield key


def two(key: str, connection: Any) -> str:
    return "paid"


def injecting(fn: Callable[..., Any]) -> Callable[[str], Any]:
    """A decorator that gives the second argument, and looks as if it did not."""

    @functools.wraps(fn)
    def given(key: str) -> Any:
        return fn(key, "connection")

    return given


def acting(acts: Acts, call: Any, **options: Any) -> Any:
    """A graph of one node that acts once."""
    if acts.form == "sync":
        return line(acts.saver, act=acts.node("act", lambda frame: {"log": [frame.once("act", {}, call)]}, **options))

    @durable(**options)
    async def act(state: State, frame: Frame) -> Any:
        return {"log": [await frame.aonce("act", {}, call)]}

    return line(acts.saver, act=act)


def effects(acts: Acts) -> list[str]:
    return [str(effect.status) for effect in acts.saver.ledger.effects()]


@pytest.mark.parametrize(
    "call", [None, "paid", 5, lambda: "paid", two, yields, ayields, functools.partial(two, "k", "c")]
)
def test_l28_a_call_that_cannot_be_made_is_refused_before_its_effect_is_begun(acts: Acts, call: Any) -> None:
    """So nothing is in doubt, and the next attempt, with the mistake mended, acts."""
    with pytest.raises(InvalidArgument, match="effect 'act'"):
        acts.run(acting(acts, call, effect="write"))
    assert [] == effects(acts)

    acts.run(acting(acts, lambda key: "paid", effect="write"), None)
    assert ["committed"] == effects(acts)


@pytest.mark.parametrize("call", [apay, functools.partial(apay), AsyncCallable("paid")])
def test_l28_an_async_call_is_for_aonce(acts: Acts, call: Any) -> None:
    app = acting(acts, call, effect="write")
    if acts.form == "async":
        acts.run(app)
        assert (["committed"], ["in", "paid"]) == (effects(acts), app.get_state(CONFIG).values["log"])
        return
    with pytest.raises(InvalidArgument, match=r"await frame\.aonce"):
        acts.run(app)
    assert [] == effects(acts)


@pytest.mark.parametrize(
    "call", [injecting(two), functools.partial(two, connection=1), Callable1("paid"), lambda *_: "paid"]
)
def test_l28_every_function_that_takes_the_key_is_called(acts: Acts, call: Any) -> None:
    """In async code one that answers at once, too."""
    app = acting(acts, call, effect="write")
    acts.run(app)

    assert (["committed"], ["in", "paid"]) == (effects(acts), app.get_state(CONFIG).values["log"])


def test_l28_a_call_that_answers_something_to_await_is_awaited_or_in_doubt(acts: Acts) -> None:
    """A plain function does not say so before; it may have done anything."""

    def pay(key: str) -> Any:
        return apay(key)

    app = acting(acts, pay, effect="write")
    if acts.form == "async":
        acts.run(app)
        assert ["committed"] == effects(acts)
        return
    with pytest.raises(InvalidArgument, match="something to await"):
        acts.run(app)
    assert ["unknown"] == effects(acts)


def test_l28_a_receipt_that_cannot_be_stored_leaves_its_effect_in_doubt(acts: Acts) -> None:
    with pytest.raises(InvalidArgument, match="receipt"):
        acts.run(acting(acts, lambda key: print, effect="write"))

    assert ["unknown"] == effects(acts)


@pytest.mark.parametrize("answers", [lambda: None, unanswered])
def test_l30_a_probe_that_says_nothing_leaves_the_effect_in_doubt(acts: Acts, tmp_path: Path, answers: Any) -> None:
    """What a lookup gives for "not found" is no receipt: else the payment would never be made. Then it is mended."""
    log, fails, mended = EffectLog(tmp_path / "effects.log"), iter(["once"]), False

    def pay(key: str) -> str:
        for _ in fails:
            raise ConnectionError("lost on the way there")
        log.record(key)
        return "paid"

    def probe(key: str) -> Any:
        if mended:
            raise EffectNotDone
        return answers()

    app = acting(acts, pay, effect="write", on_unknown="probe", probe=probe)
    with pytest.raises(ConnectionError):
        acts.run(app)
    with pytest.raises(RecoveryRequired, match="probe of effect 'act'") as refusal:
        acts.run(app, None)
    (doubtful,) = acts.saver.ledger.effects(status="unknown")
    assert (doubtful.effect_id, 0) == (refusal.value.details["effect_id"], len(log.keys()))

    mended = True
    acts.run(app, None)
    assert (["not_happened", "committed"], 1, []) == (effects(acts), len(log.keys()), acts.saver.ledger.verify())


@pytest.mark.parametrize("fn", [lambda: None, apay, yields, AsyncCallable(None), None])
def test_l53_what_cannot_be_called_inside_is_refused_at_once(acts: Acts, fn: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^inside: "):
        acts.run(line(acts.saver, a=acts.node("a", lambda frame: frame.inside(fn) or {"log": []})))


@pytest.mark.parametrize(
    "options",
    [
        {"kind": 5},
        {"kind": ""},
        {"kind": "\ud800"},
        {"effect": "write", "on_unknown": "probe", "probe": "x"},
        {"effect": "write", "on_unknown": "probe", "probe": lambda: None},
        {"effect": "write", "on_unknown": "probe", "probe": yields},
        {"on_unknown": "retry"},
        {"effect": "opaque", "on_unknown": "retry"},
        {"effect": "opaque", "on_unknown": "probe", "probe": str},
    ],
)
def test_durable_refuses_what_could_not_be_kept_or_called(options: Any) -> None:
    with pytest.raises(InvalidArgument, match="durable: "):
        durable(**options)


@pytest.mark.parametrize("fn", ["x", dict, State, yields, ayields, functools.partial(yields, "k")])
def test_durable_refuses_what_a_call_does_not_run(fn: Any) -> None:
    with pytest.raises(InvalidArgument, match="durable: "):
        durable(fn)


def test_durable_refuses_a_probe_that_nobody_would_await() -> None:
    options: Any = {"effect": "write", "on_unknown": "probe", "probe": apay}
    assert asyncio.iscoroutinefunction(durable(**options)(apay))
    with pytest.raises(InvalidArgument, match="its probe async"):
        durable(**options)(says("x"))


def test_durable_takes_an_object_that_is_called(acts: Acts) -> None:
    """Also one whose call is awaited."""
    node = durable((Callable1 if acts.form == "sync" else AsyncCallable)({"log": ["x"]}))
    app = line(acts.saver, node=node)
    acts.run(app)

    assert (["in", "x"], [("node", 1, "succeeded")]) == (app.get_state(CONFIG).values["log"], acts.attempts())


@pytest.mark.parametrize("name", ["lease_ttl_seconds", "wait_seconds"])
@pytest.mark.parametrize("seconds", ["x", None, True, math.nan, math.inf, -1])
def test_with_ledger_refuses_a_time_that_is_none(saver: LedgerSaver, name: str, seconds: Any) -> None:
    options: Any = {name: seconds}
    with pytest.raises(InvalidArgument, match=name):
        with_ledger(line(saver, a=says("a")), **options)


@pytest.mark.parametrize("graph", [None, StateGraph(State).add_node("a", says("a")).add_edge(START, "a")])
def test_with_ledger_refuses_what_is_not_compiled(graph: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"builder\.compile"):
        with_ledger(graph)


def test_l50_a_run_key_that_no_database_holds_is_refused(acts: Acts) -> None:
    app = with_ledger(line(acts.saver, a=acts.node("a")))
    with pytest.raises(InvalidArgument, match="run_key"):
        acts.run(app, config={"configurable": {"thread_id": "t", "run_key": "\ud800"}})

    assert ([], []) == (acts.ran, acts.saver.ledger.runs())
