"""What the processes of the killed ledger do: run a graph to its end, and read its events behind a stored cursor."""

from __future__ import annotations

import asyncio
import json
import operator
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.errors import StoreError
from tests.support.faults import FaultySaver, Line, Points, kill_myself

CONFIG: Any = {"configurable": {"thread_id": "run"}}

VISITS = sorted(
    [
        ("split", None, "succeeded"),
        *(("worker", place, "succeeded") for place in range(3)),
        ("late", None, "succeeded"),
        ("ask", None, "succeeded"),
        ("end", None, "succeeded"),
    ],
    key=str,
)
"""Node, place and status of each visit of the run."""


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Late(ValueError):
    """What one node raises, once."""


def build(folder: str, form: str) -> Any:
    """split → three workers → late (raises once) → ask → end."""
    tried = Path(folder) / "tried"

    def says(word: str) -> Any:
        return acting(lambda state: {"log": [word]})

    def late(state: State) -> Any:
        if not tried.exists():
            tried.touch()
            raise Late("once")
        return {"log": ["late"]}

    def acting(act: Any) -> Any:
        async def aact(state: State) -> Any:
            return act(state)

        return aact if form == "async" else act

    builder = StateGraph(State)
    for name in ("split", "worker", "end"):
        builder.add_node(name, says(name))
    builder.add_node("late", acting(late)).add_node("ask", acting(lambda state: {"log": [interrupt("sure?")]}))
    builder.add_edge(START, "split").add_edge("worker", "late").add_edge("late", "ask").add_edge("ask", "end")
    builder.add_conditional_edges("split", lambda state: [Send("worker", {"log": []})] * 3, ["worker"])
    return builder.add_edge("end", END)


def start_to_end(folder: str, form: str, durability: str, kind: str, at: int) -> tuple[list[str], list[Any]]:
    """Begin the run and go on until it has ended, or is killed at the given point; the points, and the visits."""
    points = Points(kill_myself, kind=kind, at=at)
    saver = FaultySaver(f"{folder}/runs.db", points)
    _until_it_has_ended(saver, folder, form, durability)
    visits = _visits(saver)
    saver.close()
    return points.passed, visits


def go_on_to_end(folder: str, form: str, durability: str) -> dict[str, Any]:
    """In another process: go on with what the killed one left; then what the ledger says."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        _until_it_has_ended(saver, folder, form, durability)
        return {
            "visits": _visits(saver),
            "statuses": [str(each.status) for each in saver.ledger.runs()],
            "findings": saver.ledger.verify(),
            "events": [_told(each) for each in saver.ledger.events(limit=10_000)],
        }


def _until_it_has_ended(saver: LedgerSaver, folder: str, form: str, durability: str) -> None:
    graph = build(folder, form).compile(checkpointer=saver)
    while saver.get_tuple(CONFIG) is None or (state := graph.get_state(CONFIG)).tasks:
        given: Any = {"log": []} if saver.get_tuple(CONFIG) is None else None
        if given is None and state.interrupts:
            given = Command(resume="yes")
        with suppress(Late):
            if form == "async":
                asyncio.run(graph.ainvoke(given, CONFIG, durability=durability))
            else:
                graph.invoke(given, CONFIG, durability=durability)


def _visits(saver: LedgerSaver) -> list[Any]:
    found = [visit for each in saver.ledger.runs() for visit in saver.ledger.visits(each.run_id)]
    return sorted(((visit.node, visit.place, str(visit.status)) for visit in found), key=str)


# -- a reader


def read_on(folder: str, line: Line) -> None:
    """Read events behind the stored cursor, page by page, until the parent says that no more will come."""
    while not line.has_word(0.002):
        _read_pages(folder)
    _read_pages(folder)


def _read_pages(folder: str) -> None:
    with suppress(StoreError), RunLedger(f"{folder}/runs.db") as ledger:  # it may not be there yet
        while page := ledger.events(after=_cursor(folder), limit=2):
            _keep(folder, [_told(each) for each in page])


def _cursor(folder: str) -> int:
    found = seen(folder)
    return int(found[-1][0]) if found else 0


def _keep(folder: str, page: list[Any]) -> None:
    """A page and its cursor are kept together or not at all, as a reader's own transaction would."""
    Path(folder, "seen.new").write_text(json.dumps(seen(folder) + page))
    os.replace(Path(folder, "seen.new"), Path(folder, "seen"))


def seen(folder: str) -> list[Any]:
    """Everything that the reader was shown, in its order."""
    path = Path(folder, "seen")
    return [tuple(each) for each in json.loads(path.read_text())] if path.exists() else []


def _told(event: Any) -> tuple[Any, ...]:
    return event.cursor, event.name, event.run_id, event.checkpoint_id, event.task_id, event.node_path
