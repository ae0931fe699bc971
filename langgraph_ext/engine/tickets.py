"""Tickets: units of the loop limit, one a model operation (rules E24 to E26).

    ask ──▶ waiting ──▶ reserved ──▶ consumed      a decision was accepted
              └──────────┴─────────▶ released      nothing was decided

`plan` decides and is pure; the rest applies. Under the root's row, of which there is one, all of a tree are counted:
consumed + reserved never exceed the limit, of the root and of the agent run that asks.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from langgraph_ext.engine.applying import Applying, agent_run_of, moved
from langgraph_ext.engine.rows import AgentRun, Ticket
from langgraph_ext.engine.states import AgentStatus, TicketState

__all__ = [
    "DEADLINE",
    "EXHAUSTED",
    "Decision",
    "Planned",
    "ask",
    "count",
    "move",
    "plan",
    "release",
    "settle_unused",
    "ticket_of",
    "told",
]

EXHAUSTED = "loops_exhausted"
DEADLINE = "deadline_exceeded"


class Decision(Enum):
    """What becomes of a request for a ticket."""

    HAS = "has"
    """Its operation has one."""
    SHUT = "shut"
    """Its scope is closing, or has ended."""
    CLOSE = "close"
    """It asks for more than there is: that closes the scope."""
    WAIT = "wait"
    RESERVE = "reserve"


class Planned(NamedTuple):
    """A decision; of SHUT and CLOSE with the agent run that is concerned, and of CLOSE with the reason."""

    decision: Decision
    agent_run_id: str | None = None
    reason: str | None = None


def plan(root: AgentRun, local: AgentRun, ticket: Ticket | None, *, now_us: int) -> Planned:
    """Decide on a request, in the order of rule E24 behind the lease.

    Args:
        root: The tree's root, read under its lock.
        local: The agent run that asks; the root itself, or a child.
        ticket: What its operation has already.
        now_us: The one reading of the clock.
    """
    if ticket is not None and ticket.state in (TicketState.RESERVED, TicketState.CONSUMED):
        return Planned(Decision.HAS)
    levels = (root,) if local.agent_run_id == root.agent_run_id else (root, local)
    for level in levels:
        if level.status is not AgentStatus.RUNNING:
            return Planned(Decision.SHUT, level.agent_run_id)
        if level.is_late(now_us):
            return Planned(Decision.CLOSE, level.agent_run_id, DEADLINE)
        if level.consumed >= level.loop_limit:
            return Planned(Decision.CLOSE, level.agent_run_id, EXHAUSTED)
    if any(level.consumed + level.reserved >= level.loop_limit for level in levels):
        return Planned(Decision.WAIT)
    return Planned(Decision.RESERVE)


def told(at: Applying, planned: Planned) -> str:
    """A close in words."""
    if planned.reason != EXHAUSTED or planned.agent_run_id is None:
        return ""
    return f"limits.loops is {agent_run_of(at.tx, planned.agent_run_id).loop_limit}, and more were needed"


def ask(at: Applying, operation_id: str, agent_run_id: str, *, waits: bool = True) -> Planned:
    """Ask for an operation's ticket, and write what is decided but for a close, which is the caller's.

    Args:
        at: The commit.
        operation_id: The operation.
        agent_run_id: Its agent run.
        waits: Whether it waits for one if none is free; else nothing is written then.
    """
    ticket = ticket_of(at, operation_id)
    planned = plan(at.root, agent_run_of(at.tx, agent_run_id), ticket, now_us=at.now_us)
    if planned.decision is not Decision.RESERVE and (planned.decision is not Decision.WAIT or not waits):
        return planned
    target = TicketState.RESERVED if planned.decision is Decision.RESERVE else TicketState.WAITING
    if ticket is None:
        at.tx.run(
            "agent_ticket_insert",
            operation_id=operation_id,
            agent_run_id=agent_run_id,
            root_id=at.root_id,
            state=target,
            requested_seq=at.next_seq(),
            now_us=at.now_us,
        )
    elif ticket.state is not target:
        move(at, ticket, target, None)
    if target is TicketState.RESERVED:
        count(at, agent_run_id, reserved=1)
    return planned


def settle_unused(at: Applying, operation_id: str) -> None:
    """Release an operation's ticket, if it holds or waits for one; nobody else is granted it."""
    ticket = ticket_of(at, operation_id)
    if ticket is not None and ticket.state in (TicketState.WAITING, TicketState.RESERVED):
        release(at, ticket)


def release(at: Applying, ticket: Ticket) -> None:
    """Give a ticket back that is waiting or reserved."""
    move(at, ticket, TicketState.RELEASED, None)
    if ticket.state is TicketState.RESERVED:
        count(at, ticket.agent_run_id, reserved=-1)
    at.event("ticket.released", operation_id=ticket.operation_id)


def ticket_of(at: Applying, operation_id: str) -> Ticket | None:
    """An operation's ticket, if it has asked for one."""
    row = at.tx.maybe("agent_ticket_get", operation_id=operation_id)
    return None if row is None else Ticket.from_row(row)


def move(at: Applying, ticket: Ticket, target: TicketState, reason: str | None) -> None:
    """Move a ticket on from where it was read."""
    columns = {"operation_id": ticket.operation_id, "expected": ticket.state, "target": target, "reason": reason}
    moved_rows = at.tx.run("agent_ticket_move", **columns, now_us=at.now_us)
    moved(moved_rows, "ticket", ticket.operation_id, ticket.state, "moved")


def count(at: Applying, agent_run_id: str, *, consumed: int = 0, reserved: int = 0) -> None:
    """Count on both levels. What is consumed or given back has the waiting requests looked at (rule E26)."""
    at.looks_again = at.looks_again or consumed > 0 or reserved < 0
    for level in {at.root_id, agent_run_id}:
        at.tx.run("agent_run_count", agent_run_id=level, consumed=consumed, reserved=reserved)
