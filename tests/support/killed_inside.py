"""What the processes of the kill matrix of `inside` do, and of the rounds that are killed and gone on with."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from langgraph_ext import AppTx, LedgerSaver, durable
from langgraph_ext.nodes import Frame
from tests.support.apps import State, line, looped
from tests.support.faults import FaultySaver, Points, kill_myself

CONFIG: Any = {"configurable": {"thread_id": "run"}}


def _invoke(app: Any, form: str, given: Any) -> None:
    if form == "sync":
        app.invoke(given, CONFIG, durability="sync")
    else:
        asyncio.run(app.ainvoke(given, CONFIG, durability="sync"))


def _booking(form: str, points: Points | None) -> Any:
    """A node that books inside; from its body on, points count."""

    def inside(tx: AppTx) -> None:
        tx.execute("INSERT INTO booking VALUES ('one')")
        tx.execute("INSERT INTO booking VALUES (?)", ["two"])

    def body(frame: Frame) -> Any:
        if points is not None:
            points.arm()
        frame.inside(inside)
        return {"log": ["booked"]}

    if form == "sync":

        @durable
        def book(state: State, frame: Frame) -> Any:
            return body(frame)

        return book

    @durable
    async def abook(state: State, frame: Frame) -> Any:
        return body(frame)

    return abook


def book(folder: str, form: str, at: int) -> int:
    """Run the graph and die at a point behind the body's beginning; 0: count them."""
    points = Points(kill_myself, at=at, armed=False)
    with FaultySaver(f"{folder}/runs.db", points) as saver:
        saver.setup()
        connection = sqlite3.connect(f"{folder}/runs.db")
        connection.execute("CREATE TABLE IF NOT EXISTS booking (word TEXT NOT NULL)")
        connection.close()
        _invoke(line(saver, a=_booking(form, points)), form, {"log": ["in"]})
    return len(points.passed)


def go_on(folder: str, form: str) -> list[str]:
    """Go on where it died, if there is something to go on with; every finding of the ledger."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = line(saver, a=_booking(form, None))
        if app.get_state(CONFIG).tasks:
            _invoke(app, form, None)
        assert ["in", "booked"] == app.get_state(CONFIG).values["log"]
        return [finding.code for finding in saver.ledger.verify()]


def stored(folder: str) -> tuple[list[str], bool]:
    """The application's rows, and whether an attempt's success is stored; read by a stranger."""
    connection = sqlite3.connect(f"{folder}/runs.db")
    try:
        words = [word for (word,) in connection.execute("SELECT word FROM booking ORDER BY rowid")]
        succeeded = connection.execute("SELECT count(*) FROM attempt WHERE status = 'succeeded'").fetchone()[0]
        return words, succeeded == 1
    finally:
        connection.close()


def rounds(folder: str, form: str, fatal: int) -> list[str]:
    """Three rounds of a plain node around a subgraph that charges; the call of this number kills its process.

    Returns:
        The keys of all calls, in all processes.
    """
    calls = Path(folder) / "calls"

    def charge(key: str) -> str:
        with calls.open("a") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
        if len(calls.read_text().split()) == fatal:
            kill_myself()
        return "paid"

    async def acharge(key: str) -> str:
        return charge(key)

    if form == "sync":

        @durable(effect="write", on_unknown="retry")
        def pay(state: State, frame: Frame) -> Any:
            return {"log": [frame.once("charge", {}, charge, base_key="order-7")]}

    else:

        @durable(effect="write", on_unknown="retry")
        async def pay(state: State, frame: Frame) -> Any:
            return {"log": [await frame.aonce("charge", {}, acharge, base_key="order-7")]}

    inner = StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile()

    def around(state: State) -> Any:
        inner.invoke({"log": []})
        return {"log": ["round"]}

    async def aaround(state: State) -> Any:
        await inner.ainvoke({"log": []})
        return {"log": ["round"]}

    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = looped(around if form == "sync" else aaround, 3).compile(checkpointer=saver)
        _invoke(app, form, {"log": ["in"]} if app.get_state(CONFIG).created_at is None else None)
        assert [] == saver.ledger.verify()
    return calls.read_text().split()
