"""Time travel over LedgerSaver is as over InMemorySaver: replay, forks, update_state."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StateUpdate

from tests.support.stories import Teller


class State(TypedDict, total=False):
    """A log with a reducer, a last value, and what no node ever writes."""

    log: Annotated[list[str], operator.add]
    last: str
    unused: str


def line(saver: Any) -> Any:
    """a → b → c, then d or the end, as `last` says."""
    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, lambda state, name=name: {"log": [f"{name}{len(state['log'])}"], "last": name})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.add_conditional_edges("c", lambda state: "d" if state["log"][0] == "long" else END)
    return builder.compile(checkpointer=saver)


def at(teller: Teller, step: int) -> Any:
    """The config of the first checkpoint with this step."""
    return next(item.config for item in reversed(teller.history()) if (item.metadata or {})["step"] == step)


@pytest.fixture
def stored_steps(durability: str) -> list[int]:
    """The steps of a run that are stored one by one; "exit" stores the last one only."""
    return [3] if durability == "exit" else [-1, 0, 1, 2]


def test_s1_a_run_is_replayed_from_every_checkpoint(both: Callable[..., Teller], stored_steps: list[int]) -> None:
    """`invoke(None, old config)` runs on from there, as a fork; the thread's latest is the fork's end."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        for step in stored_steps:
            teller.run(None, at(teller, step))

    told = both(line, story)
    assert ["in", "a1", "b2", "c3"] == told.state().values["log"]


def test_s1_an_old_checkpoint_is_read_as_it_was(both: Callable[..., Teller], stored_steps: list[int]) -> None:
    """`get_state` with a checkpoint id: values, next and tasks of then, not of now."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run({"log": ["again"]})
        for step in stored_steps:
            teller.state(at(teller, step))

    told = both(line, story)
    assert ["in", "a1", "b2", "c3"] == told.state(at(told, 3)).values["log"]


def test_s1_a_fork_goes_its_own_way(both: Callable[..., Teller], stored_steps: list[int]) -> None:
    """update_state at an old checkpoint, then run: the fork has its own end, the first end is still there."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        first = teller.state().config
        forked = teller.update({"log": ["fork"]}, at(teller, stored_steps[-1]))
        teller.run(None, forked)
        teller.state(first)
        teller.run({"log": ["next turn"]})

    told = both(line, story)
    values = [item.values.get("log", []) for item in told.history()]
    assert "fork" in values[0]
    assert ["in", "a1", "b2", "c3"] in values


def test_s1_two_forks_of_one_checkpoint_keep_apart(both: Callable[..., Teller], stored_steps: list[int]) -> None:
    """Both change the same channels from the same versions on: neither sees the other's values."""
    ends: list[list[str]] = []

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        old = at(teller, stored_steps[0])
        forks = [teller.update({"log": [name], "last": name}, old, as_node="a") for name in ("left", "right")]
        for fork in forks:
            ends.append(teller.run(None, fork)["log"])
        for fork in forks:
            teller.state(fork)

    told = both(line, story)
    left, right = ends[:2]
    assert ("right" not in left, "left" not in right) == (True, True)
    assert "right" in told.state().values["log"]


@pytest.mark.parametrize("as_node", [None, "a", "b", "c", START, END, "__copy__", "__input__", "nobody"])
def test_s1_state_is_updated_as_any_node(both: Callable[..., Teller], as_node: str | None) -> None:
    """`as_node` decides what comes next; what LangGraph refuses is refused over both savers."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["long"]})
        values = None if as_node in (END, "__copy__") else {"log": ["by hand"], "last": "hand"}
        teller.update(values, as_node=as_node)
        teller.run(None)

    told = both(line, story)
    assert "long" == told.state().values["log"][0]


def test_s1_a_thread_is_begun_by_an_update(both: Callable[..., Teller]) -> None:
    """update_state on a thread that does not exist makes its first checkpoint; the run goes on from the named node."""

    def story(teller: Teller) -> None:
        teller.update({"log": ["first"], "last": "none"}, as_node="a")
        teller.run(None)

    told = both(line, story)
    assert ["first", "b1", "c2"] == told.state().values["log"]


def test_s1_several_updates_in_one_step(both: Callable[..., Teller]) -> None:
    """`bulk_update_state` applies the supersteps it is given, each with its updates."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        steps = [
            [StateUpdate({"log": ["x"]}, "a")],
            [StateUpdate({"log": ["y"]}, "b"), StateUpdate({"log": ["z"]}, "c")],
        ]
        where = {"configurable": {"thread_id": "t"}}
        teller.call("bulk_update_state", where, steps)
        teller.look()

    told = both(line, story)
    assert ["x", "y", "z"] == told.state().values["log"][-3:]


def test_s1_a_command_updates_and_jumps(both: Callable[..., Teller]) -> None:
    """`Command(update=…, goto=…)` as input on a finished thread."""

    def story(teller: Teller) -> None:
        teller.run({"log": ["in"]})
        teller.run(Command(update={"log": ["jump"]}, goto="c"))

    told = both(line, story)
    assert ["jump", "c5"] == told.state().values["log"][-2:]


def test_s1_history_takes_filter_before_and_limit(both: Callable[..., Teller]) -> None:
    """`get_state_history` passes them to the saver's `list`."""

    def story(teller: Teller) -> None:
        for turn in ("one", "two"):
            teller.run({"log": [turn]})
        whole = teller.history()
        where = {"configurable": {"thread_id": "t"}}
        teller.history(where, limit=2)
        teller.history(where, before=whole[1].config)
        teller.history(where, filter={"source": "input"})
        teller.history(where, filter={"source": "loop", "step": 3}, limit=1)
        teller.history(where, filter={"step": 99})

    told = both(line, story)
    assert 2 <= len(told.history())


def test_s1_a_thread_is_continued_for_many_turns(both: Callable[..., Teller], durability: str) -> None:
    """Twelve turns, with a look at every checkpoint in between."""

    def story(teller: Teller) -> None:
        for turn in range(12):
            teller.call("invoke", {"log": [str(turn)]}, {"configurable": {"thread_id": "t"}}, durability=durability)
        teller.look()

    told = both(line, story)
    assert 12 * 4 == len(told.state().values["log"])
    assert (12 if durability == "exit" else 12 * 5) == len(told.history())
