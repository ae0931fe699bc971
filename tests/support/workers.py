"""What the tests let other processes do. Each function opens savers of its own, as another program would."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError
from tests.support.build import VERSIONS, checkpoint, cid, config, metadata


def put_one(url: str, number: int, form: str) -> str:
    """Open `url`, which may not exist yet, put one checkpoint with a write, read both back."""
    where = config(f"t{number}")
    made = checkpoint(cid(number), {"n": number}, {"n": VERSIONS["str"](number)})

    async def in_loop() -> Any:
        async with LedgerSaver(url) as saver:
            saved = await saver.aput(where, made, metadata(number), made["channel_versions"])
            await saver.aput_writes(saved, [("n", -number)], "task")
            return await saver.aget_tuple(where)

    if form == "async":
        found = asyncio.run(in_loop())
    else:
        with LedgerSaver(url) as saver:
            saved = saver.put(where, made, metadata(number), made["channel_versions"])
            saver.put_writes(saved, [("n", -number)], "task")
            found = saver.get_tuple(where)
    assert found is not None
    assert [("task", "n", -number)] == found.pending_writes
    return str(found.checkpoint["id"])


def write_a_thread(url: str, thread: str, steps: int, form: str) -> int:
    """A thread of `steps` checkpoints, each with two writes to its predecessor, as a run would store them."""

    async def in_loop() -> None:
        async with LedgerSaver(url) as saver:
            for n in range(steps):
                await saver.aput(config(thread, id=_parent(n)), _step(n), metadata(n), {"n": n})
                await asyncio.gather(
                    *(saver.aput_writes(config(thread, id=cid(n)), [("n", task)], f"task {task}") for task in "ab")
                )

    if form == "async":
        asyncio.run(in_loop())
    else:
        with LedgerSaver(url) as saver:
            for n in range(steps):
                saver.put(config(thread, id=_parent(n)), _step(n), metadata(n), {"n": n})
                for task in "ab":
                    saver.put_writes(config(thread, id=cid(n)), [("n", task)], f"task {task}")
    return steps


def fill_slots(url: str, name: str, calls: int) -> int:
    """Write to slots that other processes write to at the same moment: regular ones, and a special one each time."""
    with LedgerSaver(url) as saver:
        for n in range(calls):
            saver.put_writes(config(id=cid(1)), [("a", f"{name} {n}"), ("__error__", f"{name} {n}")], f"task {n}")
    return calls


def read_all(url: str, thread: str) -> list[tuple[str, Any, int]]:
    """What a saver in this process reads of a thread: id, value and number of writes of each checkpoint."""
    with LedgerSaver(url) as saver:
        return [
            (item.checkpoint["id"], item.checkpoint["channel_values"].get("n"), len(item.pending_writes or []))
            for item in saver.list(config(thread))
        ]


def _step(n: int) -> Any:
    return checkpoint(cid(n), {"n": n, "fixed": "x" * 100}, {"n": n, "fixed": 1})


def _parent(n: int) -> str | None:
    return cid(n - 1) if n else None


def take_turns(url: str, name: str, turns: int, durability: Any, form: str) -> list[tuple[str, str]]:
    """Invoke a graph on one thread again and again, each time with the turn's name; which turns won."""
    said: list[tuple[str, str]] = []

    async def in_loop() -> None:
        async with LedgerSaver(url) as saver:
            app = _adding(saver)
            for n in range(turns):
                turn = f"{name} {n}"
                try:
                    await app.ainvoke({"log": [turn]}, _THREAD, durability=durability)
                    said.append((turn, "won"))
                except ConflictError as error:
                    said.append((turn, error.code))

    if form == "async":
        asyncio.run(in_loop())
        return said
    with LedgerSaver(url) as saver:
        app = _adding(saver)
        for n in range(turns):
            turn = f"{name} {n}"
            try:
                app.invoke({"log": [turn]}, _THREAD, durability=durability)
                said.append((turn, "won"))
            except ConflictError as error:
                said.append((turn, error.code))
    return said


_THREAD: Any = {"configurable": {"thread_id": "t"}}


class _Log(TypedDict):
    log: Annotated[list[str], operator.add]


def _adding(saver: LedgerSaver) -> Any:
    builder = StateGraph(_Log).add_node("a", lambda state: {"log": ["a"]}).add_node("b", lambda state: {"log": ["b"]})
    return builder.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=saver)
