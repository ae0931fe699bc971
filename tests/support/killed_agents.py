"""Stories of agent runs that are killed at a commit, and gone on with by another process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from langgraph_ext.engine import conditions
from langgraph_ext.engine.commits import Committed, RuntimeCommit
from langgraph_ext.engine.granting import ConsumeTicket
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import Complete, Progress, Runtime, Wait
from langgraph_ext.engine.program import Allowed, Answered, Denied
from langgraph_ext.engine.rows import Operation, Tree
from tests.faults.children import note
from tests.support.agents import Stub, Told, Yielded, phase
from tests.support.bench import Bench, StrikingStore
from tests.support.faults import Points, faulty, kill_myself

__all__ = ["MOMENTS", "STORIES", "commits_of", "drive", "drive_and_be_killed", "kind_of"]

MOMENTS = ("before", "between", "inside", "after")
"""Before the commit is handed in; between two of its statements; with all of them done and not committed; committed,
and nobody told yet."""

STORIES: Mapping[str, Mapping[str, Any]] = {
    "rounds": {"behaviour": "rounds", "input": {"rounds": 2}},
    "tool": {"behaviour": "tool"},
    "stopped": {"behaviour": "rounds", "input": {"rounds": 2}},
    "denied": {"behaviour": "tool"},
    "exhausted": {"behaviour": "two", "loop_limit": 1},
}


async def _one_tool(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """One call of a tool."""
    known = runtime.operations.get("tool")
    if known is None or not known.state.ended:
        task_id = runtime.task.agent_task_id
        named = {"purpose": "tool", "kind": "tool", "name": "t", "policy": "repeatable"}
        begin = Begin(agent_task_id=task_id, request={}, **named)
        yield Wait(continuation=phase("a"), condition=conditions.operations_ended("tool"), changes=(begin,))
    yield Complete(output=runtime.operations["tool"].outcome, continuation=phase("completed"))


async def _two_at_once(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Two calls of the model, of which the second waits for a ticket and never gets one."""
    now = (continuation or phase("begin"))["phase"]
    task_id = runtime.task.agent_task_id
    if now == "begin":
        begins = [Begin(agent_task_id=task_id, purpose=p, kind="model", name="m", request={}) for p in ("m", "n")]
        yield Progress(continuation=phase("wait"), changes=tuple(begins))
    if now in ("begin", "wait") and not runtime.operations["m"].state.ended:
        yield Wait(continuation=phase("wait"), condition=conditions.operations_ended("m"))
    if now != "accepted":
        consume = ConsumeTicket(operation_id=runtime.operations["m"].operation_id)
        yield Progress(continuation=phase("accepted"), changes=(consume,))
    yield Wait(continuation=phase("accepted"), condition=conditions.operations_ended("n"))


class Noting(Stub):
    """A program whose calls and hooks are noted in a file that outlives the process; the first call fails once."""

    def __init__(self, log: str, story: str, bench: Bench) -> None:
        behaviours = {"tool": Told(_one_tool), "two": Told(_two_at_once)}
        super().__init__(answer=self._answered, behaviours=behaviours, pause=0.0, deny=story == "denied")
        self.log, self.story, self.bench = log, story, bench
        self.first: asyncio.Event | None = None
        self.work: Any = None

    async def before(self, operation: Operation) -> Allowed | Denied:
        note(self.log, f"before {operation.purpose}")
        if self.story == "exhausted" and operation.purpose == "n":
            await self.has_dispatched_first()
        return await super().before(operation)

    async def after(self, operation: Operation) -> Answered:
        note(self.log, f"after {operation.purpose}")
        return await super().after(operation)

    async def has_dispatched_first(self) -> None:
        """The first of two asks first."""
        while not self.bench.all("SELECT 1 FROM agent_ticket"):
            await asyncio.sleep(0)

    async def _answered(self, operation: Operation, number: int) -> Any:
        note(self.log, f"call {operation.purpose}")
        if self.story == "stopped":
            self.bench.stop(self.work._root_id)
            self.work.look()
            await asyncio.Event().wait()
        if number == 1 and operation.purpose in ("business-model:1", "tool"):
            raise TimeoutError("slow")
        return {"value": operation.purpose}


class KilledStore(StrikingStore):
    """A store whose process is killed at the nth commit of a kind, at a moment of it."""

    points: Points
    moment = ""
    kind = ""
    left = 0

    async def commit(self, wanted: RuntimeCommit, *rest: Any, **more: Any) -> Committed:
        if kind_of(wanted.key) == self.kind:
            self.left -= 1
            if self.left == 0:
                self.strike()
        return await super().commit(wanted, *rest, **more)

    def strike(self) -> None:
        """Arm what kills, or kill."""
        if self.moment == "before":
            kill_myself()
        self.points.arm()


_POINTS = {"between": ("between", 7), "inside": ("before", 1), "after": ("after", 1)}


def drive(path: str, story: str, bench: Bench) -> Tree:
    """Begin the story, or go on with it, to its end."""
    told: dict[str, Any] = {"input": None, **STORIES[story]}
    root = bench.start(told.pop("behaviour"), told.pop("input"), key=story, **told)
    program = Noting(f"{path}.log", story, bench)
    program.work = bench.work(root, program)
    return asyncio.run(program.work.drive())


def drive_and_be_killed(path: str, story: str, moment: str, kind: str, nth: int) -> None:
    """As `drive`, killed at the nth commit of a kind (`start`: at the start of the run)."""
    passed, number = _POINTS.get(moment, ("before", 0))
    points = Points(kill_myself, kind=passed, at=number, armed=False)
    bench = Bench(path, store=KilledStore, connection=faulty(points))
    store = bench.store
    assert isinstance(store, KilledStore)
    store.points, store.moment, store.kind, store.left = points, moment, kind, nth
    bench.database.open()
    if kind == "start":
        store.strike()
    drive(path, story, bench)
    bench.close()


def kind_of(key: str) -> str:
    """What a commit is, without the ids in its key."""
    parts = key.split(":")
    return f"{parts[0]} {parts[-1]}" if parts[0] == "progress" else parts[0]


def commits_of(keys: list[str]) -> list[tuple[str, int]]:
    """Each commit as its kind and its number among those of that kind; the start of the run first."""
    seen: Counter[str] = Counter()
    found = [("start", 1)]
    for kind in map(kind_of, keys):
        seen[kind] += 1
        found.append((kind, seen[kind]))
    return found
