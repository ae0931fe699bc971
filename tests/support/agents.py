"""Stand-ins for the engine's tests: a program whose calls are noted, and behaviours of a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from langgraph_ext.engine import conditions
from langgraph_ext.engine.granting import ConsumeTicket
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import Complete, Outcome, Progress, Runtime, Wait
from langgraph_ext.engine.program import Allowed, Answered, Denied
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.starting import Entry
from langgraph_ext.errors import AdmissionError

__all__ = ["Answering", "Echo", "Rounds", "Stub", "Told", "entry_of", "phase"]

RELEASE = "sha256:" + "0" * 64

Yielded = AsyncGenerator[Outcome, dict[str, Any]]


def entry_of(
    behaviour: str = "echo", *, loop_limit: int = 100, run_us: int | None = None, limits: dict[str, Any] | None = None
) -> Entry:
    """How runs of the stub begin."""
    return Entry(RELEASE, b"{}", "react", behaviour, 1, loop_limit, run_us, limits)


def phase(name: str, **more: Any) -> dict[str, Any]:
    """A continuation."""
    return {"protocol": 1, "phase": name, **more}


class Echo:
    """Gives back its input, in one step and without a call."""

    async def activate(self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime) -> Yielded:
        yield Complete(output=input, continuation=phase("completed"))


class Told:
    """A behaviour that is one function."""

    def __init__(self, activate: Callable[[Any, Mapping[str, Any] | None, Runtime], Yielded]) -> None:
        self.activate = activate


class Rounds:
    """Asks the model as many times as its input says, one after the other, and gives back the answers."""

    async def activate(self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime) -> Yielded:
        now = dict(continuation or phase("prepare", n=0))
        while True:
            purpose = f"business-model:{now['n'] + 1}"
            operation = runtime.operations.get(purpose)
            if now["phase"] == "prepare":
                begin = Begin(
                    agent_task_id=runtime.task.agent_task_id,
                    purpose=purpose,
                    kind="model",
                    name="model",
                    request={"n": now["n"] + 1},
                )
                now["phase"] = "call"
                yield Progress(continuation=dict(now), changes=(begin,))
            elif operation is not None and operation.state.ended:
                consume = ConsumeTicket(operation_id=operation.operation_id)
                now = phase("prepare", n=now["n"] + 1)
                if now["n"] == input["rounds"]:
                    last = runtime.operations
                    answers = [last[f"business-model:{n + 1}"].outcome for n in range(now["n"])]
                    yield Complete(output=answers, continuation=phase("completed", n=now["n"]), changes=(consume,))
                yield Progress(continuation=dict(now), changes=(consume,))
            else:
                yield Wait(continuation=dict(now), condition=conditions.operations_ended(purpose))


Answering = Callable[[Operation, int], Awaitable[Any]]


async def _at_once(operation: Operation, number: int) -> Any:
    return {"value": {"request": operation.request, "number": number}}


class Stub:
    """A program: behaviours by name, one function that answers every call, and a count of everything asked outside."""

    def __init__(
        self,
        *,
        answer: Answering = _at_once,
        behaviours: Mapping[str, Any] | None = None,
        pause: float | None = None,
        deny: bool = False,
        hooks: bool = True,
    ) -> None:
        self.spec = self.live = None
        self.asked: Counter[str] = Counter()
        self._answer = answer
        self._behaviours = {"echo": Echo(), "rounds": Rounds(), **(behaviours or {})}
        self._pause = pause
        self._deny = deny
        self._hooks = hooks

    def behaviour(self, name: str, version: int) -> Any:
        if version != 1 or name not in self._behaviours:
            raise AdmissionError(f"behaviour {name!r} version {version} is not here", code="node_abi_unavailable")
        return self._behaviours[name]

    def needs_ticket(self, operation: Operation) -> bool:
        return operation.kind == "model"

    async def before(self, operation: Operation) -> Allowed | Denied:
        self.asked[f"before {operation.purpose}"] += 1
        if self._deny:
            return Denied({"hook": "no"}, "denied", "a hook has forbidden it")
        return Allowed(operation.request, [])

    def ahead(self, tx: Any, operation: Operation) -> Any:
        return None

    async def call(self, operation: Operation, number: int, ahead: Any = None) -> Any:
        self.asked[f"call {operation.purpose}"] += 1
        return await self._answer(operation, number)

    def goes_on(self, operation: Operation) -> bool:
        return False

    def usage_of(self, operation: Operation, outcome: Any) -> dict[str, Any] | None:
        return None

    async def reconcile(self, operation: Operation) -> Any:
        return None

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        return self._pause if number < 2 else None

    def asks_after(self, operation: Operation) -> bool:
        return self._hooks

    async def after(self, operation: Operation) -> Answered:
        self.asked[f"after {operation.purpose}"] += 1
        return Answered([], operation.raw)
