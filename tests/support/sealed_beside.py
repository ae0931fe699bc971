"""Graphs that run in processes of their own while somebody else changes the key of their database."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import Frame, LedgerSaver, durable, with_ledger
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.ciphers import NEWER, OLDER
from tests.support.faults import Line
from tests.support.sealed import MARK

__all__ = ["expected", "held", "work"]

THREADS = 3


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    last: str


@durable(effect="write")
def pays(state: State, frame: Frame) -> Any:
    number = len(state["log"])
    frame.memo["number"] = number
    receipt = frame.once(f"pay {number}", {"order": MARK}, lambda key: {"receipt": f"{MARK} {number}"})["receipt"]
    return {"log": [f"{receipt} " * 20], "last": receipt}


def build(saver: LedgerSaver) -> Any:
    builder: Any = StateGraph(State).add_node("pays", pays).add_edge(START, "pays")
    return with_ledger(builder.compile(checkpointer=saver))


def work(path: str, name: str, current: str, rounds: int, line: Line) -> None:
    """Run a graph again and again, whose state grows, and put checkpoints and writes beside it."""
    with LedgerSaver(path, encryption=NEWER if current == "2026" else OLDER) as saver:
        app = build(saver)
        for n in range(rounds):
            app.invoke({"log": [f"in {n}"]}, {"configurable": {"thread_id": f"{name} {n % THREADS}"}})
            made = checkpoint(cid(n), {"long": _long(n), "n": f"{MARK}{n}"}, {"long": n + 1, "n": n + 1})
            parent = cid(n - 1) if n else None
            where = saver.put(
                config(f"{name} put", id=parent), made, metadata(n, tag=MARK), {"long": n + 1, "n": n + 1}
            )
            saver.put_writes(where, [("n", f"{MARK} {n}"), ("long", [*_long(n), "more"])], f"task {n}")
            if n == 1:
                line.tell("going")


def _long(n: int) -> list[str]:
    return [f"{MARK} {each} " * 12 for each in range(20 + 3 * n)]


def held(saver: LedgerSaver, name: str) -> Any:
    """What is read of all that."""
    app = build(saver)
    states = [app.get_state({"configurable": {"thread_id": f"{name} {t}"}}).values for t in range(THREADS)]
    puts = [
        (each.checkpoint["channel_values"], each.metadata["tag"], each.pending_writes)  # type: ignore[typeddict-item]
        for each in saver.list(config(f"{name} put"))
    ]
    return states, puts


def expected(rounds: int, name: str) -> Any:
    """What must be."""
    states = []
    for t in range(THREADS):
        log: list[str] = []
        for n in range(t, rounds, THREADS):
            log += [f"in {n}", f"{MARK} {len(log) + 1} " * 20]
        states.append({"log": log, "last": log[-1][: len(log[-1]) // 20 - 1]})
    puts = [
        (
            {"long": _long(n), "n": f"{MARK}{n}"},
            MARK,
            [(f"task {n}", "n", f"{MARK} {n}"), (f"task {n}", "long", [*_long(n), "more"])],
        )
        for n in reversed(range(rounds))
    ]
    return states, puts
