"""Outcomes: what a behaviour yields, and what it is given.

A behaviour is an async generator, `activate(input, continuation, runtime)`, without I/O of its own. It yields exactly
one of these at a time and goes on only after that is committed; `asend` brings it what the commit answered.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_ext.engine import conditions
from langgraph_ext.engine.applying import Change
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.rows import AgentTask, Operation, encoded
from langgraph_ext.errors import InvalidArgument, LangGraphExtError

__all__ = ["PROTOCOL", "Behaviour", "Complete", "Fail", "Outcome", "Progress", "Runtime", "Wait", "check"]

PROTOCOL = 1
"""The version of continuations that this code reads and writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The task has reached its next phase."""

    continuation: Mapping[str, Any]
    """`{"protocol": 1, "phase": …, …}`: references only, no values, and nothing of another task."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The task waits for a condition (conditions.py), and its worker is let go."""

    continuation: Mapping[str, Any]
    condition: Mapping[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The task has its output; once."""

    output: Any
    continuation: Mapping[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The task has failed; once."""

    code: str
    message: str
    continuation: Mapping[str, Any] | None = None
    changes: tuple[Change, ...] = ()


Outcome = Progress | Wait | Complete | Fail


@dataclass(slots=True)
class Runtime:
    """What a behaviour may look at: its own task and operations, as of the last commit."""

    task: AgentTask
    operations: Mapping[str, Operation]
    """By purpose."""
    spec: Any = None
    """The release's definition."""


class Behaviour(Protocol):
    """How an agent task goes from phase to phase."""

    def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime
    ) -> AsyncGenerator[Outcome, dict[str, Any]]:
        """Go on from where the task stands."""


_OF_OPERATIONS = (ConsumeTicket, ReleaseTicket)


def check(outcome: object, runtime: Runtime) -> None:
    """See, before anything of it is committed, that a behaviour may yield this (rule E9).

    Raises:
        LangGraphExtError: It may not (`node_outcome_invalid`).
    """
    task = runtime.task
    why = _why_not(outcome, runtime)
    if why is not None:
        raise LangGraphExtError(
            f"behaviour {task.behaviour!r} of task {task.agent_task_id!r} yielded what it may not: {why}",
            code="node_outcome_invalid",
            details={"agent_task_id": task.agent_task_id, "behaviour": task.behaviour},
        )


def _why_not(outcome: object, runtime: Runtime) -> str | None:
    if not isinstance(outcome, Outcome):
        return f"a {type(outcome).__name__}, which is no outcome"
    continuation = outcome.continuation
    if (runtime.task.continuation or {}).get("phase") == "completed":
        return "the task is completed, and goes nowhere from there"
    if continuation is not None and (
        continuation.get("protocol") != PROTOCOL or not isinstance(continuation.get("phase"), str)
    ):
        return f"a continuation says which protocol ({PROTOCOL}) and phase it is of"
    try:
        for name in ("continuation", "condition", "output"):
            encoded(getattr(outcome, name, None), name)
        for change in outcome.changes:
            if isinstance(change, Begin):
                encoded(change.request, "request")
        if isinstance(outcome, Wait):
            conditions.check(outcome.condition)
    except (TypeError, InvalidArgument) as error:
        return str(error)
    return _strange_change(outcome.changes, runtime)


def _strange_change(changes: tuple[Change, ...], runtime: Runtime) -> str | None:
    own = {each.operation_id for each in runtime.operations.values()}
    for change in changes:
        name = type(change).__name__
        if isinstance(change, Begin):
            if change.agent_task_id != runtime.task.agent_task_id:
                return f"{name} is of another task, {change.agent_task_id!r}"
        elif isinstance(change, _OF_OPERATIONS):
            if change.operation_id not in own:
                return f"{name} names operation {change.operation_id!r}, which the task has not committed"
        else:
            return f"{name} is nothing that a behaviour prepares"
    return None
