"""A ReAct run of two rounds of four tools, killed at a commit and gone on with by other processes until it ends.

What was done outside is in a file that outlives every process; who is asked about a call in doubt answers by that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.engine import AgentGraphEngine, AgentSpec, Hooks, InjectedIdempotencyKey, ToolPolicy
from langgraph_ext.engine.records import AgentRunRecord
from langgraph_ext.testing import ScriptedChatModel, call, calls, say
from tests.faults.children import note, noted
from tests.support.faults import Points, faulty, kill_myself
from tests.support.killed_agents import KilledStore

__all__ = ["CALLS", "MOMENTS", "ONCE", "WHOLE", "asked", "drive", "drive_and_be_killed", "opened", "outside", "spec"]

MOMENTS = {"before": ("before", 0), "between": ("between", 7), "inside": ("before", 1), "after": ("after", 1)}
"""Of a commit, with the point of the connection that is one; as of killed_agents.py."""

_ROUNDS = (
    (("pay", "a"), ("look", "b"), ("book", "c"), ("send", "d")),
    (("look", "e"), ("send", "f"), ("pay", "g"), ("book", "h")),
)

CALLS = [f"{name} {order}" for each in _ROUNDS for name, order in each]
"""What the run does outside, in the order of its transcript."""

ONCE = {"pay", "send"}

WHOLE = ["model 1", *CALLS[:4], "model 2", *CALLS[4:], "model 3"]
"""What is asked outside of a run that nobody disturbs."""


def spec(log: str, *, parallel: bool, before_the_end: Callable[[], None] | None = None) -> AgentSpec:
    """The agent: its tools and its model put what they do on a file, and sync it.

    Args:
        log: The file.
        parallel: Whether the tools of a decision run side by side.
        before_the_end: What the last model call does before it answers.
    """

    async def pay(order: str) -> str:
        """Pay an order; once."""
        return await _done("pay", order)

    async def send(order: str) -> str:
        """Send an order; once."""
        return await _done("send", order)

    async def look(order: str) -> str:
        """Look at an order."""
        return await _done("look", order)

    async def book(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> str:
        """Book an order, under a key."""
        return await _done("book", order, key)

    async def _done(name: str, order: str, key: str = "-") -> str:
        note(log, f"{name} {order} {key}")
        await asyncio.sleep(0)
        return result(name, order)

    def seen(_: Any) -> None:
        note(log, "hook - -")

    def says_last() -> None:
        note(log, "model 3 -")
        if before_the_end is not None:
            before_the_end()

    script: list[Any] = [
        calls("Let me see.", *(call(name, {"order": order}) for name, order in each), during=_says(log, number))
        for number, each in enumerate(_ROUNDS, 1)
    ]
    return AgentSpec(
        name="clerk",
        model=ScriptedChatModel(script=[*script, say("done", during=says_last)]),
        system_prompt="Do it.",
        tools=[pay, send, look, book],
        tool_policies={
            "pay": ToolPolicy(effect="once"),
            "send": ToolPolicy(),
            "look": ToolPolicy(effect="repeatable"),
            "book": ToolPolicy(effect="keyed"),
        },
        hooks=Hooks(after_tool=[seen]),
        parallel_tools=parallel,
    )


def _says(log: str, number: int) -> Any:
    return partial(note, log, f"model {number} -")


def result(name: str, order: str) -> str:
    """What a tool answers."""
    return f"{name} {order}: done"


def outside(log: str) -> Counter[str]:
    """How often each tool has acted, and each model was asked."""
    return Counter(" ".join(line.split()[:2]) for line in noted(log) if not line.startswith("hook"))


def asked(log: str, what: str) -> set[str]:
    """The idempotency keys under which something was done."""
    return {line.split()[2] for line in noted(log) if line.startswith(f"{what} ")}


@contextmanager
def opened(path: str, *, connection: type[WriteConnection] = WriteConnection) -> Iterator[AgentGraphEngine]:
    """An engine on a file."""
    database = open_database(path, fsync="normal", connection=connection)
    engine = AgentGraphEngine(database)
    try:
        yield engine
    finally:
        engine.close()
        database.close()


def drive(engine: AgentGraphEngine, log: str, *, parallel: bool) -> AgentRunRecord:
    """Begin the run, or go on with it, as far as it goes; who is asked about a call looks at what was done outside."""
    agent = spec(log, parallel=parallel)
    run_id = engine.start(agent, "Go.", key="run").agent_run_id
    run = engine.drive(run_id, agent)
    while doubts := engine.doubts(run_id):
        for each in doubts:
            order = each.request["args"]["order"]
            happened = bool(outside(log)[f"{each.name} {order}"])
            told = result(each.name, order) if happened else None
            engine.resolve(run_id, each.operation_id, happened=happened, result=told)
        run = engine.drive(run_id, agent)
    return run


def drive_and_be_killed(path: str, parallel: bool, moment: str, kind: str, nth: int) -> None:
    """As `drive`, killed at the nth commit of a kind (`start`: at the start of the run)."""
    passed, number = MOMENTS[moment]
    points = Points(kill_myself, kind=passed, at=number, armed=False)
    with opened(path, connection=faulty(points)) as engine:
        found = engine._store
        store = KilledStore(found.database, clock_us=found.clock_us, ids=found.ids, serde=found.serde)
        store.strikes = []
        store.points, store.moment, store.kind, store.left = points, moment, kind, nth
        engine._store = store
        found.database.open()
        if kind == "start":
            store.strike()
        drive(engine, f"{path}.log", parallel=parallel)
