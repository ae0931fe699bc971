"""What is killed while it takes checkpoints and events away: a database with a bit of everything, and each way."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph, add_messages

from langgraph_ext import AgentNode, Frame, LedgerSaver, durable
from langgraph_ext.database import backup, open_database
from langgraph_ext.saver import pruning, sweeping
from langgraph_ext.testing import ScriptedChatModel
from tests.support.apps import asks, line, says
from tests.support.build import whole
from tests.support.compare import facts
from tests.support.faults import Points, faulty, kill_myself
from tests.support.growing import check_strands, pieces

__all__ = ["WAYS", "look", "make", "take_away"]

DAY_US = 86_400_000_000

BEGUN_US = 1_700_000_000_000_000

THREADS = ("talks", "asks", "doubts", "nested", "clerks")

AGENTS = ("agent_run", "agent_task", "agent_operation", "agent_message", "agent_commit", "agent_ticket")
"""Tables that hold agent runs."""

LONG = "so " * 1000
"""Some turns of it are a large value, which lies in a strand."""


def extend(old: list[str], batches: Sequence[list[str]]) -> list[str]:
    return [*old, *(item for batch in batches for item in batch)]


class Talk(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=3)]
    said: str


class Told(TypedDict, total=False):
    log: list[str]
    messages: Annotated[list[AnyMessage], add_messages]


def lost(key: str) -> Any:
    raise TimeoutError


@durable(effect="write")
def pays(state: Any, frame: Frame) -> Any:
    return {"log": [frame.once("pay", {}, lost)]}


def graphs(saver: Any) -> dict[str, Any]:
    """By thread."""
    talk = StateGraph(Talk).add_node("a", lambda state: {"log": [LONG]}).add_node("b", lambda state: {"said": "b"})
    model = ScriptedChatModel(script=["one", "two", "three", "four", "five"])
    clerk = AgentNode(name="clerk", model=model, tools=[])
    asked = (
        StateGraph(Told).add_node("ask", lambda state: {"messages": [HumanMessage(state["log"][0])]}).add_node(clerk)
    )
    return {
        "clerks": asked.add_edge(START, "ask").add_edge("ask", "clerk").compile(checkpointer=saver),
        "talks": talk.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=saver),
        "asks": line(saver, a=says("a"), inner=line(None, ask=asks("sure?"))),
        "doubts": line(saver, a=says("a"), pays=pays),
        "nested": line(saver, inner=line(None, b=says(LONG), c=says("c"))),
    }


def make(folder: str) -> str:
    """A database of these threads, each some turns long; its path."""
    path, now = str(Path(folder, "made.db")), BEGUN_US
    with LedgerSaver(open_database(path, clock_us=lambda: now)) as saver:
        for turn in range(4):
            for thread, app in graphs(saver).items():
                where: Any = {"configurable": {"thread_id": thread}, "metadata": {"run_id": f"{thread} {turn}"}}
                with suppress(TimeoutError):
                    app.invoke({"log": [f"in {turn}"]}, where, durability="sync")
            now += DAY_US
    return path


def _prune(saver: LedgerSaver, folder: str) -> None:
    saver.prune(THREADS)


def _prune_in_slices(saver: LedgerSaver, folder: str) -> None:
    pruning.prune.__kwdefaults__["most"] = 3
    saver.prune(THREADS)


def _sweep(saver: LedgerSaver, folder: str) -> None:
    sweeping.SLICE, sweeping._THREADS, sweeping._ROWS = 5, 2, 20
    saver.sweep(older_than_seconds=1.5 * 86400, events_older_than_seconds=2.5 * 86400)


def _sweep_whole_threads(saver: LedgerSaver, folder: str) -> None:
    sweeping.SLICE, sweeping._THREADS = 6, 2
    saver.sweep(older_than_seconds=0.5, keep_last=0, keep_ledger=True)


def _delete(saver: LedgerSaver, folder: str) -> None:
    for thread in THREADS:
        saver.delete_thread(thread)


def _delete_and_keep(saver: LedgerSaver, folder: str) -> None:
    for thread in THREADS:
        saver.delete_thread(thread, keep_ledger=True)


def _delete_for_runs(saver: LedgerSaver, folder: str) -> None:
    saver.delete_for_runs([f"{thread} {turn}" for thread in THREADS for turn in (0, 2)])


def _copy(saver: LedgerSaver, folder: str) -> None:
    for thread in THREADS:
        with suppress(ValueError):  # it is there
            saver.copy_thread(thread, f"{thread} copied")


WAYS = {
    "prune": _prune,
    "prune in slices": _prune_in_slices,
    "sweep": _sweep,
    "sweep whole threads": _sweep_whole_threads,
    "delete": _delete,
    "delete and keep": _delete_and_keep,
    "delete for runs": _delete_for_runs,
    "copy": _copy,
}


def take_away(folder: str, way: str, kind: str, at: int) -> list[str]:
    """Do it, or be killed at the given point; the points that were passed."""
    points = Points(kill_myself, kind=kind, at=at, armed=False)
    database = open_database(f"{folder}/runs.db", connection=faulty(points), clock_us=lambda: BEGUN_US + 4 * DAY_US)
    with LedgerSaver(database) as saver:
        saver.setup()
        points.arm()
        WAYS[way](saver, folder)
    return points.passed


def look(folder: str) -> dict[str, Any]:
    """What is there: checkpoints with values and writes, states, the ledger; and what SQLite and verify find wrong."""
    with sqlite3.connect(f"{folder}/runs.db") as connection:
        wrong = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        tombstones = connection.execute("SELECT thread_id, newest_id, deletions FROM tombstone ORDER BY 1").fetchall()
        agents = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in AGENTS}
    check_strands(f"{folder}/runs.db", trimmed=True)
    with LedgerSaver(f"{folder}/runs.db") as saver:
        listed = [facts(each) for each in saver.list(None)]
        apps, runs = graphs(saver), saver.ledger.runs(limit=1000)
        return {
            "wrong": [*wrong, *saver.ledger.verify()],
            "tombstones": tombstones,
            "bytes": sum(stop - start for each in pieces(f"{folder}/runs.db").values() for start, stop in each),
            "listed": listed,
            "states": {
                (thread, copy): apps[thread].get_state(whole(thread + copy)).values
                for thread in THREADS
                for copy in ("", " copied")
            },
            "runs": runs,
            "events": [
                (each.run_seq, each.name) for run in runs for each in saver.ledger.events(run.run_id, limit=1000)
            ],
            "visits": [(each.node_path, each.status) for run in runs for each in saver.ledger.visits(run.run_id)],
            "questions": saver.ledger.interrupts(),
            "effects": saver.ledger.effects(),
            "agents": agents,
        }


def copy_while_killed(folder: str, at: int) -> int:
    """Back the database up, or be killed at the given step of it, a page each; how many steps there were."""
    steps = 0

    def step(done: int, of: int) -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            kill_myself()

    backup.back_up(f"{folder}/runs.db", f"{folder}/copy.db", pages=1, on_progress=step)
    return steps
