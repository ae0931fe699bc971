"""Records: what the engine gives out of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.rows import AgentRun, read_tree
from langgraph_ext.engine.states import AgentStatus, CallState, OperationState
from langgraph_ext.ledger.rows import moment

__all__ = ["AgentRunRecord", "CallRecord", "OperationRecord", "given_out", "operations_given_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunRecord:
    """An agent run, as it was when it was read."""

    agent_run_id: str
    """Also the id of its run in the ledger, whose events and inbox it has."""
    key: str | None
    status: AgentStatus
    reason: str | None
    """Code of what it closed for, such as `stopped` or `loops_exhausted`; None while it runs, and if it succeeded."""
    message: str | None
    input: Any
    output: Any
    """None unless it succeeded."""
    release: str
    """Digest of the definition that it is pinned to."""
    loops_used: int
    """Tickets consumed: decisions that were accepted."""
    loops_reserved: int
    loop_limit: int
    model_calls: int
    """Physical calls of models, those that failed or were lost included."""
    started_at: datetime
    ended_at: datetime | None
    deadline_at: datetime | None
    """When its active time is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One physical try of an operation."""

    number: int
    """From 1."""
    epoch: int
    """Of the lease that it was made under."""
    state: CallState
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One logical call of a model or a tool."""

    operation_id: str
    agent_run_id: str
    purpose: str
    kind: str
    name: str
    state: OperationState
    request: Any
    outcome: Any
    """`{"value": …}` or `{"error": {"code", "message"}}`; None until it has ended."""
    calls: tuple[CallRecord, ...]


def operations_given_out(tx: Tx, root_id: str) -> list[OperationRecord]:
    """The operations of a tree, with their calls, as they are given out.

    Raises:
        NotFound: There is no such tree (`agent_run_not_found`).
    """
    return [
        OperationRecord(
            operation_id=each.operation_id,
            agent_run_id=each.agent_run_id,
            purpose=each.purpose,
            kind=each.kind,
            name=each.name,
            state=each.state,
            request=each.request,
            outcome=each.outcome,
            calls=tuple(_call(row) for row in tx.all("agent_calls_of", operation_id=each.operation_id)),
        )
        for each in read_tree(tx, root_id).operations.values()
    ]


def _call(row: Row) -> CallRecord:
    return CallRecord(
        number=row["number"],
        epoch=row["epoch"],
        state=CallState(row["state"]),
        started_at=moment(row["started_us"]),
        ended_at=None if row["ended_us"] is None else moment(row["ended_us"]),
    )


def given_out(run: AgentRun) -> AgentRunRecord:
    """A row as it is given out."""
    return AgentRunRecord(
        agent_run_id=run.agent_run_id,
        key=run.key,
        status=run.status,
        reason=run.reason,
        message=run.message,
        input=run.input,
        output=run.output,
        release=run.release,
        loops_used=run.consumed,
        loops_reserved=run.reserved,
        loop_limit=run.loop_limit,
        model_calls=run.model_calls,
        started_at=moment(run.created_us),
        ended_at=None if run.ended_us is None else moment(run.ended_us),
        deadline_at=None if run.deadline_us is None else moment(run.deadline_us),
    )
