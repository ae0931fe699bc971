"""Records: what the ledger gives out. Plain frozen values, each as it was in the snapshot it was read in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from langgraph_ext.ledger.usage_records import Usage

__all__ = [
    "AttemptRecord",
    "AttemptStatus",
    "CancelMode",
    "Effect",
    "EffectClass",
    "EffectStatus",
    "ErrorRecord",
    "Event",
    "Finding",
    "InboxEntry",
    "InboxKind",
    "Interrupt",
    "InterruptStatus",
    "Memo",
    "Run",
    "RunStatus",
    "Snapshot",
    "Visit",
    "VisitKind",
    "VisitStatus",
]


class EffectClass(StrEnum):
    """What a durable node does to the outside world."""

    NONE = "none"
    WRITE = "write"
    """It acts through recorded effects only."""
    OPAQUE = "opaque"
    """It acts otherwise: an attempt that was interrupted may have acted."""


class AttemptStatus(StrEnum):
    """Where an attempt stands."""

    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    """Nobody knows how it would have ended: its owner is gone, or said so itself."""

    @property
    def ended(self) -> bool:
        """Whether it can never move again."""
        return self not in (AttemptStatus.RUNNING, AttemptStatus.PAUSED)


class RunStatus(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    PAUSED = "paused"
    IDLE = "idle"
    FAILED = "failed"
    RECOVERY_REQUIRED = "recovery_required"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    BUDGET_EXHAUSTED = "budget_exhausted"
    COMPENSATING = "compensating"
    RECONCILIATION_REQUIRED = "reconciliation_required"

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self in (RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.BUDGET_EXHAUSTED)


class VisitStatus(StrEnum):
    """How a visit went, by what its task has written so far."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    PAUSED = "paused"

    @property
    def event(self) -> str:
        """The event that a task's call is when its visit went so."""
        return f"visit.{self}"

    @classmethod
    def of_event(cls, name: str) -> VisitStatus:
        """The status that such an event tells of."""
        return cls(name.removeprefix("visit."))


class VisitKind(StrEnum):
    """What a task ran."""

    NODE = "node"
    ERROR_HANDLER = "error_handler"
    TASK = "task"
    """A `@task` of LangGraph's functional API, whose name a saver is not told."""


class InterruptStatus(StrEnum):
    """Where a question stands."""

    PENDING = "pending"
    """It waits for an answer."""
    ANSWERED = "answered"
    """It has one: on record and still to be taken by its task, or taken, and closed then (`closed_at`)."""
    SUPERSEDED = "superseded"
    """The run ended, or went on from new input, before its task took an answer."""


class InboxKind(StrEnum):
    """What is asked of a run."""

    CANCEL = "cancel"
    STEER = "steer"


class CancelMode(StrEnum):
    """When a run that is being run ends, once it was asked to. What is running is never cut off."""

    NOW = "now"
    """Nothing more of it begins."""
    AFTER_CALL = "after_call"
    """The same for a graph's nodes; an agent finishes the model or tool call it is in."""
    AFTER_BATCH = "after_batch"
    """What belongs to its present step still begins, agents and their calls included; nothing behind that. Of an agent
    by itself: what is left of a batch of tool calls."""


