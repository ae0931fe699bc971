"""Asking: how a request to a person comes to be on record."""

from __future__ import annotations

from typing import Any

from langgraph_ext.engine.applying import Applying, task_of
from langgraph_ext.engine.rows import encoded

__all__ = ["open_request", "request_id_of"]


def request_id_of(kind: str, subject: str) -> str:
    """What answers name a request by: it is about one thing, and asked once."""
    return f"{kind}:{subject}"


def open_request(at: Applying, agent_task_id: str, *, kind: str, subject: str, payload: Any) -> None:
    """Put a request on record, by the agent task that waits for it.

    Raises:
        ConflictError: Nothing begins in its scope any more (`scope_closed`).
    """
    task = task_of(at.tx, agent_task_id)
    at.gate(task.agent_run_id)
    request_id = request_id_of(kind, subject)
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
