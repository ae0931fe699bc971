"""Asking: how a request to a person comes to be on record."""

from __future__ import annotations

from typing import Any

from langgraph_ext.engine.applying import Applying, task_of
from langgraph_ext.engine.rows import encoded

__all__ = ["open_request"]


def open_request(at: Applying, agent_task_id: str, *, kind: str, subject: str, payload: Any) -> str:
    """Put a request on record, by the agent task that waits for it.

    Returns:
        What answers name it by.

    Raises:
        ConflictError: Nothing begins in its scope any more (`scope_closed`).
    """
    task = task_of(at.tx, agent_task_id)
    at.gate(task.agent_run_id)
    request_id = f"{kind}:{subject}"
    at.tx.run(
        "agent_request_insert",
        request_id=request_id,
        root_id=at.root_id,
        agent_run_id=task.agent_run_id,
        agent_task_id=agent_task_id,
        kind=kind,
        subject=subject,
        payload=encoded(payload, "payload"),
        now_us=at.now_us,
    )
    at.event("request.opened", request_id=request_id, kind=kind)
    return request_id
