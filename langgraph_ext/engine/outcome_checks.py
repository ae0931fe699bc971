"""Outcome checks: whether a behaviour may yield what it yields, before anything of it is committed (rule E9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_ext.engine import conditions
from langgraph_ext.engine.applying import Change
from langgraph_ext.engine.batches import Consume, ConsumeBatch, DecideBatch, FreezeBatch
from langgraph_ext.engine.contexts import KINDS as MESSAGE_KINDS
from langgraph_ext.engine.contexts import Append
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import KINDS, POLICIES, Begin
from langgraph_ext.engine.outcomes import PROTOCOL, Fail, Outcome, Progress, Wait
from langgraph_ext.engine.requests import OpenRequest
from langgraph_ext.engine.rows import encoded
from langgraph_ext.engine.runtimes import Runtime
from langgraph_ext.errors import InvalidArgument, LangGraphExtError

__all__ = ["check"]

_OF_OPERATIONS = (ConsumeTicket, ReleaseTicket, FreezeBatch, DecideBatch, ConsumeBatch, Consume)

_KEYS = ("accept-model", "decide-batch", "consume-batch")
"""Of commits that a behaviour may name."""

_OF_TASK = (Begin, Append, FreezeBatch, DecideBatch, OpenRequest)


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
        if isinstance(change, _OF_OPERATIONS) and not (_is_text(change.operation_id) and change.operation_id in own):
            return f"{name} names operation {change.operation_id!r}, which the task has not committed"
        if not isinstance(change, _OF_TASK + _OF_OPERATIONS):
            return f"{name} is nothing that a behaviour prepares"
        try:
            why = next(_faults_of(change, own), None)
        except (TypeError, KeyError, AttributeError) as error:
            why = f"{name} is not what it must be: {type(error).__name__} ({error})"
        if why is not None:
            return why
    return None


def _faults_of(change: Change, own: set[str]) -> Iterator[str]:
    """What is wrong with a change; raises what a value of another shape provokes."""
    if isinstance(change, Begin):
        yield from filter(None, [_strange_begin(change)])
    elif isinstance(change, ConsumeTicket):
        if not _is_text(change.reason):
            yield "ConsumeTicket has a reason that is no text"
    elif isinstance(change, Append):
        yield from (why for each in change.entries for why in _faults_of_entry(each, own))
    elif isinstance(change, FreezeBatch):
        yield from _faults_of_members(change.members)
    elif isinstance(change, OpenRequest):
        if not (_is_text(change.kind) and _is_text(change.subject) and isinstance(change.payload, Mapping)):
            yield "OpenRequest has a kind and a subject, which are texts, and a payload, which is an object"
        encoded(change.payload, "payload")


def _faults_of_entry(entry: Mapping[str, Any], own: set[str]) -> Iterator[str]:
    kind, operation_id, message = entry["kind"], entry.get("operation_id"), entry.get("message")
    if kind not in MESSAGE_KINDS:
        yield f"Append has an entry of kind {kind!r}; known are {MESSAGE_KINDS}"
    if (operation_id is None) == (message is None):
        yield "Append has an entry that does not say where its message is: itself, or with an operation"
    if operation_id is not None and operation_id not in own:
        yield f"Append names operation {operation_id!r}, which the task has not committed"
    if (
        type(entry["tokens"]) is not int
        or entry["tokens"] < 0
        or (entry.get("covers") is not None) != (kind == "summary")
    ):
        yield "Append has an entry without a size, or, if it is a summary, without what it covers"
    encoded(message, "message")


def _faults_of_members(members: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    ids = [each["call_id"] for each in members]
    named = all(_is_text(each[name]) for each in members for name in ("call_id", "name", "purpose"))
    if not members or not named or len(set(ids)) != len(ids):
        yield "FreezeBatch has no members, or some without a name and a call id of its own"
    for each in members:
        if ("result" in each) == ("arguments" in each):
            yield "FreezeBatch has a member that is neither called nor rejected"
        encoded(each.get("result", each.get("arguments")), "member")


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
