"""Beginning: how an operation, and each call of it, comes to be on record before anything leaves the process."""

from __future__ import annotations

from typing import Any

from langgraph_ext.engine import limits, tickets
from langgraph_ext.engine.applying import Applying, moved, operation_of, task_of
from langgraph_ext.engine.rows import Operation, encoded
from langgraph_ext.engine.states import OperationState
from langgraph_ext.engine.tickets import Decision

__all__ = ["begin_operation", "claim", "dispatch_at_once", "open_call", "write_state"]


def begin_operation(
    at: Applying,
    agent_task_id: str,
    purpose: str,
    *,
    kind: str,
    name: str,
    request: Any,
    policy: str | None,
    on_unknown: str | None = None,
) -> str:
    """Note the intent to call something, under its purpose; one that is on record stays as it is.

    Returns:
        The operation's id.

    Raises:
        ConflictError: Nothing begins there any more (`scope_closed`).
    """
    named = {"agent_task_id": agent_task_id, "purpose": purpose}
    known = at.tx.maybe("agent_operation_named", **named)
    if known is not None:
        return str(known["operation_id"])
    task = task_of(at.tx, agent_task_id)
    at.gate(task.agent_run_id)
    operation_id = at.ids()
    at.tx.run(
        "agent_operation_insert",
        **named,
        operation_id=operation_id,
        agent_run_id=task.agent_run_id,
        root_id=at.root_id,
        kind=kind,
        name=name,
        policy=policy or ("once" if kind == "tool" else "repeatable"),
        idempotency_key=operation_id,
        request=encoded(request, "request"),
        on_unknown=on_unknown,
        now_us=at.now_us,
    )
    at.event("operation.prepared", operation_id=operation_id, kind=kind, name=name, **named)
    return operation_id


def dispatch_at_once(at: Applying, operation_id: str, claims_upto: int | None = None) -> None:
    """Freeze an operation that begins with this commit, and put its first call on record, if nothing is in the way."""
    operation = operation_of(at.tx, operation_id)
    if operation.state is not OperationState.PREPARED or limits.exceeded(at, operation) is not None:
        return
    if operation.kind == "model":
        planned = tickets.ask(at, operation_id, operation.agent_run_id, waits=False)
        if planned.decision is not Decision.RESERVE:
            return
    open_call(at, operation, 1, before=[])
    claim(at, operation_id, claims_upto)
    at.result.setdefault("dispatched", []).append(operation_id)


def claim(at: Applying, operation_id: str, upto: int | None) -> None:
    """The messages of the inbox that are in a frozen request are its own."""
    if upto is not None:
        columns = {"run": at.run, "operation_id": operation_id, "upto": upto}
        at.tx.run("agent_steering_claim", **columns, now_us=at.now_us)


def open_call(at: Applying, operation: Operation, number: int, *, before: Any = None) -> None:
    """Put a call on record; it may be made once this is committed. `before`: of an operation that was prepared."""
    columns = {"operation_id": operation.operation_id, "number": number, "epoch": at.epoch}
    expected = OperationState.READY if before is None else OperationState.PREPARED
    write_state(at, operation.operation_id, expected, OperationState.DISPATCHED, tries=number, before=before)
    at.tx.run("agent_call_open", **columns, now_us=at.now_us)
    limits.count_call(at, operation)
    at.event("call.dispatched", **columns)


def write_state(
    at: Applying,
    operation_id: str,
    expected: OperationState,
    target: OperationState,
    *,
    tries: int | None = None,
    request: Any = None,
    before: Any = None,
    raw: Any = None,
    after: Any = None,
    outcome: Any = None,
) -> None:
    """Write an operation's next state; what is None stays as it is. What an end leads to is moves.move_operation's.

    Raises:
        ConflictError: It is not where it was expected (`revision_conflict`).
    """
    count = at.tx.run(
        "agent_operation_move",
        operation_id=operation_id,
        expected=expected,
        target=target,
        tries=tries,
        request=None if request is None else encoded(request, "request"),
        before=None if before is None else encoded(before, "before").decode(),
        raw=None if raw is None else encoded(raw, "raw"),
        after=None if after is None else encoded(after, "after").decode(),
        outcome=None if outcome is None else encoded(outcome, "outcome"),
        ended_us=at.now_us if target.ended else None,
    )
    moved(count, "operation", operation_id, expected, f"moved to {target}")
    at.result["operation"] = {"id": operation_id, "state": str(target)}
