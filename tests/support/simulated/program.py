"""What the simulated agent runs do: behaviours, hooks, and calls that take their time and fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from random import Random
from typing import Any

from langgraph_ext.database import Database, Tx
from langgraph_ext.engine import conditions
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import Complete, Fail, Outcome, Progress, Runtime, Wait
from langgraph_ext.engine.program import Allowed, Answered, Denied
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.states import OperationState
from tests.support.agents import phase
from tests.support.simulated.witness import Witness

__all__ = ["ANY", "CallFailed", "SimulatedProgram", "Watched"]

Yielded = AsyncGenerator[Outcome, dict[str, Any]]

ANY = "any operation"
"""A kind of condition that only the simulator has: it stands for those of executors, which wait for each other."""


def any_ended(tx: Tx, agent_task_id: str, condition: Mapping[str, Any]) -> bool:
    """Whether one of the operations has ended."""
    one_by_one = ({"purposes": [each]} for each in condition["purposes"])
    return any(conditions.is_met(tx, agent_task_id, {"kind": "operations", **each}) for each in one_by_one)


def _begin(runtime: Runtime, purpose: str, kind: str, policy: str = "repeatable") -> Begin:
    named = {"agent_task_id": runtime.task.agent_task_id, "purpose": purpose, "kind": kind, "name": kind}
    return Begin(**named, policy=policy, request={"purpose": purpose})


def _failed(operation: Operation) -> bool:
    return "value" not in operation.outcome


class Rounds:
    """Model, tools, model, tools, …: as many rounds as its input says. A failed model call ends it."""

    async def activate(self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime) -> Yielded:
        now = dict(continuation or phase("prepare", n=0))
        while True:
            model, tools = f"business-model:{now['n'] + 1}", [f"tool:{now['n'] + 1}:{k}" for k in range(input["tools"])]
            if now["phase"] == "prepare":
                now["phase"] = "call"
                yield Progress(continuation=dict(now), changes=(_begin(runtime, model, "model"),))
            elif now["phase"] == "call":
                yield _heard(input, now, runtime, model, tools)
            elif now["seen"] < len(tools):
                tool = tools[now["seen"]]
                if not runtime.operations[tool].state.ended:
                    yield Wait(continuation=dict(now), condition=conditions.operations_ended(tool))
                now["seen"] += 1  # one by one, with a step between, while the others may end at any moment
                yield Progress(continuation=dict(now))
            else:
                now = phase("prepare", n=now["n"] + 1)
                if input["breaks"] == "silence":
                    return
                if input["breaks"] == "error":
                    raise ValueError("a behaviour's own")
                yield Progress(continuation=dict(now))


def _heard(input: Any, now: dict[str, Any], runtime: Runtime, model: str, tools: list[str]) -> Outcome:
    """What follows from a model call, which may not have ended; moves `now` on."""
    operation = runtime.operations[model]
    if not operation.state.ended:
        return Wait(continuation=dict(now), condition=conditions.operations_ended(model))
    if _failed(operation):
        changes = () if operation.tries == 0 else (ReleaseTicket(operation_id=operation.operation_id),)  # denied
        return Fail(code="model_call_failed", message="", continuation=phase("failed"), changes=changes)
    consume = ConsumeTicket(operation_id=operation.operation_id)
    if now["n"] + 1 == input["rounds"]:
        return Complete(output=now["n"] + 1, continuation=phase("completed"), changes=(consume,))
    now |= {"phase": "tools", "seen": 0}
    begun = [_begin(runtime, each, "tool", input["policy"]) for each in tools]
    return Progress(continuation=dict(now), changes=(consume, *begun))


class Fan:
    """Asks for several model calls at once, and accepts each as it comes: their tickets wait for each other."""

    async def activate(self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime) -> Yielded:
        now = dict(continuation or phase("prepare", left=[f"business-model:{k}" for k in range(input["rounds"])]))
        if now["phase"] == "prepare":
            now["phase"] = "collect"
            begun = [_begin(runtime, each, "model") for each in now["left"]]
            yield Progress(continuation=dict(now), changes=tuple(begun))
        while now["left"]:
            ended = [each for each in now["left"] if runtime.operations[each].state.ended]
            if not ended:
                yield Wait(continuation=dict(now), condition={"kind": ANY, "purposes": now["left"]})
            now["left"] = [each for each in now["left"] if each != ended[0]]
            operation = runtime.operations[ended[0]]
            settle = ReleaseTicket if _failed(operation) else ConsumeTicket
            changes = () if operation.tries == 0 else (settle(operation_id=operation.operation_id),)
            yield Progress(continuation=dict(now), changes=changes)
            yield Progress(continuation=dict(now))
        yield Complete(output=input["rounds"], continuation=phase("completed"))


class Watched:
    """A behaviour that tells the witness when it goes on behind a yield, and when it runs twice at once."""

    def __init__(self, behaviour: Any, process: int, database: Database, witness: Witness) -> None:
        self._behaviour = behaviour
        self.reads_context = getattr(behaviour, "reads_context", False)
        self._process = process
        self._database = database
        self._witness = witness
        self._active: set[str] = set()

    async def activate(self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime) -> Yielded:
        task = runtime.task
        if task.agent_task_id in self._active:
            self._witness.say(f"process {self._process} drives task {task.agent_task_id} twice at once")
        self._active.add(task.agent_task_id)
        try:
            async with aclosing(self._behaviour.activate(input, continuation, runtime)) as inner:
                answer: Any = None
                while True:
                    try:
                        outcome = await inner.asend(answer)
                    except StopAsyncIteration:
                        return
                    revision = runtime.task.revision
                    answer = yield outcome
                    named = f"progress:{task.agent_task_id}:{revision}:{(outcome.continuation or {}).get('phase')}"
                    key = getattr(outcome, "key", None) or named
                    self._database.transact(self._witness.went_on, task.root_id, key)
        finally:
            self._active.discard(task.agent_task_id)


class CallFailed(Exception):
    """A model's or a tool's; another call may go well."""


class SimulatedProgram:
    """The program of one process.

    Args:
        process: Its number.
        database: Where the witness looks, and steering is read.
        witness: Is told of every call and hook.
        rng: The seed's.
        moods: Chances: `deny`, `fail`, `retry`, `slow`; and whether there are hooks behind calls.
    """

    def __init__(
        self, process: int, database: Database, witness: Witness, rng: Random, moods: Mapping[str, float]
    ) -> None:
        self.spec = self.live = None
        self._process = process
        self._database = database
        self._witness = witness
        self._rng = rng
        self._moods = moods
        self._calling: set[str] = set()
        self._behaviours = {
            name: Watched(each, process, database, witness) for name, each in (("rounds", Rounds()), ("fan", Fan()))
        }

    def behaviour(self, name: str, version: int) -> Any:
        return self._behaviours[name]

    def needs_ticket(self, operation: Operation) -> bool:
        return operation.kind == "model"

    async def before(self, operation: Operation) -> Allowed | Denied:
        self._database.transact(self._witness.asked_hooks, operation.operation_id, "before", self._process)
        left = self._database.transact(_unclaimed, operation.root_id)
        await self._take_time()
        if self._rng.random() < self._moods["deny"]:
            return Denied(["no"], "denied", "a hook has forbidden it")
        if operation.kind != "model" or self._moods["steers"] == 0:
            return Allowed(operation.request, ["yes"])
        return Allowed({**operation.request, "steered": left}, ["yes"], max(left, default=None))

    def ahead(self, tx: Any, operation: Operation) -> Any:
        return None

    async def call(self, operation: Operation, number: int, ahead: Any = None) -> Any:
        with self._flying(operation, number):
            await self._take_time()
        chance = self._rng.random()
        if chance < self._moods["retry"]:
            raise CallFailed
        if chance < self._moods["retry"] + self._moods["fail"]:
            raise ValueError("it never goes well")
        return {"value": {"purpose": operation.purpose, "number": number}}

    @contextmanager
    def _flying(self, operation: Operation, number: int) -> Iterator[None]:
        """A call is made, and the witness knows of it until it has ended."""
        operation_id = operation.operation_id
        if operation_id in self._calling:
            self._witness.say(f"process {self._process} makes two calls of {operation_id} at once")
        self._database.transact(self._witness.called, operation_id, number, operation.policy)
        self._calling.add(operation_id)
        self._witness.takes_off(operation_id, self._process)
        try:
            yield
        finally:
            self._calling.discard(operation_id)
            self._witness.lands(operation_id, self._process)

    def goes_on(self, operation: Operation) -> bool:
        return False

    def usage_of(self, operation: Operation, outcome: Any) -> dict[str, Any] | None:
        return None

    async def reconcile(self, operation: Operation) -> Any:
        return None

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        if not isinstance(error, CallFailed) or number > 2:
            return None
        return self._rng.choice((0.0, 2.0))

    def asks_after(self, operation: Operation) -> bool:
        return bool(self._moods["hooks"])

    async def after(self, operation: Operation) -> Answered:
        self._database.transact(self._witness.asked_hooks, operation.operation_id, "after", self._process)
        if operation.state is not OperationState.RAW:
            self._witness.say(f"the after-hooks of {operation.operation_id} are asked in state {operation.state}")
        await self._take_time()
        return Answered(["seen"], operation.raw)

    async def _take_time(self) -> None:
        chance = self._rng.random()
        if chance < self._moods["slow"]:
            await asyncio.sleep(self._rng.uniform(0.5, 8))
        elif chance < 0.8:
            await asyncio.sleep(self._rng.choice((0, 0.001, 0.003, 0.01)))


def _unclaimed(tx: Tx, root_id: str) -> list[int]:
    run = tx.one("agent_run_get", agent_run_id=root_id)
    return [row["entry"] for row in tx.all("agent_steering_of", run=run["run"]) if row["attempt_id"] is None]
