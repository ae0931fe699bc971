"""Effects beside what LangGraph does of its own accord: retries, handlers, timeouts, caches, replays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, RetryPolicy, TimeoutPolicy

from langgraph_ext import EffectNotDone, Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import RecoveryRequired
from tests.support.apps import CONFIG, State

TRIES = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=3, retry_on=(ConnectionError, EffectNotDone))


class Outside:
    """Counts its calls; each raises what it is told to, until nothing is left."""

    def __init__(self, *raised: Exception) -> None:
        self.calls, self._raised = 0, iter(raised)

    def __call__(self, key: str) -> str:
        self.calls += 1
        for error in self._raised:
            raise error
        return "receipt"


def acting(outside: Outside, **options: Any) -> Any:
    @durable(effect="write", **options)
    def act(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("act", {}, outside)]}

    return act


def attached(saver: LedgerSaver, node: Any, *, cache: Any = None, **options: Any) -> Any:
    builder = StateGraph(State).add_node("act", node, **options).add_edge(START, "act")
    return with_ledger(builder.compile(checkpointer=saver, cache=cache))


def invoke(app: Any, given: Any = ("in",), config: Any = CONFIG) -> Any:
    return app.invoke(given and {"log": list(given)}, config, durability="sync")


def statuses(saver: LedgerSaver) -> tuple[list[str], list[str]]:
    """Of the newest run's attempts and effects."""
    run_id = saver.ledger.runs()[0].run_id
    attempts, effects = saver.ledger.attempts(run_id), saver.ledger.effects(run_id)
    return [str(each.status) for each in attempts], [str(each.status) for each in effects]


def test_l30_a_retry_behind_a_call_that_raised_stops(saver: LedgerSaver) -> None:
    """It may have acted: the policy's next try is refused, and is no try."""
    outside = Outside(ConnectionError("lost"))
    with pytest.raises(RecoveryRequired):
        invoke(attached(saver, acting(outside), retry_policy=TRIES))
    assert (1, (["failed"], ["unknown"])) == (outside.calls, statuses(saver))


def test_l28_a_retry_behind_a_call_that_did_nothing_makes_it_again(saver: LedgerSaver) -> None:
    outside = Outside(EffectNotDone("declined"), EffectNotDone("declined"))
    invoke(attached(saver, acting(outside), retry_policy=TRIES))
    ended = ["failed", "failed", "succeeded"], ["not_happened", "not_happened", "committed"]
    assert (3, ended) == (outside.calls, statuses(saver))


def test_l30_an_error_handler_lets_the_run_go_on_and_the_doubt_stays_on_record(saver: LedgerSaver) -> None:
    def handle(state: State, error: NodeError) -> Any:
        return {"log": ["handled"]}

    outside = Outside(ConnectionError("lost"))
    assert ["in", "handled"] == invoke(attached(saver, acting(outside), error_handler=handle))["log"]
    [left] = saver.ledger.effects(status="unknown")
    assert ("act", True, "succeeded") == (left.name, left.in_doubt, saver.ledger.runs()[0].status)


def test_l20_a_refusal_does_not_reach_an_error_handler(saver: LedgerSaver) -> None:
    def handle(state: State, error: NodeError) -> Any:
        raise AssertionError("a refusal is no failure")

    act = acting(Outside(ConnectionError("lost")))
    with pytest.raises(ConnectionError):
        invoke(attached(saver, act))
    with pytest.raises(RecoveryRequired):
        invoke(attached(saver, act, error_handler=handle), None)


def test_l49_what_a_timeout_cuts_off_is_in_doubt(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    """To the body it is a cancellation; that it timed out is known when LangGraph says so."""

    async def hang(key: str) -> None:
        await asyncio.Event().wait()

    @durable(effect="write")
    async def act(state: State, frame: Frame) -> Any:
        return {"log": [await frame.aonce("act", {}, hang)]}

    async def run() -> None:
        app = attached(saver, act, timeout=TimeoutPolicy(run_timeout=0.4))
        with pytest.raises(NodeTimeoutError):
            await app.ainvoke({"log": []}, CONFIG, durability="sync")
        left = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*left, return_exceptions=True)

    loop.run_until_complete(run())
    assert (["timed_out"], ["unknown"]) == statuses(saver)


def test_a_cached_node_is_not_entered_and_does_nothing_outside(saver: LedgerSaver) -> None:
    """Nor on another thread."""
    outside = Outside()
    app = attached(saver, acting(outside), cache=InMemoryCache(), cache_policy=CachePolicy())
    for thread_id in ("a", "b"):
        assert ["in", "receipt"] == invoke(app, config={"configurable": {"thread_id": thread_id}})["log"]
    assert (1, ([], [])) == (outside.calls, statuses(saver))


def test_l29_a_replay_is_another_run_and_acts_again(saver: LedgerSaver) -> None:
    outside = Outside()
    app = attached(saver, acting(outside))
    invoke(app)
    [before] = [state for state in app.get_state_history(CONFIG) if state.next == ("act",)]
    invoke(app, None, before.config)

    replay, first = saver.ledger.runs()
    assert (2, first.run_id) == (outside.calls, replay.fork_of)
