"""What the processes of the killed durable nodes do: run a graph whose second node kills the process, or resume it."""

from __future__ import annotations

import asyncio
import operator
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph

from langgraph_ext import LedgerSaver, RunLedger, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.nodes import Frame, durable
from langgraph_ext.saver import host
from tests.support.faults import kill_myself

CONFIG: Any = {"configurable": {"thread_id": "run"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def ran(folder: str) -> list[str]:
    """The bodies that have run, in all processes, in order."""
    return (Path(folder) / "ran").read_text().split()


def say(folder: str, name: str) -> None:
    """Note what happens, outside of the database."""
    with (Path(folder) / "ran").open("a") as file:
        file.write(f"{name}\n")
        file.flush()
        os.fsync(file.fileno())


def die(folder: str) -> None:
    """Kill this process, the first time."""
    killed = Path(folder) / "killed"
    if not killed.exists():
        killed.touch()
        kill_myself()


def pay(folder: str, key: str) -> str:
    """Act outside, and die before anybody is told."""
    say(folder, "paid")
    die(folder)
    return "receipt"


def build(folder: str, form: str, effect: Any) -> Any:
    """a → b, which kills its process the first time → c."""

    def node(name: str) -> Any:
        def act(frame: Frame) -> Any:
            say(folder, f"{name}:{host.inside(get_config())}")
            if name == "b" and effect == "write":
                frame.once("pay", 700, partial(pay, folder))
            elif name == "b":
                die(folder)
            return {"log": [name]}

        if form == "sync":

            @durable(effect=effect if name == "b" else "none")
            def body(state: State, frame: Frame) -> Any:
                return act(frame)

            return body

        @durable(effect=effect if name == "b" else "none")
        async def abody(state: State, frame: Frame) -> Any:
            return act(frame)

        return abody

    builder = StateGraph(State)
    before = START
    for name in "abc":
        builder.add_node(name, node(name)).add_edge(before, name)
        before = name
    return builder.add_edge(before, END)


def run(
    folder: str, form: str, durability: Any, effect: str, resume: bool, attached: bool = False
) -> tuple[str, list[Any]]:
    """Run or resume; returns the error's code (or "done") and node, number and status of every attempt."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = build(folder, form, effect).compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        given: Any = None if resume else {"log": ["in"]}
        code = "done"
        try:
            if form == "sync":
                app.invoke(given, CONFIG, durability=durability)
            else:
                asyncio.run(app.ainvoke(given, CONFIG, durability=durability))
        except LangGraphExtError as error:
            code = error.code
        attempts = saver.ledger.attempts(saver.ledger.runs()[0].run_id)
        assert saver.ledger.verify() == []
    return code, [(each.node, each.number, str(each.status)) for each in attempts]


def authorize(folder: str) -> None:
    """Let the next attempt act, as an operator would: from another process, with the ledger alone."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        (left,) = [each for each in ledger.attempts(ledger.runs()[0].run_id) if each.status == "interrupted"]
        ledger.authorize_recovery(left.attempt_id)
