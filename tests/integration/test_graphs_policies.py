"""Retries, error handlers and cached writes over LedgerSaver behave as over InMemorySaver."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.cache.memory import InMemoryCache
from langgraph.errors import NodeError
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, interrupt

from tests.support.stories import Teller


class State(TypedDict, total=False):
    """A log of what ran."""

    log: Annotated[list[Any], operator.add]
    n: int


class Unlucky:
    """A node that fails the first `failures` times, and counts its calls."""

    def __init__(self, failures: int, error: type[Exception] = ValueError) -> None:
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self, state: State) -> State:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error(f"call {self.calls}")
        return {"log": [f"call {self.calls}"]}


def retrying(saver: Any, failures: int) -> Any:
    """A node that is tried three times, between two that always work."""
    policy = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False, retry_on=ValueError)
    builder = StateGraph(State)
    builder.add_node("before", lambda state: {"log": ["before"]})
    builder.add_node("unlucky", Unlucky(failures), retry_policy=policy)
    builder.add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "before")
    builder.add_edge("before", "unlucky")
    builder.add_edge("unlucky", "after")
    return builder.compile(checkpointer=saver)


def handled(saver: Any, handler: Callable[..., Any], failures: int = 99) -> Any:
    """A node that fails, with a handler of its own, beside one that works, before one that comes after."""
    builder = StateGraph(State)
    builder.add_node("bad", Unlucky(failures), error_handler=handler)
    builder.add_node("good", lambda state: {"log": ["good"]})
    builder.add_node("after", lambda state: {"log": [f"after {len(state['log'])}"]})
    builder.add_edge(START, "bad")
    builder.add_edge(START, "good")
    builder.add_edge("bad", "after")
    return builder.compile(checkpointer=saver)


def report(state: State, error: NodeError) -> State:
    return {"log": [f"{error.node} failed with {type(error.error).__name__}"]}


def ask_what_to_do(state: State, error: NodeError) -> State:
    return {"log": [f"{error.node}: {interrupt('what now?')}"]}


def go_elsewhere(state: State, error: NodeError) -> Command[Any]:
    return Command(update={"log": ["elsewhere"]}, goto="after")


def cached(saver: Any) -> Any:
    """A slow node with a cache, and one without, that both count their calls."""
    slow, plain = Unlucky(0), Unlucky(0)
    builder = StateGraph(State)
    policy = CachePolicy(key_func=lambda state: str(state["n"]))
    builder.add_node("slow", slow, cache_policy=policy)
    builder.add_node("plain", plain)
    builder.add_edge(START, "slow")
    builder.add_edge("slow", "plain")
    graph = builder.compile(checkpointer=saver, cache=InMemoryCache())
    graph.counted = (slow, plain)  # type: ignore[attr-defined]
    return graph


def test_s1_retries_that_succeed(both: Callable[..., Teller]) -> None:
    """Failed attempts write nothing: the history is that of a node that worked at once."""
    state = both(lambda saver: retrying(saver, 2), lambda teller: teller.run({"log": ["in"]})).state()

    assert ["in", "before", "call 3", "after"] == state.values["log"]


def test_s1_retries_that_are_exhausted(both: Callable[..., Teller]) -> None:
    """The last error is told; `invoke(None)` tries again and goes on, the error stays in the history."""

    def story(teller: Teller) -> None:
        assert ("ValueError", "call 3") == teller.run({"log": ["in"]})
        assert ("ValueError", "call 6") == teller.run(None)
        teller.run(None)

    state = both(lambda saver: retrying(saver, 6), story).state()
    assert (["in", "before", "call 7", "after"], ()) == (state.values["log"], state.next)


def test_s1_an_error_handler_takes_over(both: Callable[..., Teller]) -> None:
    """The handler's writes stand for the node's, and the run ends well."""
    state = both(lambda saver: handled(saver, report), lambda teller: teller.run({"log": ["in"]})).state()

    assert {"bad failed with ValueError", "good"} < set(state.values["log"])
    assert () == state.next


def test_s1_an_error_handler_may_ask(both: Callable[..., Teller]) -> None:
    """A handler that interrupts is resumed by the answer; the failed node does not run again."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run(Command(resume="carry on"))

    state = both(lambda saver: handled(saver, ask_what_to_do), story).state()
    assert (True, ()) == ("bad: carry on" in state.values["log"], state.next)


def test_s1_an_error_handler_may_jump(both: Callable[..., Teller]) -> None:
    """A handler that returns a Command goes where it says."""
    state = both(lambda saver: handled(saver, go_elsewhere), lambda teller: teller.run({"log": ["in"]})).state()

    assert "elsewhere" in state.values["log"]


def test_s1_an_error_handler_that_fails(both: Callable[..., Teller]) -> None:
    """Its own error is told, and `invoke(None)` runs only the handler again."""
    handlers: list[Unlucky] = []

    def build(saver: Any) -> Any:
        unlucky = Unlucky(1, KeyError)
        handlers.append(unlucky)

        def handler(state: Any) -> Any:
            time.sleep(0.1)  # until what ran beside it is stored
            return unlucky(state)

        return handled(saver, handler)

    def story(teller: Teller) -> None:
        assert "KeyError" == teller.run({"log": ["in"]})[0]
        teller.run(None)

    state = both(build, story).state()
    assert ("call 2" in state.values["log"], [2, 2]) == (True, [each.calls for each in handlers])


def test_s1_cached_writes(both: Callable[..., Teller]) -> None:
    """A cache hit stores the cached writes without entering the node: history and state are the same."""

    def story(teller: Teller) -> None:
        for n in (1, 1, 2, 1):
            teller.run({"log": [], "n": n})
        assert [2, 4] == [node.calls for node in teller.graph.counted]

    told = both(cached, story)
    assert ["call 1", "call 1", "call 1", "call 2", "call 2", "call 3", "call 1", "call 4"] == told.state().values[
        "log"
    ]


def test_s1_a_failing_node_leaves_its_error_in_the_state(both: Callable[..., Teller]) -> None:
    """`get_state` tells the error of the task that failed, in the words LangGraph's serializer keeps of it."""
    told: list[Any] = []

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        told.extend(task.error for task in teller.state().tasks)

    both(lambda saver: retrying(saver, 99), story)
    assert ["ValueError('call 3')"] * 2 == told


def test_s1_the_recursion_limit_stops_a_run_that_can_go_on(both: Callable[..., Teller]) -> None:
    """The last step is stored when the limit is reached; with a higher one the run goes on."""

    def endless(saver: Any) -> Any:
        builder = StateGraph(State)
        builder.add_node("again", lambda state: {"log": [len(state["log"])]})
        builder.add_edge(START, "again")
        builder.add_conditional_edges("again", lambda state: "again" if len(state["log"]) < 8 else "__end__")
        return builder.compile(checkpointer=saver)

    def story(teller: Teller) -> None:
        where = {"configurable": {"thread_id": "t"}, "recursion_limit": 3}
        assert "GraphRecursionError" == teller.run({"log": []}, where)[0]
        teller.run(None)

    state = both(endless, story).state()
    assert [*range(8)] == state.values["log"]
