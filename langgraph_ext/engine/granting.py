"""Granting: tickets that are settled, and the requests that wait for them."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.engine import raising
from langgraph_ext.engine.applying import Applying, OfOperation, agent_run_of, operation_of
from langgraph_ext.engine.moves import move_operation
from langgraph_ext.engine.rows import Ticket
from langgraph_ext.engine.states import OperationState, TicketState
from langgraph_ext.engine.tickets import Decision, count, move, plan, release, ticket_of
from langgraph_ext.errors import ConflictError

__all__ = ["ConsumeTicket", "ReleaseTicket", "regrant"]


def regrant(at: Applying) -> None:
    """Look at the waiting requests again, the earliest first: something was released or consumed (rule E26).

    Granted is the earliest that fits on both levels; one that asks for more than there is closes its scope, which may
    give tickets back that an earlier one has waited for; or a person is asked, and it waits on for what that decides.
    """
    while _grant(at):
        pass


def _grant(at: Applying) -> bool:
    """As `regrant`, until a scope is closed; whether one was."""
    waiting = [Ticket.from_row(row) for row in at.tx.all("agent_tickets_waiting", root_id=at.root_id)]
    for ticket in waiting:
        planned = plan(at.root, agent_run_of(at.tx, ticket.agent_run_id), ticket, now_us=at.now_us)
        if planned.decision is Decision.RESERVE:
            move(at, ticket, TicketState.RESERVED, None)
            count(at, ticket.agent_run_id, reserved=1)
            move_operation(at, ticket.operation_id, OperationState.ASKED, OperationState.READY)
        elif planned.decision is Decision.CLOSE and not raising.spent(
            at, operation_of(at.tx, ticket.operation_id), planned
        ):
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeTicket(OfOperation):
    """A decision was accepted, or an error is fed back in its place."""

    reason: str = "decision"

    def apply(self, at: Applying) -> None:
        """Count it; the same again changes nothing."""
        ticket = _settled(at, self.operation_id, TicketState.CONSUMED)
        if ticket is None:
            return
        move(at, ticket, TicketState.CONSUMED, self.reason)
        count(at, ticket.agent_run_id, reserved=-1, consumed=1)
        at.result["loops"] = at.root.consumed
        at.event("ticket.consumed", operation_id=self.operation_id, reason=self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTicket(OfOperation):
    """Nothing was decided, and nothing is fed back."""

    def apply(self, at: Applying) -> None:
        """Give it back; the same again changes nothing."""
        ticket = _settled(at, self.operation_id, TicketState.RELEASED)
        if ticket is not None:
            release(at, ticket)


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
