"""Scenario 12: a long thread with a DeltaChannel, a question and an effect in doubt, whatever is taken away of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, interrupt

from langgraph_ext import Frame, LedgerSaver, durable
from langgraph_ext.database import open_database
from tests.support.build import config, whole
from tests.support.faults import full

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")

TURNS = 200


def extend(old: list[str], batches: Sequence[list[str]]) -> list[str]:
    return [*old, *(item for batch in batches for item in batch)]


class State(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=50)]
    n: int


def lost(key: str) -> Any:
    raise TimeoutError


@durable(effect="write")
def pays(state: State, frame: Frame) -> Any:
    """In doubt in one turn."""
    call = lost if state["n"] == TURNS // 2 else (lambda key: f"receipt {state['n']}")
    return {"log": [frame.once("pay", {"turn": state["n"]}, call)]}


def reply(state: State) -> State:
    """Asks in the last turn."""
    answer = interrupt("go on?") if state["n"] == TURNS else "fine"
    return {"log": [f"reply {state['n']} {answer}"]}


def chat(saver: Any) -> Any:
    builder = StateGraph(State).add_node("pays", pays).add_node("reply", reply)
    return builder.add_edge(START, "pays").add_edge("pays", "reply").compile(checkpointer=saver)


def turn(app: Any, n: int, thread: str = "t", said: Any = None) -> None:
    where: Any = {"configurable": {"thread_id": thread}, "metadata": {"run_id": f"{thread} {n}"}}
    try:
        app.invoke({"log": said or [f"in {n}"], "n": n}, where, durability="sync")
    except TimeoutError:
        assert n == TURNS // 2


def pages(path: Path) -> tuple[int, int]:
    """How many the file has, and how many of them are in use."""
    with sqlite3.connect(path) as connection:
        count, free = (connection.execute(f"PRAGMA {each}").fetchone()[0] for each in ("page_count", "freelist_count"))
    return count, count - free


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.mark.timeout(120)
def test_scenario_12_s10_a_long_thread_is_what_it_was_through_all_of_it(path: Path) -> None:
    """Pruned, rid of runs, copied: the same state, the question is answered, the effect is known, and resolved."""
    with LedgerSaver(open_database(path, fsync="normal")) as saver:
        app = chat(saver)
        for n in range(1, TURNS + 1):
            turn(app, n)
        state, effects = app.get_state(whole()), saver.ledger.effects(status="unknown")
        questions = saver.ledger.interrupts(pending=True)
        assert (3 * TURNS - 3, 1, 1) == (len(state.values["log"]), len(effects), len(questions))
        before = pages(path)

        for take_away in (
            lambda: saver.prune(["t"]),
            lambda: saver.delete_for_runs([f"t {n}" for n in range(1, TURNS) if n != TURNS // 2]),
            lambda: saver.prune(["t"]),
            lambda: saver.sweep(keep_last=1, older_than_seconds=0, events_older_than_seconds=0),
        ):
            take_away()
            assert state.values == app.get_state(whole()).values
            assert state.interrupts == app.get_state(whole()).interrupts
            assert (effects, questions) == (
                saver.ledger.effects(status="unknown"),
                saver.ledger.interrupts(pending=True),
            )
            assert [] == saver.ledger.verify()
        after = pages(path)
        assert (after[0] <= before[0] + 2, after[1] < before[1] / 3) == (True, True), (before, after)

        saver.copy_thread("t", "copy")
        assert state.values == app.get_state(whole("copy")).values
        for thread in ("t", "copy"):
            answered = app.invoke(Command(resume="yes"), config(thread), durability="sync")
            assert [*state.values["log"], f"reply {TURNS} yes"] == answered["log"]
        resolved = saver.ledger.resolve_effect(effects[0].effect_id, happened=False)
        assert "not_happened" == resolved.status
        turn(app, TURNS + 1)
        assert [] == saver.ledger.verify()


@pytest.mark.timeout(120)
def test_scenario_12_the_file_stops_growing(path: Path) -> None:
    """Turn after turn, of a state that does not grow: swept now and then, the file has one size."""
    rounds, sizes = (40 if full() else 6), []
    with LedgerSaver(open_database(path, fsync="normal")) as saver:
        app = chat(saver)
        for n in range(rounds * 20):
            turn(app, n * TURNS * 2 + 1, f"t{n % 5}", Overwrite(["in"]))
            if n % 20 == 19:
                for thread in range(5):
                    saver.delete_for_runs([run.run_id for run in saver.ledger.runs(thread_id=f"t{thread}")][2:])
                saver.sweep(keep_last=1, events_older_than_seconds=0)
                sizes.append(pages(path)[0])
        assert [] == saver.ledger.verify()

    assert sizes[-1] <= sizes[len(sizes) // 2] + 2, sizes
