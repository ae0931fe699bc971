"""Records: what the engine gives out of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Row
from langgraph_ext.engine.member_results import member_result
from langgraph_ext.engine.messages import revived
from langgraph_ext.engine.requests import Request
from langgraph_ext.engine.rows import AgentRun, AgentTask, Operation, Ticket, decoded
from langgraph_ext.engine.states import (
    AgentStatus,
    CallState,
    MemberState,
    OperationState,
    RequestState,
    TaskState,
    TicketState,
)
from langgraph_ext.ledger.rows import moment, moment_or_none

__all__ = [
    "AgentRunRecord",
    "AgentTaskRecord",
    "CallRecord",
    "OperationRecord",
    "RequestRecord",
    "SlotRecord",
    "TicketRecord",
    "TranscriptEntry",
]


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
    tool_calls: int
    """Physical calls of tools."""
    tokens_in: int
    """Of all answers that were stored: as the models say, else estimated."""
    tokens_out: int
    started_at: datetime
    ended_at: datetime | None
    deadline_at: datetime | None
    """When its active time is over."""
    paused_at: datetime | None
    """Since when nothing but a person is waited for (`engine.doubts`, `engine.requests`); its clocks stand."""

    @classmethod
    def of(cls, run: AgentRun) -> AgentRunRecord:
        """A row as it is given out."""
        return cls(
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
            tool_calls=run.tool_calls,
            tokens_in=run.tokens_in,
            tokens_out=run.tokens_out,
            started_at=moment(run.created_us),
            ended_at=moment_or_none(run.ended_us),
            deadline_at=moment_or_none(run.deadline_us),
            paused_at=moment_or_none(run.paused_us),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTaskRecord:
    """The durable unit that a role runs as."""

    agent_task_id: str
    agent_run_id: str
    role: str
    state: TaskState
    phase: str | None
    """Of its behaviour; None before its first."""
    waits_for: Mapping[str, Any] | None
    """The condition; None unless it waits."""
    error: Mapping[str, str] | None

    @classmethod
    def of(cls, task: AgentTask) -> AgentTaskRecord:
        """A row as it is given out."""
        return cls(
            agent_task_id=task.agent_task_id,
            agent_run_id=task.agent_run_id,
            role=task.role,
            state=task.state,
            phase=(task.continuation or {}).get("phase"),
            waits_for=task.condition,
            error=task.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One physical try of an operation."""

    number: int
    """From 1."""
    epoch: int
    """Of the lease that it was made under."""
    state: CallState
    error: Mapping[str, str] | None
    """Code and message, if it has failed."""
    partial: Any
    """What had come of an answer that broke off; never taken for one."""
    tokens_in: int | None
    """Of a model's call that has answered."""
    tokens_out: int | None
    tokens_estimated: bool
    """Whether the model did not say."""
    started_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, row: Row) -> CallRecord:
        """A row as it is given out."""
        answer, usage = decoded(row["answer"]) or {}, decoded(row["usage"]) or {}
        return cls(
            number=row["number"],
            epoch=row["epoch"],
            state=CallState(row["state"]),
            error=answer.get("error"),
            partial=answer.get("partial"),
            tokens_in=usage.get("tokens_in"),
            tokens_out=usage.get("tokens_out"),
            tokens_estimated=bool(usage.get("estimated")),
            started_at=moment(row["started_us"]),
            ended_at=moment_or_none(row["ended_us"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One logical call of a model or a tool."""

    operation_id: str
    agent_run_id: str
    agent_task_id: str
    purpose: str
    kind: str
    name: str
    state: OperationState
    idempotency_key: str
    in_doubt: bool
    """Whether nobody knows if its last call did anything, and that is to be found out; also when its run has ended."""
    on_unknown: str | None
    """By whom: a person (`ask`), or the tool's function (`reconcile`); else nobody asks, and the model is told."""
    request: Any
    outcome: Any
    """`{"value": …}` or `{"error": {"code", "message"}}`; None until it has ended."""
    calls: tuple[CallRecord, ...]

    @classmethod
    def of(cls, operation: Operation, calls: tuple[CallRecord, ...]) -> OperationRecord:
        """A row as it is given out."""
        return cls(
            operation_id=operation.operation_id,
            agent_run_id=operation.agent_run_id,
            agent_task_id=operation.agent_task_id,
            purpose=operation.purpose,
            kind=operation.kind,
            name=operation.name,
            state=operation.state,
            idempotency_key=operation.idempotency_key,
            in_doubt=operation.is_in_doubt,
            on_unknown=operation.on_unknown,
            request=operation.request,
            outcome=operation.outcome,
            calls=calls,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketRecord:
    """One unit of the loop limit."""

    operation_id: str
    agent_run_id: str
    state: TicketState
    reason: str | None
    """What it was consumed for: `decision`, or `error_feedback`."""

    @classmethod
    def of(cls, ticket: Ticket) -> TicketRecord:
        """A row as it is given out."""
        return cls(
            operation_id=ticket.operation_id,
            agent_run_id=ticket.agent_run_id,
            state=ticket.state,
            reason=ticket.reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """What came of one tool call of a decision."""

    batch_id: str
    """The decision's operation."""
    ordinal: int
    """From 0, in the decision's order."""
    call_id: str
    name: str
    state: MemberState
    operation_id: str | None
    """None while it is queued, and if it was rejected."""
    result: BaseMessage | None
    """What the model is told; None until it is settled."""
    decision: Any
    """What a person has decided on it (`{"type": "approve" | "edit" | "reject" | "respond", …}`); None if nobody was
    asked."""

    @classmethod
    def of(cls, row: Row) -> SlotRecord:
        """A row as it is given out, with its operation's outcome."""
        is_settled = row["state"] == MemberState.SETTLED
        message = member_result(row, decoded(row["outcome"])) if is_settled else None
        return cls(
            batch_id=row["batch_id"],
            ordinal=row["ordinal"],
            call_id=row["call_id"],
            name=row["name"],
            state=MemberState(row["state"]),
            operation_id=row["operation_id"],
            result=None if message is None else revived([message])[0],
            decision=decoded(row["decision"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """What an agent has asked a person."""

    request_id: str
    """What an answer names it by."""
    agent_run_id: str
    kind: str
    """`approval`: of tool calls; `limit`: whether a limit is raised."""
    payload: Any
    """What a person is shown: `{"action_requests": […], "review_configs": […], …}`."""
    state: RequestState
    answer: Any
    """What was decided, once it was."""
    created_at: datetime
    closed_at: datetime | None

    @classmethod
    def of(cls, request: Request) -> RequestRecord:
        """A row as it is given out."""
        return cls(
            request_id=request.request_id,
            agent_run_id=request.agent_run_id,
            kind=request.kind,
            payload=request.payload,
            state=request.state,
            answer=request.answer,
            created_at=moment(request.created_us),
            closed_at=moment_or_none(request.closed_us),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One message of a role's history."""

    seq: int
    """From 1; the revision of the history that it made."""
    kind: str
    """`input`, `steering`, `decision`, `result`, `feedback`, or `summary`, which stands for those before it."""
    message: BaseMessage
    """With an id that is the same each time it is read."""
    stored_at: datetime
