"""Durable nodes whose results LangGraph takes from a cache: a visit without an attempt (rule L9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy

from langgraph_ext import LedgerSaver
from langgraph_ext.nodes import Frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, says
from tests.support.driver import Form

OTHER: Any = {"configurable": {"thread_id": "other"}}


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, request.param, loop)


def cached(acts: Acts, body: Any = None, **options: Any) -> Any:
    """A cached durable node, and one behind it."""
    node = acts.node("a", body, **options)
    builder = StateGraph(State).add_node("a", node, cache_policy=CachePolicy()).add_node("b", says("b"))
    return builder.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=acts.saver, cache=InMemoryCache())


def _once(frame: Frame) -> Any:
    return {"log": [frame.once("act", {}, lambda key: "done")]}


@pytest.mark.parametrize(("effect", "body", "word"), [("none", None, "a"), ("write", _once, "done")])
def test_l9_a_cached_result_is_a_visit_without_an_attempt(acts: Acts, effect: str, body: Any, word: str) -> None:
    """The body does not run, and does not act; what it had found is in the state."""
    app = cached(acts, body, effect=effect)
    acts.run(app)
    acts.run(app, config=OTHER)

    assert ([("a", 1, "succeeded")], ["a"]) == (acts.attempts(), acts.ran)
    assert ["in", word, "b"] == app.get_state(OTHER).values["log"]
    for run in acts.saver.ledger.runs():
        assert [("a", "succeeded"), ("b", "succeeded")] == [
            (visit.node_path, str(visit.status)) for visit in acts.saver.ledger.visits(run.run_id)
        ]
    assert (int(effect == "write"), []) == (len(acts.saver.ledger.effects()), acts.saver.ledger.verify())


def test_l9_a_failed_attempt_may_be_followed_by_a_cached_result(acts: Acts) -> None:
    """Another thread has found it meanwhile. The attempt has failed and stays so; its visit succeeds."""
    fail = iter([True])

    def body(frame: Frame) -> Any:
        if next(fail, False):
            raise Boom("once")
        return {"log": ["a"]}

    app = cached(acts, body)
    acts.run(app)
    acts.run(app, config=OTHER)
    acts.run(app, None)

    assert ["in", "a", "b"] == app.get_state(CONFIG).values["log"]
    assert ([("a", 1, "failed"), ("a", 1, "succeeded")], ["a", "a"]) == (acts.attempts(), acts.ran)
    assert [] == acts.saver.ledger.verify()


def test_l9_a_cached_task_is_a_visit_without_an_attempt(acts: Acts) -> None:
    """Of the functional API, too."""
    work = task(name="work", cache_policy=CachePolicy())(acts.node("work", lambda frame: "worked"))
    if acts.form == "sync":

        @entrypoint(checkpointer=acts.saver, cache=InMemoryCache())
        def app(given: Any) -> Any:
            return work(given).result()
    else:

        @entrypoint(checkpointer=acts.saver, cache=InMemoryCache())
        async def app(given: Any) -> Any:
            return await work(given)

    answers = [acts.run(app, {"n": 1}), acts.run(app, {"n": 1}, config=OTHER)]

    assert ["worked", "worked"] == answers
    assert (["work"], ["succeeded"]) == (acts.ran, [status for _, _, status in acts.attempts()])
    assert [] == acts.saver.ledger.verify()
