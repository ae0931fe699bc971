"""Applying: what the changes of a commit are applied with, in its transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from langgraph_ext.database import Tx
from langgraph_ext.engine.rows import AgentRun, AgentTask, Operation
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.event_rows import append_event

__all__ = [
    "Applying",
    "Change",
    "OfAgentRun",
    "OfOperation",
    "OfTask",
    "Ref",
    "agent_run_of",
    "moved",
    "operation_of",
    "task_of",
]


class Ref(NamedTuple):
    """A row that a commit locks. Refs sort in the order in which rows are locked (rule E3)."""

    level: int
    row_id: str

    @classmethod
    def agent_run(cls, agent_run_id: str) -> Ref:
        """An agent run's row."""
        return cls(1, agent_run_id)

    @classmethod
    def task(cls, agent_task_id: str) -> Ref:
        """An agent task's row."""
        return cls(2, agent_task_id)

    @classmethod
    def operation(cls, operation_id: str) -> Ref:
        """An operation's row, with its ticket and calls."""
        return cls(3, operation_id)


class Change(Protocol):
    """One typed part of a commit: a frozen dataclass of JSON values, prepared outside and applied in the commit."""

    def rows(self) -> tuple[Ref, ...]:
        """The rows it touches that are there before it, besides its tree's root."""

    def apply(self, at: Applying) -> None:
        """Write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAgentRun:
    """A change of an agent run."""

    agent_run_id: str

    def rows(self) -> tuple[Ref, ...]:
        """Its row."""
        return (Ref.agent_run(self.agent_run_id),)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTask:
    """A change of an agent task."""

    agent_task_id: str

    def rows(self) -> tuple[Ref, ...]:
        """Its row."""
        return (Ref.task(self.agent_task_id),)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOperation:
    """A change of an operation."""

    operation_id: str

    def rows(self) -> tuple[Ref, ...]:
        """Its row."""
        return (Ref.operation(self.operation_id),)


@dataclass(slots=True)
class Applying:
    """An open commit."""

    tx: Tx
    root_id: str
    run: int
    """The ledger's run of the tree; the next is where it is driven, and its events are."""
    thread_id: str
    epoch: int
    now_us: int
    ids: Callable[[], str]
    """A new id at each call."""
    result: dict[str, Any] = field(default_factory=dict)
    """What the commit answers; JSON."""
    looks_again: bool = False
    """Whether requests that wait for tickets are to be looked at, when all changes are applied (rule E26)."""

    @property
    def root(self) -> AgentRun:
        """The tree's root, as it is now."""
        return agent_run_of(self.tx, self.root_id)

    def gate(self, agent_run_id: str) -> AgentRun:
        """The agent run, in which something begins.

        Raises:
            ConflictError: Its gate, or its root's, is shut (`scope_closed`).
        """
        found = agent_run_of(self.tx, agent_run_id)
        for each in (self.root, found):
            if each.status is not AgentStatus.RUNNING:
                raise ConflictError(
                    f"agent run {each.agent_run_id!r} is {each.status} ({each.reason or 'done'}): nothing begins in it "
                    "any more; read it again",
                    code="scope_closed",
                    details={"agent_run_id": each.agent_run_id, "status": str(each.status), "reason": each.reason},
                )
        return found

    def next_seq(self) -> int:
        """The next number of the tree's order; given by commits, never by a clock."""
        seq = self.tx.one("agent_run_get", agent_run_id=self.root_id)["next_seq"]
        self.tx.run("agent_run_next_seq", agent_run_id=self.root_id)
        return int(seq)

    def event(self, name: str, /, **details: Any) -> None:
        """Append an event of the tree's run."""
        append_event(
            self.tx,
            name=name,
            run=self.run,
            thread_id=self.thread_id,
            checkpoint_ns="",
            checkpoint_id="",
            details={"root_id": self.root_id, **details},
            stored_us=self.now_us,
        )


def agent_run_of(tx: Tx, agent_run_id: str) -> AgentRun:
    """An agent run that is there."""
    return AgentRun.from_row(tx.one("agent_run_get", agent_run_id=agent_run_id))


def task_of(tx: Tx, agent_task_id: str) -> AgentTask:
    """An agent task that is there."""
    return AgentTask.from_row(tx.one("agent_task_get", agent_task_id=agent_task_id))


def operation_of(tx: Tx, operation_id: str) -> Operation:
    """An operation that is there."""
    return Operation.from_row(tx.one("agent_operation_get", operation_id=operation_id))


def moved(count: int, noun: str, row_id: str, now: str, wanted: str) -> None:
    """See that a compare-and-set has changed its row.

    Raises:
        ConflictError: It has not (`revision_conflict`): somebody else was first.
    """
    if count != 1:
        raise ConflictError(
            f"{noun} {row_id!r} is {now}, and {wanted} by nobody any more; read it again",
            code="revision_conflict",
            details={"noun": noun, "id": row_id, "state": now},
        )
