"""S10, S9: of large values a database holds what somebody needs, and no more, behind every prune and deletion."""

from __future__ import annotations

import operator
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.saver import growing
from tests.support.growing import check_strands, pieces, spans_stored, strand_numbers

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")

THREADS = ("t", "copy", "u")


def extend(old: list[str], batches: Sequence[list[str]]) -> list[str]:
    return [*old, *(item for batch in batches for item in batch)]


class Talk(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    delta: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=3)]
    n: int


def text(n: int) -> str:
    return f"{n:05} " * 700


def says(state: Talk) -> Any:
    return {"log": [text(state["n"])], "delta": [text(-state["n"])]}


def asks(state: Talk) -> Any:
    return {"log": [interrupt("go on?")]} if state["n"] % 4 == 3 else {}


def chat(saver: Any) -> Any:
    inner = StateGraph(Talk).add_node("says", says).add_node("asks", asks).add_edge(START, "says")
    builder = StateGraph(Talk).add_node("says", says).add_node("inner", inner.add_edge("says", "asks").compile())
    return builder.add_edge(START, "says").add_edge("says", "inner").compile(checkpointer=saver)


def where(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    """A thread with a branch beside its head, and a question on that; a copy of it, and another one."""
    with LedgerSaver(path) as saver:
        app = chat(saver)
        for thread in ("t", "u"):
            for n in range(4):  # the last one asks
                app.invoke({"n": n}, {**where(thread), "metadata": {"run_id": f"{thread} {n}"}}, durability="sync")
        middle = [*app.get_state_history(where("t"))][6].config
        app.update_state(middle, {"log": ["corrected " + text(99)], "n": 0}, as_node="says")
        app.invoke(None, where("t"), durability="sync")
        saver.copy_thread("t", "copy")
        yield saver


def states(app: Any) -> dict[str, list[Any]]:
    """All that is listed."""
    return {thread: [(each.config, each.values) for each in app.get_state_history(where(thread))] for thread in THREADS}


def live(path: Path) -> dict[int, list[tuple[int, int]]]:
    """By strand, the bytes that values lie in, joined."""
    numbers, found = strand_numbers(path), defaultdict(list)
    for place, spans in spans_stored(path):
        found[numbers[place]] += growing.ranges_in(spans)
    return {strand: joined(places) for strand, places in found.items()}


def joined(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, stop in sorted(places):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def look(path: Path) -> None:
    check_strands(path, trimmed=True)
    assert live(path) == {strand: joined(places) for strand, places in pieces(path).items()}


WAYS: dict[str, Callable[[LedgerSaver], Any]] = {
    "prune": lambda saver: saver.prune(THREADS),
    "prune to two": lambda saver: [saver.prune_thread(thread, keep_last=2) for thread in THREADS],
    "sweep": lambda saver: saver.sweep(keep_last=1),
    "runs": lambda saver: saver.delete_for_runs(["t 0", "t 2", "u 1"]),
    "one of two": lambda saver: saver.delete_thread("t"),
    "with its ledger kept": lambda saver: saver.delete_thread("t", keep_ledger=True),
    "one after the other": lambda saver: [way(saver) for name, way in WAYS.items() if name != "one after the other"],
}


@pytest.mark.parametrize("way", WAYS)
def test_s10_of_large_values_what_is_needed_stays_and_no_byte_more(saver: LedgerSaver, path: Path, way: str) -> None:
    """Of branches, copies, subgraphs and DeltaChannels; all that is listed is what it was."""
    app = chat(saver)
    before = states(app)
    assert pieces(path)
    WAYS[way](saver)
    look(path)

    for thread, listed in states(app).items():
        assert [each for each in before[thread] if each in listed] == listed, thread
    for thread in ("t", "copy", "u"):
        app.invoke({"n": 1}, where(thread), durability="sync")
    assert [] == saver.ledger.verify()
    WAYS[way](saver)
    look(path)


def pages(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        number: int = connection.execute("PRAGMA page_count").fetchone()[0]
        return number


def test_s10_the_file_stops_growing_under_sweeps(path: Path) -> None:
    """Chats go on for ever with values that are large; what is swept away is used again."""
    sizes = []
    with LedgerSaver(path) as saver:
        app = chat(saver)
        for n in range(60):
            thread = where(f"t{n % 3}")
            with suppress(IndexError):
                first = [*app.get_state_history(thread)][-1].config  # a branch at each
                app.update_state(first, {"log": [text(n)], "n": 0}, as_node="says")
            app.invoke({"n": 4 * n}, {**thread, "metadata": {"run_id": f"run {n}"}}, durability="sync")
            if n % 6 == 5:
                saver.sweep(keep_last=1, events_older_than_seconds=0)
                saver.sweep(keep_last=1)
                look(path)
                for each in range(3):  # what a chat has to say anew
                    saver.delete_thread(f"t{each}")
                sizes.append(pages(path))
        assert [] == saver.ledger.verify()

    assert sizes[-1] <= sizes[3] + 2, sizes


def test_s10_a_question_on_a_branch_is_answered_with_all_it_needs(saver: LedgerSaver, path: Path) -> None:
    """It was asked in a subgraph, beside the head, in the middle of a DeltaChannel."""
    app = chat(saver)
    (question,) = [each for each in saver.ledger.interrupts(pending=True) if each.thread_id == "t"]
    head = app.get_state(where("t")).config
    saver.prune(["t"])
    look(path)
    left = [each.config for each in saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})]
    assert (2, head) == (len(left), left[0])
    state = app.get_state(left[1])
    answered = app.invoke(Command(resume={question.interrupt_id: "yes"}), left[1], durability="sync")

    assert state.values["log"] == answered["log"][: len(state.values["log"])]
    assert [text(3), "yes"] == answered["log"][-2:]
    assert [] == saver.ledger.verify()
