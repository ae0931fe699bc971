"""Records: what the engine gives out of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph_ext.engine.rows import AgentRun
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.ledger.rows import moment

__all__ = ["AgentRunRecord", "given_out"]


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
