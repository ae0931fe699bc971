"""Slots: how the members of a batch are admitted and settled (rules E19, E20 and E22).

    queued ──▶ admitted ──▶ settled        its operation has ended, and that is its result
    ▲ └───────────────────▶ settled        it was rejected: nothing is dispatched for it
    └─ admitting ─────────▶ settled        a person decides on it: it goes on, or its result is what they said

A member is settled in the commit that ends its operation, after-hooks included; where they go one after the other, the
next is admitted in that commit. What is in doubt settles nothing until it is found out.
"""

from __future__ import annotations

from langgraph_ext.database import Row
from langgraph_ext.engine.applying import Applying, agent_run_of
from langgraph_ext.engine.beginning import begin_operation, dispatch_at_once
from langgraph_ext.engine.rows import Operation, decoded, encoded
from langgraph_ext.engine.states import AgentStatus, MemberState

__all__ = ["admit", "reject", "settle"]


def admit(at: Applying, member: Row, agent_task_id: str, *, dispatch: bool = False) -> None:
    """Begin a queued member's operation; `dispatch`: its call is put on record with it."""
    operation_id = begin_operation(
        at,
        agent_task_id,
        member["purpose"],
        kind="tool",
        name=member["name"],
        request=decoded(member["arguments"]),
        policy=member["policy"],
        on_unknown=member["on_unknown"],
    )
    where = {"batch_id": member["batch_id"], "ordinal": member["ordinal"]}
    at.tx.run("agent_member_admit", **where, operation_id=operation_id)
    if dispatch:
        dispatch_at_once(at, operation_id)


def reject(at: Applying, batch_id: str, ordinal: int, result: object) -> None:
    """Settle a member for which nothing is dispatched, with what the model is told."""
    _settle(at, batch_id, ordinal, encoded(result, "result"))


def settle(at: Applying, operation: Operation) -> None:
    """An operation has ended: so is the member, if it is one's; and the next is admitted where they are serial.

    While its scope is open, one that is in doubt stays unsettled.
    """
    member = at.tx.maybe("agent_member_of", operation_id=operation.operation_id)
    if member is None or member["state"] == MemberState.SETTLED:
        return
    is_open = all(
        agent_run_of(at.tx, each).status is AgentStatus.RUNNING for each in {at.root_id, operation.agent_run_id}
    )
    if is_open and operation.is_in_doubt:
        return
    batch = at.tx.one("agent_batch_get", batch_id=member["batch_id"])
    _settle(at, member["batch_id"], member["ordinal"], None)
    if batch["serial"] and is_open:
        following = at.tx.maybe("agent_member_next", batch_id=member["batch_id"])
        if following is not None:
            admit(at, following, batch["agent_task_id"])


def _settle(at: Applying, batch_id: str, ordinal: int, result: bytes | None) -> None:
    if at.tx.run("agent_member_settle", batch_id=batch_id, ordinal=ordinal, result=result) == 1:
        at.tx.run("agent_batch_settle", batch_id=batch_id)
        at.event("member.settled", batch_id=batch_id, ordinal=ordinal)
