"""Beginning: how an operation comes to be on record, before anything of it leaves the process."""

from __future__ import annotations

from typing import Any

from langgraph_ext.engine.applying import Applying, task_of
from langgraph_ext.engine.rows import encoded

__all__ = ["begin_operation"]


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
