"""What the fault tests let other processes do, and be killed at."""

from __future__ import annotations

import asyncio
import operator
import os
import random
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from langgraph_ext import LedgerSaver
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.faults import FaultySaver, Line, Points, kill_myself

# -- a run of twelve nodes: four one by one, four at once, four one by one

THREAD: Any = {"configurable": {"thread_id": "run"}}
NODES = [f"n{number}" for number in range(12)]
LONG = "".join(f"{number} and " for number in range(900))
"""What a text begins with that is large from the start."""

GIVEN = {"done": [], "total": 0, "text": LONG}

RUN = {"done": NODES, "total": 66, "text": LONG + "".join(f"then {name}, " * 9 for name in NODES)}
"""How the run ends when nobody disturbs it."""


class State(TypedDict):
    """Which nodes were applied, in LangGraph's order, and two values that each changes: a small and a large one."""

    done: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    text: Annotated[str, operator.add]


def note(path: str, text: str) -> None:
    """Append a line to a file and sync it: a fact that outlives the process."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{text}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def noted(path: str) -> list[str]:
    """The lines of such a file; a last one that was cut off by a kill is none."""
    return Path(path).read_text().split("\n")[:-1] if Path(path).exists() else []


def build(log: str, form: str) -> Any:
    """The graph; each node notes that it ran, which is its effect."""

    def node(name: str) -> Any:
        def act(_state: State) -> Any:
            note(log, name)
            return {"done": [name], "total": int(name[1:]), "text": f"then {name}, " * 9}

        async def aact(state: State) -> Any:
            return act(state)

        return aact if form == "async" else act

    builder = StateGraph(State)
    for name in NODES:
        builder.add_node(name, node(name))
    for before, after in zip([START, *NODES[:4]], NODES[:4], strict=False):
        builder.add_edge(before, after)
    for name in NODES[4:8]:
        builder.add_edge(NODES[3], name)
    builder.add_edge(NODES[4:8], NODES[8])
    for before, after in zip(NODES[8:], [*NODES[9:], END], strict=False):
        builder.add_edge(before, after)
    return builder


class Acknowledging(FaultySaver):
    """Notes each put that has returned."""

    acks = ""

    def put(self, *args: Any) -> Any:
        saved = super().put(*args)
        note(self.acks, saved["configurable"]["checkpoint_id"])
        return saved

    async def aput(self, *args: Any) -> Any:
        saved = await super().aput(*args)
        note(self.acks, saved["configurable"]["checkpoint_id"])
        return saved


def start(folder: str, form: str, durability: str, kind: str, at: int) -> tuple[Any, list[str]]:
    """Begin the run, and be killed at the given point; the state and the points passed if there was none."""
    points = Points(kill_myself, kind=kind, at=at)
    saver = Acknowledging(f"{folder}/runs.db", points)
    saver.acks = f"{folder}/acks"
    state = invoke(saver, f"{folder}/log", form, GIVEN, durability)
    saver.close()
    return state, points.passed


def resume(folder: str, form: str, durability: str) -> dict[str, Any]:
    """In another process: what the killed one left, and what becomes of the run when it goes on."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        head = saver.get_tuple(THREAD)
        stored = [item.checkpoint["id"] for item in saver.list(THREAD)]
        committed = _committed(head) if head else []
        given = None if head else GIVEN
        state = invoke(saver, f"{folder}/log", form, given, durability)
        after = [item.checkpoint["id"] for item in saver.list(THREAD)]
    return {"state": state, "stored": stored, "committed": committed, "after": after}


def _committed(head: Any) -> list[str]:
    """The nodes whose result is in the head, or stored beside it as a write."""
    waiting = [name for _, channel, value in head.pending_writes if channel == "done" for name in value]
    return [*head.checkpoint["channel_values"].get("done", []), *waiting]


