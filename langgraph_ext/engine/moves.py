"""Moves: how the rows of agent tasks and operations go from state to state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph_ext.engine import slots
from langgraph_ext.engine.applying import Applying, operation_of
from langgraph_ext.engine.beginning import write_state
from langgraph_ext.engine.conditions import is_met
from langgraph_ext.engine.rows import decoded, encoded
from langgraph_ext.engine.states import OperationState, TaskState

__all__ = ["error_outcome", "move_operation", "outcome_of", "wake"]


def error_outcome(code: str, message: str) -> dict[str, Any]:
    """An outcome that is an error."""
    return {"error": {"code": code, "message": message}}


def outcome_of(value: Any, store: Callable[[Any, str], object] = encoded) -> dict[str, Any]:
    """A value that is an outcome: `{"value": …}` or `{"error": {"code", "message"}}`, and can be stored.

    Args:
        value: Anything.
        store: Raises if it cannot be; by default, if it is no JSON.

    Raises:
        TypeError: It is none.
    """
    is_one = isinstance(value, dict) and (value.keys() == {"value"} or value.keys() == {"error"})
    if not is_one:
        raise TypeError('what comes of a call is {"value": …} or {"error": …}')
    error = value.get("error", {"code": "", "message": ""})
    if not isinstance(error, dict) or not {"code", "message"} <= error.keys():
        raise TypeError("an error has a code and a message")
    store(value, "outcome")
    return value  # type: ignore[no-any-return]


def move_operation(
    at: Applying, operation_id: str, expected: OperationState, target: OperationState, **columns: Any
) -> None:
    """Move an operation on, as `write_state`. One that ends is noticed by the task that waits for it.

    Raises:
        ConflictError: It is not where it was expected (`revision_conflict`).
    """
    write_state(at, operation_id, expected, target, **columns)
    if target.ended:
        ended = operation_of(at.tx, operation_id)
        at.event(f"operation.{target}", operation_id=operation_id, agent_task_id=ended.agent_task_id)
        slots.settle(at, ended)
        wake(at, ended.agent_task_id)


def wake(at: Applying, agent_task_id: str) -> None:
    """Make a waiting task ready if what it waits for has come; whoever commits second sees it (rule E10)."""
    task = at.tx.one("agent_task_get", agent_task_id=agent_task_id)
    if task["state"] != TaskState.WAITING or not is_met(at.tx, agent_task_id, decoded(task["condition"])):
        return
    if at.tx.run("agent_task_wake", agent_task_id=agent_task_id, ready_seq=at.next_seq()) == 1:
        at.event("task.woken", agent_task_id=agent_task_id)
