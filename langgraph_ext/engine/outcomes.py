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
from langgraph_ext.engine.batches import Consume, ConsumeBatch, FreezeBatch
from langgraph_ext.engine.contexts import Append
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import KINDS, POLICIES, Begin
from langgraph_ext.engine.rows import encoded
from langgraph_ext.engine.runtimes import Runtime
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
    key: str | None = None
    """Of its commit, if it has a name of its own: `accept-model:{operation}` or `consume-batch:{batch}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The task waits for a condition (conditions.py), and its worker is let go."""

    continuation: Mapping[str, Any]
    condition: Mapping[str, Any]
    changes: tuple[Change, ...] = ()
    key: str | None = None
    """As of `Progress`."""


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


class Behaviour(Protocol):
    """How an agent task goes from phase to phase.

    One with `reads_context = True` keeps a history (contexts.py) and is told of its inbox; one with
    `check_input(input)` has the input of its agent runs looked at before they begin.
    """

    def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime
    ) -> AsyncGenerator[Outcome, dict[str, Any]]:
        """Go on from where the task stands."""


_OF_OPERATIONS = (ConsumeTicket, ReleaseTicket, FreezeBatch, ConsumeBatch, Consume)

_KEYS = ("accept-model", "consume-batch")
"""Of commits that a behaviour may name."""

_OF_TASK = (Begin, Append, FreezeBatch)


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
    why = _strange_continuation(outcome)
    if why is not None:
        return why
    if (runtime.task.continuation or {}).get("phase") == "completed" and isinstance(outcome, Progress | Wait):
        return "the task is completed, and goes nowhere from there"
    try:
        for name in ("continuation", "condition", "output"):
            encoded(getattr(outcome, name, None), name)
        if isinstance(outcome, Wait):
            conditions.check(outcome.condition)
    except (TypeError, InvalidArgument) as error:
        return str(error.args[0])
    if isinstance(outcome, Fail) and not (_is_text(outcome.code) and _is_text(outcome.message)):
        return "a failure's code and message are texts"
    key: object = getattr(outcome, "key", None)
    own = {each.operation_id for each in runtime.operations.values()}
    if key is not None and key not in {f"{name}:{each}" for name in _KEYS for each in own}:
        return f"the key {key!r} is none of its own operations'"
    changes: object = outcome.changes
    if not isinstance(changes, tuple):
        return f"changes are a tuple, and not a {type(changes).__name__}"
    return _strange_change(changes, runtime) or _strange_wait(outcome, changes, runtime)


def _is_text(value: object) -> bool:
    """Whether it is text, and can be stored."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _strange_continuation(outcome: Outcome) -> str | None:
    continuation: object = outcome.continuation
    if continuation is None and isinstance(outcome, Fail):
        return None
    is_one = isinstance(continuation, Mapping) and continuation.get("protocol") == PROTOCOL
    if not is_one or not _is_text(continuation.get("phase")):  # type: ignore[attr-defined]  # a mapping, as was seen
        return f"a continuation says which protocol ({PROTOCOL}) and phase it is of"
    return None


def _strange_change(changes: tuple[Change, ...], runtime: Runtime) -> str | None:
    own = {each.operation_id for each in runtime.operations.values()}
    for change in changes:
        name = type(change).__name__
        if isinstance(change, _OF_TASK) and change.agent_task_id != runtime.task.agent_task_id:
            return f"{name} is of another task, {change.agent_task_id!r}"
        if isinstance(change, Begin):
            if (why := _strange_begin(change)) is not None:
                return why
        elif isinstance(change, Append):
            if not all({"kind", "tokens"} <= each.keys() for each in change.entries):
                return f"{name} has entries without a kind and a size"
        elif isinstance(change, _OF_OPERATIONS):
            if isinstance(change, ConsumeTicket) and not _is_text(change.reason):
                return f"{name} has a reason that is no text"
            if not _is_text(change.operation_id) or change.operation_id not in own:
                return f"{name} names operation {change.operation_id!r}, which the task has not committed"
        else:
            return f"{name} is nothing that a behaviour prepares"
    return None


def _strange_wait(outcome: Outcome, changes: tuple[Change, ...], runtime: Runtime) -> str | None:
    """Nobody would end a wait for what nobody has begun."""
    if not isinstance(outcome, Wait):
        return None
    begun = {*runtime.operations, *(each.purpose for each in changes if isinstance(each, Begin))}
    never = [each for each in outcome.condition["purposes"] if each not in begun]
    return f"it waits for operations that it has not begun: {never}" if never else None


def _strange_begin(begin: Begin) -> str | None:
    if begin.kind not in KINDS or begin.policy not in (None, *POLICIES):
        return f"Begin is of kind {begin.kind!r} and policy {begin.policy!r}; known are {KINDS} and {POLICIES}"
    if not (_is_text(begin.purpose) and _is_text(begin.name)):
        return "Begin has a purpose and a name, which are texts"
    try:
        encoded(begin.request, "request")
    except TypeError as error:
        return str(error)
    return None
