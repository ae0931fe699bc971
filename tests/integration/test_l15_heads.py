"""L15: of several runs at once on one thread one goes on; forks, replays, answers and updates are never refused."""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.saver.heads import Superseded
from tests.support import workers
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.crowd import together
from tests.support.driver import Driver
from tests.support.processes import at_once

TURNS = 5
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def two_nodes(saver: Any, *, wait: Callable[[], None] = lambda: None) -> Any:
    """A graph of two nodes; the first one waits until all that run at once have loaded the thread."""

    def first(state: State) -> dict[str, Any]:
        wait()
        return {"log": ["first"]}

    builder = StateGraph(State).add_node("first", first).add_node("second", lambda state: {"log": ["second"]})
    return builder.add_edge(START, "first").add_edge("first", "second").compile(checkpointer=saver)


def outcome(turn: Callable[[], Any]) -> str:
    """`"won"`, or the code of the refusal."""
    try:
        turn()
    except ConflictError as error:
        return error.code
    return "won"


async def a_outcome(turn: Any) -> str:
    try:
        await turn
    except ConflictError as error:
        return error.code
    return "won"


def branches(saver: Any) -> list[str]:
    """Parents that have two children."""
    parents = [
        found.parent_config["configurable"]["checkpoint_id"] for found in saver.list(CONFIG) if found.parent_config
    ]
    return sorted(parent for parent in set(parents) if parents.count(parent) > 1)


@pytest.mark.parametrize("begun", [False, True])
def test_scenario_02_l15_five_turns_at_once_have_one_winner(
    saver: LedgerSaver, form: str, durability: Any, begun: bool
) -> None:
    """On an empty thread and on one with a history; whoever lost is told, no branch is left, and the thread goes on.

    (A turn may load what another has stored in its middle, and so win over it: that one's input is then in the log.)
    """
    if begun:
        two_nodes(saver).invoke({"log": ["before"]}, CONFIG)
    before = two_nodes(saver).get_state(CONFIG).values.get("log", [])
    if form == "async":

        async def all_turns() -> list[str]:
            app = two_nodes(saver)
            turns = [app.ainvoke({"log": [f"turn {n}"]}, CONFIG, durability=durability) for n in range(TURNS)]
            return await asyncio.gather(*map(a_outcome, turns))

        outcomes = asyncio.run(all_turns())
    else:
        app = two_nodes(saver)
        turns = [
            lambda n=n: outcome(lambda: app.invoke({"log": [f"turn {n}"]}, CONFIG, durability=durability))
            for n in range(TURNS)
        ]
        outcomes = together(*turns)

    won = outcomes.count("won")
    assert 1 <= won  # two that did not meet are two turns, one after the other
    assert {"thread_conflict", "won"} >= set(outcomes)
    log = two_nodes(saver).get_state(CONFIG).values["log"]
    turns = [entry for entry in log if entry.startswith("turn")]
    assert {f"turn {n}" for n, each in enumerate(outcomes) if each == "won"} <= set(turns)
    assert before == log[: len(before)]
    assert len(turns) == len(set(turns))
    assert [] == branches(saver)
    assert ["again", "first", "second"] == two_nodes(saver).invoke({"log": ["again"]}, CONFIG)["log"][-3:]


@pytest.mark.parametrize("begun", [False, True])
def test_scenario_02_l15_turns_that_all_loaded_one_head_have_exactly_one_winner(
    saver: LedgerSaver, durability: Any, begun: bool
) -> None:
    """Every loop loads, then they store one after the other: the first wins, whatever the durability."""
    if begun:
        two_nodes(saver).invoke({"log": ["before"]}, CONFIG)
    app = two_nodes(saver)

    async def all_turns() -> list[str]:
        loaded = asyncio.Event()
        waiting = 0
        aget_tuple = saver.aget_tuple

        async def load(where: Any) -> Any:
            nonlocal waiting
            found = await aget_tuple(where)
            waiting += 1
            if waiting == TURNS:
                loaded.set()
            await loaded.wait()
            return found

        saver.aget_tuple = load  # type: ignore[method-assign]
        turns = [app.ainvoke({"log": [f"turn {n}"]}, CONFIG, durability=durability) for n in range(TURNS)]
        try:
            return await asyncio.gather(*map(a_outcome, turns))
        finally:
            del saver.aget_tuple  # type: ignore[method-assign]

    outcomes = asyncio.run(all_turns())

    assert ["thread_conflict"] * (TURNS - 1) + ["won"] == sorted(outcomes)
    assert [] == branches(saver)


@pytest.mark.parametrize("form_of", ["sync", "async"])
def test_scenario_02_l15_turns_of_two_processes_have_one_winner_each_time(
    tmp_path: Path, durability: str, form_of: str
) -> None:
    """Two processes, five turns each, on one thread: no parent with two children, and whoever lost is told.

    (A turn may begin at the other's first checkpoint, and so end it: the loser's input is then in the log.)
    """
    path = str(tmp_path / "runs.db")
    outcomes = at_once(workers.take_turns, *[(path, f"p{number}", TURNS, durability, form_of) for number in range(2)])

    with LedgerSaver(path) as saver:
        assert [] == branches(saver)
        log = [each for each in two_nodes(saver).get_state(CONFIG).values["log"] if each.startswith("p")]
    won = [turn for each in outcomes for turn, said in each if said == "won"]
    assert {said for each in outcomes for _, said in each} <= {"won", "thread_conflict"}
    assert won
    assert set(won) <= set(log)
    assert len(log) == len(set(log))


