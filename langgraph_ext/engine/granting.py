"""Granting: tickets that are settled, and the requests that wait for them."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.engine import closing
from langgraph_ext.engine.applying import Applying, Ref, agent_run_of
from langgraph_ext.engine.moves import move_operation
from langgraph_ext.engine.rows import Ticket
from langgraph_ext.engine.states import OperationState, TicketState
from langgraph_ext.engine.tickets import Decision, count, move, plan, release, ticket_of
from langgraph_ext.errors import ConflictError

__all__ = ["ConsumeTicket", "ReleaseTicket", "grant", "regrant"]


def regrant(at: Applying) -> None:
    """Look at the waiting requests again: something was released or consumed (rule E26).

    When all changes of the commit are applied: a request may close the scope, which would refuse the rest of them, and
    so refuse for ever what has consumed the last ticket.
    """
    at.looks_at_requests = True


def grant(at: Applying) -> None:
    """Look at the waiting requests, the earliest first.

    Granted is the earliest that fits on both levels; one that asks for more than there is closes its scope.
    """
    waiting = [
        Ticket.from_row(row)
        for row in at.tx.all("agent_tickets_of_tree", root_id=at.root_id)
        if row["state"] == TicketState.WAITING
    ]
    for ticket in waiting:
        held = ticket_of(at, ticket.operation_id)
        if held is None or held.state is not TicketState.WAITING:
            continue  # a scope that was closed on the way took it away
        planned = plan(at.root, agent_run_of(at.tx, ticket.agent_run_id), held, now_us=at.now_us)
        if planned.decision is Decision.RESERVE:
            move(at, held, TicketState.RESERVED, None)
            count(at, held.agent_run_id, reserved=1)
            move_operation(at, held.operation_id, OperationState.ASKED, OperationState.READY)
        elif planned.decision is Decision.CLOSE:
            assert planned.agent_run_id is not None
            assert planned.reason is not None
            closing.close(at, planned.agent_run_id, planned.reason, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeTicket:
    """A decision was accepted, or an error is fed back in its place."""

    operation_id: str
    reason: str = "decision"

    def rows(self) -> tuple[Ref, ...]:
        """Its operation's."""
        return (Ref.operation(self.operation_id),)

    def apply(self, at: Applying) -> None:
        """Count it; the same again changes nothing."""
        ticket = _settled(at, self.operation_id, TicketState.CONSUMED)
        if ticket is None:
            return
        move(at, ticket, TicketState.CONSUMED, self.reason)
        count(at, ticket.agent_run_id, reserved=-1, consumed=1)
        at.result["loops"] = at.root.consumed
        at.event("ticket.consumed", operation_id=self.operation_id, reason=self.reason)
        regrant(at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTicket:
    """Nothing was decided, and nothing is fed back."""

    operation_id: str

    def rows(self) -> tuple[Ref, ...]:
        """Its operation's."""
        return (Ref.operation(self.operation_id),)

    def apply(self, at: Applying) -> None:
        """Give it back; the same again changes nothing."""
        ticket = _settled(at, self.operation_id, TicketState.RELEASED)
        if ticket is not None:
            release(at, ticket)
            regrant(at)


def _settled(at: Applying, operation_id: str, target: TicketState) -> Ticket | None:
    """The ticket that is to be settled so; None if it is.

    Raises:
        ConflictError: It is settled the other way, or never was reserved (`loop_ticket_state_conflict`).
    """
    ticket = ticket_of(at, operation_id)
    if ticket is not None and ticket.state is target:
        return None
    if ticket is None or ticket.state is not TicketState.RESERVED:
        now = "not there" if ticket is None else str(ticket.state)
        raise ConflictError(
            f"the ticket of operation {operation_id!r} is {now}, and cannot be {target}",
            code="loop_ticket_state_conflict",
            details={"operation_id": operation_id, "state": now, "target": str(target)},
        )
    return ticket
