"""Graphs that run in processes of their own while somebody else changes the key of their database."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

from langgraph_ext import AgentNode, Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import graph_of
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


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what}, found"


def chat(saver: LedgerSaver, rounds: int) -> Any:
    """An agent that calls a tool in each turn."""
    script = [step for n in range(rounds) for step in (call("look", {"what": f"{MARK} {n}"}), f"{MARK} done {n}")]
    node = AgentNode(name="support", model=ScriptedChatModel(script=script), tools=[look], system_prompt=MARK)
    return with_ledger(graph_of(node).compile(checkpointer=saver))


def work(path: str, name: str, current: str, rounds: int, line: Line) -> None:
    """Run a graph whose state grows, and an agent, again and again; and put checkpoints and writes beside them."""
    with LedgerSaver(path, encryption=NEWER if current == "2026" else OLDER) as saver:
        app, agent = build(saver), chat(saver, rounds)
        for n in range(rounds):
            agent.invoke({"messages": [("user", f"{MARK} {n}")]}, {"configurable": {"thread_id": f"{name} chat"}})
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
    said = chat(saver, 1).get_state({"configurable": {"thread_id": f"{name} chat"}}).values["messages"]
    return states, puts, [each.text for each in said]


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
    said = [text for n in range(rounds) for text in (f"{MARK} {n}", "", f"{MARK} {n}, found", f"{MARK} done {n}")]
    return states, puts, said