def invoke(saver: LedgerSaver, log: str, form: str, given: Any, durability: Any) -> Any:
    graph = build(log, form).compile(checkpointer=saver)
    if form == "async":
        return asyncio.run(graph.ainvoke(given, THREAD, durability=durability))
    return graph.invoke(given, THREAD, durability=durability)


# -- writers that are killed at any moment

WRITERS = 6


def write_until_killed(folder: str, seed: int) -> None:
    """Four threads and two loops put checkpoints and writes for ever, and note each call that has returned."""
    saver = LedgerSaver(f"{folder}/runs.db")
    saver.setup()
    work: list[Callable[[], Any]] = [lambda n=n: _write(saver, folder, n, seed) for n in range(4)]
    work += [lambda n=n: asyncio.run(_awrite(saver, folder, n, seed)) for n in (4, 5)]
    threads = [threading.Thread(target=job, daemon=True) for job in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write(saver: LedgerSaver, folder: str, writer: int, seed: int) -> None:
    acks, chance = f"{folder}/acks-{writer}", random.Random(seed * 100 + writer)
    for n in range(1_000_000):
        saver.put(*_put(writer, n, chance))
        note(acks, f"put {n}")
        saver.put_writes(config(f"w{writer}", id=cid(n)), _writes(n), f"task {n}")
        note(acks, f"writes {n}")


async def _awrite(saver: LedgerSaver, folder: str, writer: int, seed: int) -> None:
    acks, chance = f"{folder}/acks-{writer}", random.Random(seed * 100 + writer)
    for n in range(1_000_000):

        async def put(n: int = n) -> None:
            await saver.aput(*_put(writer, n, chance))
            note(acks, f"put {n}")

        async def write(n: int = n) -> None:
            await saver.aput_writes(config(f"w{writer}", id=cid(n)), _writes(n), f"task {n}")
            note(acks, f"writes {n}")

        await asyncio.gather(put(), write())


def _put(writer: int, n: int, chance: random.Random) -> tuple[Any, Any, Any, Any]:
    values = {"n": n, "text": "x" * chance.randrange(3000)}
    parent = cid(n - 1) if n else None
    return (
        config(f"w{writer}", id=parent),
        checkpoint(cid(n), values, {"n": n, "text": n}),
        metadata(n),
        {"n": n, "text": n},
    )


def _writes(n: int) -> Sequence[tuple[str, Any]]:
    return [("a", n), ("b", n), ("__interrupt__", n)]


def read_acknowledged(folder: str) -> dict[str, list[str]]:
    """In another process: which acknowledged calls are not there, and which calls are there by halves."""
    lost, halves = [], []
    with LedgerSaver(f"{folder}/runs.db") as saver:
        for writer in range(WRITERS):
            found = {item.checkpoint["id"]: item for item in saver.list(config(f"w{writer}"))}
            for line in noted(f"{folder}/acks-{writer}"):
                what, _, number = line.partition(" ")
                item = found.get(cid(int(number)))
                if item is None:
                    lost += [f"{writer}: {line}"] if what == "put" else []
                elif what == "writes" and not item.pending_writes:
                    lost.append(f"{writer}: {line}")
            halves += [key for key, item in found.items() if len(item.pending_writes or []) not in (0, 3)]
    return {"lost": lost, "halves": halves}


def start_or_go_on(folder: str, commits: int) -> None:
    """Go on with the run, or begin it, and be killed before the given commit of this process."""
    points = Points(kill_myself, kind="after", at=commits, armed=False)
    saver = FaultySaver(f"{folder}/runs.db", points)
    saver.setup()
    points.arm()
    given = None if saver.get_tuple(THREAD) else GIVEN
    invoke(saver, f"{folder}/log", "sync", given, "sync")
    saver.close()


def hold_lock(path: str, seconds: float, line: Line) -> None:
    """Hold a file's write lock until the parent says so, or for so many seconds."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    line.tell("held")
    line.has_word(seconds)
    connection.execute("ROLLBACK")
    connection.close()