class EffectStatus(StrEnum):
    """Where an effect stands."""

    STARTED = "started"
    """On record, and its call is running, or was when its process was lost."""
    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """Nobody knows whether it happened."""
    NOT_HAPPENED = "not_happened"
    COMPENSATED = "compensated"
    """It happened, and was undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One physical execution of a durable body."""

    attempt_id: str
    run_id: str
    thread_id: str
    checkpoint_id: str
    """The checkpoint that its task executes."""
    task_id: str
    node: str
    node_path: str
    iteration_path: tuple[int, ...]
    """The ordinals of the enclosing visits and of its own, outermost first; empty if an older version recorded it."""
    kind: str | None
    """What its node says that it is."""
    effect: EffectClass
    number: int
    """Which attempt of its visit, from 1."""
    status: AttemptStatus
    epoch: int
    """The fencing epoch of the lease it ran under last."""
    started_at: datetime
    ended_at: datetime | None
    authorized_at: datetime | None
    """When somebody let the next attempt act in spite of how this one ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One logical execution on a thread: from an input to its end, across interrupts, resumes and crashes."""

    run_id: str
    thread_id: str
    status: RunStatus
    fork_of: str | None
    """The run whose checkpoint it branched off."""
    first_checkpoint_id: str
    last_checkpoint_id: str
    """The root checkpoint at which its status changed last."""
    error_type: str | None
    error_message: str | None
    """Of the error that made it fail, also after it went on."""
    started_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    run_key: str | None
    """The caller's name for the request that began it."""
    graph: str | None
    """Of an attached graph: its name; so are the next two."""
    definition_digest: str | None
    """`sha256:<64 hex>` of what the graph was when somebody last began, or went on with, the run."""
    input_digest: str | None
    made_by: str | None
    """Versions of this package and of LangGraph, as it began."""
    active_seconds: float | None
    """For how long attached invocations have run it, those that are over; None if there was none."""
    parent_run_id: str | None = None
    """Of a child run: the run whose attempt has started it."""
    parent_attempt_id: str | None = None
    thread_deleted: bool = False
    """Whether its thread was deleted, and the ledger was kept: then it has neither questions nor effects any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """Something that was asked of a run."""

    entry: int
    """In the order in which they were asked, over all runs."""
    run_id: str
    thread_id: str
    kind: InboxKind
    mode: CancelMode | None
    """Of a cancel."""
    reason: str | None
    """Of a cancel, in the words of who asked."""
    message: Any
    """Of a steer; None if it is no JSON and the ledger has no serde to decode it with."""
    attempt_id: str | None
    """Of a steer: the attempt that has claimed it."""
    requested_at: datetime
    consumed_at: datetime | None
    """When the run did it; None while it waits, and for good if the run ended otherwise first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One task of LangGraph's, seen from the ledger: a node, in a scope, at a checkpoint."""

    run_id: str
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    kind: VisitKind
    node: str | None
    """None where a saver is not told the name (`@task`)."""
    node_path: str
    """Names of the nodes from the root graph to this one, joined by `/`; `?` where one is not known."""
    scope: str | None
    """The task of the enclosing visit; None in the root graph."""
    place: int | None
    """Its place among the tasks of one `Send` fan-out, from 0."""
    ordinal: int
    """Which visit of this node path in this scope and run, from 1."""
    transition: int
    """Which visit of the run, from 1; an inherited one has 0."""
    status: VisitStatus
    attempts: int
    """How often it ended: in success, in an error, or at a question."""
    error_type: str | None
    error_message: str | None
    """Of its last error, also when it succeeded afterwards."""
    started_at: datetime | None
    """When it began; None where that is not known, as in a graph that is not attached."""
    first_at: datetime
    """When its first result was stored."""
    last_at: datetime
    inherited: bool
    """Whether it happened before the fork, in the run that this one branched off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """One question of a task."""

    interrupt_id: str
    run_id: str
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    node: str | None
    ordinal: int
    """Which question of its task, from 0."""
    kind: str | None
    """The payload's own `"kind"`."""
    value: Any
    """The payload; None if it is no JSON and the ledger has no serde to decode it with."""
    value_type: str
    """`"json"`, or the serde's type tag."""
    status: InterruptStatus
    requested_at: datetime
    closed_at: datetime | None
    """When its task took an answer, or it was superseded; None while it is open."""
    answer: Any = None
    """What was answered; None if nothing was, if the answer went by another way than the ledger, or if it is no JSON
    and the ledger has no serde to decode it with."""
    answer_type: str | None = None
    """`"json"`, or the serde's type tag; None if there is no answer on record."""
    answered_at: datetime | None = None
    """When the answer was put on record."""
    answered_by: str | None = None
    """Who answered, in the words of who did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One action on the outside world."""

    effect_id: str
    run_id: str
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    node_path: str
    iteration_path: tuple[int, ...]
    """The ordinals of the enclosing visits and of its own, outermost first."""
    attempt_id: str
    """The attempt that called last."""
    epoch: int
    name: str
    part: str | None
    """What tells it from others of its name in the attempt."""
    key: str
    """The idempotency key that its call is given."""
    business: bool
    """Whether the caller gave the key, in full or as a base."""
    payload_digest: str
    """`sha256:<64 hex>` of what the call was given."""
    status: EffectStatus
    in_doubt: bool
    """Whether nobody knows if it happened: `unknown`, or `started` by an attempt that is over; and no call of it can be
    running any more."""
    tries: int
    """How often it was called, as far as is known."""
    receipt: Any
    """What the outside answered; None if it has not, or if that is no JSON and the ledger has no serde to decode it."""
    receipt_type: str | None
    """`"json"`, or the serde's type tag; None if there is no receipt."""
    compensate: str | None
    """The importable name of the function that undoes it."""
    again_of: str | None
    """The effect that did the same in the run that this one was forked from, if a fork chose to act again."""
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A small value that a durable node keeps."""

    node_path: str
    """Its node's; empty for the whole run."""
    scope: str | None
    """The task of the enclosing visit; None in the root graph."""
    place: int | None
    """Its node's place among the tasks of one `Send` fan-out, from 0."""
    key: str
    value: Any
    """None if it is no JSON and the ledger has no serde to decode it with."""
    value_type: str
    """`"json"`, or the serde's type tag."""
    attempt_id: str
    """The attempt that wrote it last."""
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, at its place in the order of commits."""

    cursor: int
    """Give it as `after=` to read on behind it."""
    run_seq: int | None
    """Its place among the events of its run, from 1 without gaps; only where one run's events are read."""
    name: str
    """`noun.verb`, such as `run.started`, `visit.succeeded`, `interrupt.requested`."""
    run_id: str | None
    """None if it belongs to no run: a thread was deleted, or the checkpoint is not stored yet."""
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str | None
    node: str | None
    node_path: str | None
    scope: str | None
    details: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """One error of a task, also of one that succeeded later."""

    cursor: int
    run_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    node: str | None
    node_path: str
    status: VisitStatus
    """`failed`, `cancelled` or `timed_out`."""
    error_type: str
    error_message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one point: everything in it was read in one snapshot of the database."""

    run: Run
    cursor: int
    """The last event that it holds."""
    transitions: int
    visits: Mapping[VisitStatus, int]
    """How many visits stand how."""
    usage: Usage
    pending: tuple[Interrupt, ...]
    """Questions without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that should not be so."""

    code: str
    run_id: str | None
    message: str