def test_l15_langgraphs_own_forks_replays_and_updates_pass(saver: LedgerSaver) -> None:
    """Everything that begins at a checkpoint that had a child already."""
    app = two_nodes(saver)
    app.invoke({"log": ["one"]}, CONFIG)
    app.invoke({"log": ["two"]}, CONFIG)
    history = list(app.get_state_history(CONFIG))
    old = next(found for found in reversed(history) if found.next == ("second",))

    app.invoke(None, old.config)
    app.invoke({"log": ["input on an old one"]}, old.config)
    forked = app.update_state(old.config, {"log": ["edited"]})
    app.invoke(None, forked)
    app.update_state(CONFIG, {"log": ["at the head"]}, as_node="second")
    app.invoke({"log": ["three"]}, CONFIG)

    assert [old.config["configurable"]["checkpoint_id"]] == branches(saver)


def test_l15_an_old_question_may_be_answered_again(saver: LedgerSaver) -> None:
    """The checkpoint that asked has a child: the second answer is a second child, knowingly."""
    builder = StateGraph(State).add_node("ask", lambda state: {"log": [interrupt("sure?")]})
    app = builder.add_edge(START, "ask").add_edge("ask", END).compile(checkpointer=saver)
    app.invoke({"log": []}, CONFIG)
    asked = app.get_state(CONFIG).config
    app.invoke(Command(resume="yes"), CONFIG)

    app.invoke(Command(resume="no"), asked)
    assert [asked["configurable"]["checkpoint_id"]] == branches(saver)


def test_l15_what_is_no_running_loop_passes(store: Driver) -> None:
    """An import, a copy, a test: puts of a program, which knows what it does."""
    for number, parent in ((0, None), (1, 0), (2, 0), (3, None)):
        where = config(id=None if parent is None else cid(parent))
        store.put(where, checkpoint(cid(number)), metadata(number), {})

    assert 4 == len(store.ids(config()))


@pytest.mark.parametrize("second", ["again", "another"])
def test_l15_the_same_checkpoint_again_is_no_second_child(store: Driver, second: str) -> None:
    """A repeated call is the call; another child of a running graph is refused, and nothing of it is stored."""
    running = {"__pregel_runtime": object()}
    store.put(config(**running), checkpoint(cid(0)), metadata(0, source="input"), {})
    store.put(config(id=cid(0), **running), checkpoint(cid(1)), metadata(1), {})
    if second == "again":
        store.put(config(id=cid(0), **running), checkpoint(cid(1)), metadata(1), {})
    else:
        for where in (config(id=cid(0), **running), config(**running)):
            with pytest.raises(ConflictError, match="LedgerSaver") as caught:
                store.put(where, checkpoint(cid(2)), metadata(1), {})
            assert "thread_conflict" == caught.value.code
            assert cid(1) == caught.value.details["other_id"]

    assert [cid(1), cid(0)] == store.ids(config())


def test_l15_subgraphs_and_allowed_concurrency_pass(tmp_path: Path) -> None:
    running = {"__pregel_runtime": object()}
    with LedgerSaver(tmp_path / "a.db") as refusing, LedgerSaver(tmp_path / "b.db", concurrency="allow") as allowing:
        for saver, ns in ((refusing, "sub:1"), (allowing, "")):
            saver.put(config(ns=ns, **running), checkpoint(cid(0)), metadata(0), {})
            for number in (1, 2):
                saver.put(config(ns=ns, id=cid(0), **running), checkpoint(cid(number)), metadata(1), {})
            assert 3 == len(list(saver.list(config(ns=ns))))
    with pytest.raises(InvalidArgument, match="concurrency"):
        LedgerSaver(tmp_path / "c.db", concurrency="maybe")  # type: ignore[arg-type]


def test_l15_what_was_true_at_loading_travels_on_the_id(store: Driver) -> None:
    """A text like any other, but for its class; the newest has no child, and a later child does not change it."""
    store.put(config(), checkpoint(cid(0)), metadata(0), {})
    alone = store.read(cid(0)).config["configurable"]["checkpoint_id"]
    store.put(config(id=cid(0)), checkpoint(cid(1)), metadata(1), {})
    marked = store.read(cid(0)).config["configurable"]["checkpoint_id"]

    class Other(str):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    assert (str, Superseded) == (type(alone), type(marked))
    assert (marked, marked, hash(marked)) == (alone, cid(0), hash(cid(0)))
    assert marked == Other("anything")
    assert marked != cid(1)
    assert json.dumps({"id": marked}) == json.dumps({"id": cid(0)})
