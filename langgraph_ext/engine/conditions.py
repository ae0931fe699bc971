"""Conditions: what a waiting agent task waits for, and whether it has come.

A condition is JSON: `{"kind": …, …}`. It is looked at in the commit that begins to wait, and in each commit that may
fulfil it, so that whichever comes second makes the task ready (rule E10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.states import BatchState, OperationState, RequestState
from langgraph_ext.errors import InvalidArgument

__all__ = ["answered", "batch_settled", "check", "is_met", "operations_ended"]


def operations_ended(*purposes: str) -> dict[str, Any]:
    """All these operations of the task's own have ended."""
    return {"kind": "operations", "purposes": list(purposes)}


def batch_settled(batch_id: str) -> dict[str, Any]:
    """All members of a batch are."""
    return {"kind": "batch", "purposes": [], "batch": batch_id}


def answered(request_id: str) -> dict[str, Any]:
    """A person has answered."""
    return {"kind": "answered", "purposes": [], "request": request_id}


def check(condition: Any) -> None:
    """See that it is a condition.

    Raises:
        InvalidArgument: It is none.
    """
    kind = condition.get("kind") if isinstance(condition, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidArgument(f"a task waits for what is no condition; its kind is one of {sorted(_KINDS)}")
    if kind == "batch" and not isinstance(condition.get("batch"), str):
        raise InvalidArgument("a task waits for a batch that is not named")
    if kind == "answered" and not isinstance(condition.get("request"), str):
        raise InvalidArgument("a task waits for an answer to a request that is not named")
    purposes = condition.get("purposes")
    if not isinstance(purposes, list) or not all(isinstance(each, str) for each in purposes):
        raise InvalidArgument("a task waits for operations whose purposes are not said; they are a list of texts")


def is_met(tx: Tx, agent_task_id: str, condition: Mapping[str, Any]) -> bool:
    """Whether what a task waits for has come."""
    return _KINDS[condition["kind"]](tx, agent_task_id, condition)


def _operations(tx: Tx, agent_task_id: str, condition: Mapping[str, Any]) -> bool:
    for purpose in condition["purposes"]:
        row = tx.maybe("agent_operation_named", agent_task_id=agent_task_id, purpose=purpose)
        if row is None or not OperationState(row["state"]).ended:
            return False
    return True


def _batch(tx: Tx, agent_task_id: str, condition: Mapping[str, Any]) -> bool:
    row = tx.maybe("agent_batch_get", batch_id=condition["batch"])
    return row is not None and row["agent_task_id"] == agent_task_id and row["state"] != BatchState.OPEN


def _answered(tx: Tx, agent_task_id: str, condition: Mapping[str, Any]) -> bool:
    row = tx.maybe("agent_request_get", request_id=condition["request"])
    return row is not None and row["agent_task_id"] == agent_task_id and row["state"] == RequestState.ANSWERED


_KINDS: dict[str, Callable[[Tx, str, Mapping[str, Any]], bool]] = {
    "operations": _operations,
    "batch": _batch,
    "answered": _answered,
}
