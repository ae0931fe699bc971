"""Usage records: what the ledger gives out of model calls and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from langgraph_ext.ledger.dimensions import Dimension

__all__ = ["CallRecord", "CallStatus", "Spent", "Usage"]


class CallStatus(StrEnum):
    """Where a model or tool call stands."""

    OPEN = "open"
    """It was made, and has no answer yet, as far as is known."""
    SETTLED = "settled"
    INTERRUPTED = "interrupted"
    """No answer came, or its process was lost before one was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One dimension of what a run used. Counts are whole, dollars and seconds are not."""

    limit: int | float | None
    """None if it is not bounded."""
    used: int | float | None
    """None if that is not known exactly: some call did not report it."""
    known: int | float
    """What was reported: the least that was used."""
    reserved: int | float
    """What may be used besides: by calls without an answer, or without a full report, and by child runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run used, over all its invocations, and what is reserved for it."""

    run_id: str
    spent: Mapping[Dimension, Spent]
    """Every dimension, bounded or not."""
    calls: int
    open_calls: int
    """Those of them that have no answer yet."""
    tokens_in: int
    """As far as they were reported; so are the next three."""
    tokens_out: int
    cache_read: int
    cache_written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One physical call of a model or a tool."""

    call_id: str
    run_id: str
    thread_id: str
    checkpoint_ns: str | None
    checkpoint_id: str | None
    """The checkpoint that its task executes; None where that is not known."""
    task_id: str | None
    node: str
    attempt_id: str | None
    """The attempt of a durable body that made it; None in a plain node."""
    ordinal: int
    """Which call of its attempt, or of its task under one lease, from 1."""
    epoch: int
    """The fencing epoch of the lease it was made under."""
    kind: str
    """`model` or `tool`."""
    role: str | None
    """What it was for, where its node says so."""
    provider: str | None
    model: str | None
    status: CallStatus
    prompt_bytes: int | None
    """Of the last message."""
    context_bytes: int | None
    """Of the messages before it."""
    bound_tokens: int | None
    """The most that it might have used, as it was reckoned before; None where that could not be told."""
    reserved_tokens: int
    """What is still held for it."""
    tokens_in: int | None
    """As reported; None where it was not. So are the next ones."""
    tokens_out: int | None
    cache_read: int | None
    cache_written: int | None
    tool_calls: int | None
    cost_usd: float | None
    reserved_cost_usd: float
    error_type: str | None
    """Why no answer came; `owner_lost` if its process was gone."""
    started_at: datetime
    ended_at: datetime | None
