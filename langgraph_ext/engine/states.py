"""States: where the engine's rows stand. The migrations' CHECKs say the same."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "AgentStatus",
    "BatchState",
    "CallState",
    "MemberState",
    "OperationState",
    "RequestState",
    "TaskState",
    "TicketState",
]


class AgentStatus(StrEnum):
    """Where an agent run stands."""

    RUNNING = "running"
    CLOSING = "closing"
    """Its gate is shut: nothing new begins, and what is under way comes to its end."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXHAUSTED = "exhausted"

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self not in (AgentStatus.RUNNING, AgentStatus.CLOSING)


class TaskState(StrEnum):
    """Where an agent task stands."""

    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED)


class OperationState(StrEnum):
    """Where an operation stands."""

    PREPARED = "prepared"
    ASKED = "asked"
    """It has asked for a ticket, and all that are left are reserved."""
    READY = "ready"
    DISPATCHED = "dispatched"
    RAW = "raw"
    """An answer is stored, and its hooks were not asked yet."""
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    """Nobody knows whether its last call did anything."""

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self in (OperationState.COMPLETED, OperationState.CANCELLED, OperationState.UNKNOWN)


class CallState(StrEnum):
    """Where one physical try of an operation stands."""

    OPEN = "open"
    SETTLED = "settled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class TicketState(StrEnum):
    """Where a ticket stands."""

    WAITING = "waiting"
    RESERVED = "reserved"
    CONSUMED = "consumed"
    RELEASED = "released"


class BatchState(StrEnum):
    """Where the tool calls of a decision stand, together."""

    OPEN = "open"
    SETTLED = "settled"
    """All of them are."""
    CONSUMED = "consumed"


class MemberState(StrEnum):
    """Where one tool call of a decision stands."""

    QUEUED = "queued"
    ADMITTING = "admitting"
    """A person decides on it."""
    ADMITTED = "admitted"
    SETTLED = "settled"


class RequestState(StrEnum):
    """Where a request to a person stands."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    """Its agent run ended before."""
