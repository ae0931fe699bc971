"""Operation changes: how one logical call of a model or tool goes from intent to outcome.

    Begin ──▶ prepared ── Allow ──▶ dispatched (with a ticket, if it needs one) ── SaveRaw ──▶ raw ── CompleteOperation
                 │           │           ▲   │                                        │                      ▼
                 │           ▼           │   ├── LoseCall ──▶ unknown, cancelled      └──────────────▶ completed
                 │         asked      Dispatch │                                        (no hooks to ask)
                 │           │           │     └── FailTry, LoseCall ──▶ ready ──┐
                 │           └─ granted ─┴───────────────────────────────────────┘
                 └── Deny ──▶ completed

All of them may be cancelled before they are dispatched, and are then never dispatched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.engine import limits, raising, tickets
from langgraph_ext.engine.applying import Applying, OfOperation, OfTask, agent_run_of, moved, operation_of
from langgraph_ext.engine.beginning import begin_operation, claim, dispatch_at_once, open_call
from langgraph_ext.engine.moves import error_outcome, move_operation
from langgraph_ext.engine.rows import Operation, encoded
from langgraph_ext.engine.states import AgentStatus, CallState, OperationState
from langgraph_ext.engine.tickets import Decision

__all__ = [
    "KINDS",
    "POLICIES",
    "Allow",
    "Begin",
    "CompleteOperation",
    "Deny",
    "Dispatch",
    "FailTry",
    "LoseCall",
    "SaveRaw",
]

KINDS = ("model", "tool", "delegate", "compaction")
POLICIES = ("repeatable", "once", "keyed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(OfTask):
    """An agent task means to call something."""

    purpose: str
    """Finds the operation again: one of its task's has this name."""
    kind: str
    name: str
    """Of the model's role, or of the tool."""
    request: Any
    policy: str | None = None
    """What is done when nobody knows how its call ended: `repeatable`, `once` or `keyed`. None: a tool's is `once`, as
    its spec's default, and what else is called is `repeatable`."""
    on_unknown: str | None = None
    """Who finds that out: a person (`ask`), or the spec's function (`reconcile`). None: what waits for it is told."""
    dispatch: bool = False
    """Whether its first call is put on record with it, as there are no hooks to ask; if a ticket is free for it, and no
    limit in the way: what becomes of it otherwise is decided when it asks for them."""
    claims_upto: int | None = None
    """As of `Allow`, if it is dispatched."""

    def apply(self, at: Applying) -> None:
        """Note the intent; one that is on record under this purpose stays as it is."""
        operation_id = begin_operation(
            at,
            self.agent_task_id,
            self.purpose,
            kind=self.kind,
            name=self.name,
            request=self.request,
            policy=self.policy,
            on_unknown=self.on_unknown,
        )
        at.result.setdefault("operations", {})[self.purpose] = operation_id
        if self.dispatch:
            dispatch_at_once(at, operation_id, self.claims_upto)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow(OfOperation):
    """The hooks have let it pass: its request is frozen, and its first call is on record, if it has a ticket."""

    request: Any
    before: Any
    """What the hooks have decided."""
    needs_ticket: bool
    claims_upto: int | None = None
    """The last entry of the inbox whose message is in the request."""

    def apply(self, at: Applying) -> None:
        """Freeze it, and reserve its ticket; a scope that has no more is closed."""
        operation = operation_of(at.tx, self.operation_id)
        if _is_too_much(at, operation):
            self._keep(at)
            return
        planned = None
        if self.needs_ticket:
            planned = tickets.ask(at, self.operation_id, operation.agent_run_id)
        elif operation.kind == "compaction":  # no summary is written that no decision may follow (rule E12)
            planned = tickets.plan(at.root, agent_run_of(at.tx, operation.agent_run_id), None, now_us=at.now_us)
        if planned is not None and planned.decision is Decision.CLOSE:
            _exhausted(at, operation, planned)
            self._keep(at)
            return
        waits = self.needs_ticket and planned is not None and planned.decision is Decision.WAIT
        target = OperationState.ASKED if waits else OperationState.READY
        at.gate(operation.agent_run_id)
        move_operation(at, self.operation_id, OperationState.PREPARED, target, request=self.request, before=self.before)
        if target is OperationState.READY:
            open_call(at, operation, 1)
        claim(at, self.operation_id, self.claims_upto)

    def _keep(self, at: Applying) -> None:
        """Where it is held, what its hooks have decided is kept, and they are not asked again."""
        if at.result.get("held"):
            prepared = OperationState.PREPARED
            move_operation(at, self.operation_id, prepared, prepared, request=self.request, before=self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny(OfOperation):
    """A hook has forbidden it: it is never dispatched."""

    before: Any
    code: str
    message: str

    def apply(self, at: Applying) -> None:
        """Complete it with the denial."""
        outcome = error_outcome(self.code, self.message)
        columns = {"before": self.before, "outcome": outcome}
        move_operation(at, self.operation_id, OperationState.PREPARED, OperationState.COMPLETED, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(OfOperation):
    """Another physical call is about to be made, or the first of one that has waited for its ticket.

    It is on record before it is made, and the gate is read again.
    """

    number: int

    def apply(self, at: Applying) -> None:
        """Put the call on record."""
        operation = operation_of(at.tx, self.operation_id)
        at.gate(operation.agent_run_id)
        if not _is_too_much(at, operation):
            open_call(at, operation, self.number)
        elif at.result.get("held"):
            move_operation(at, self.operation_id, OperationState.READY, OperationState.READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRaw(OfOperation):
    """An answer has come, before any hook has seen it."""

    number: int
    raw: Any
    after: Any = None
    """What is on record of the hooks where there are none: it is the outcome then."""
    usage: Any = None
    """`{"tokens_in", "tokens_out", "estimated"}`, of a model's."""
    partial: Any = None
    """What had come of an answer that broke off; kept with its call, and never taken for one."""

    def apply(self, at: Applying) -> None:
        """Store it. In a closing scope its hooks are skipped, and it is the outcome."""
        operation = operation_of(at.tx, self.operation_id)
        answer: Any = {"error": self.raw["error"]} if "error" in self.raw else {}  # the operation has what else came
        if self.partial is not None:
            answer["partial"] = self.partial
        _close_call(at, self.operation_id, self.number, CallState.SETTLED, answer, self.usage)
        limits.count_tokens(at, operation, self.usage)
        _settle(at, operation, self.raw, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailTry(OfOperation):
    """A call has failed, and another one may be made: of the same operation, under the same ticket."""

    number: int
    code: str
    message: str
    partial: Any = None
    """As of `SaveRaw`."""
    usage: Any = None
    """As of `SaveRaw`; a call that is made again may have had an answer."""

    def apply(self, at: Applying) -> None:
        """Note the failure. In a closing scope there is no other call: it is the outcome."""
        operation, failure = operation_of(at.tx, self.operation_id), error_outcome(self.code, self.message)
        answer = failure if self.partial is None else {**failure, "partial": self.partial}
        _close_call(at, self.operation_id, self.number, CallState.FAILED, answer, self.usage)
        limits.count_tokens(at, operation, self.usage)
        if _is_open(at, operation):
            move_operation(at, self.operation_id, OperationState.DISPATCHED, OperationState.READY)
        else:
            _settle(at, operation, failure, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseCall(OfOperation):
    """Nobody will tell any more how a call ended: its worker is gone, was told to stop, or has waited long enough."""

    number: int
    again: bool = True
    """Whether it may be called again, if its policy says that it may."""
    goes_on: bool = False
    """Whether it may be at it still: a person finds out what it came to, and no function now."""
    made: bool = True
    """Whether it may have been made; else whoever put it on record was told to stop before that."""

    def apply(self, at: Applying) -> None:
        """By its policy it is called again, or is unknown; in a closing scope nothing is called again."""
        operation = operation_of(at.tx, self.operation_id)
        _close_call(at, self.operation_id, self.number, CallState.INTERRUPTED, None)
        dispatched = OperationState.DISPATCHED
        may_be_made = not self.made or (self.again and operation.policy in ("repeatable", "keyed"))
        if may_be_made and _is_open(at, operation):
            move_operation(at, self.operation_id, dispatched, OperationState.READY)
            return
        if not self.made or (self.again and operation.policy == "repeatable"):
            when = "while it ran" if self.made else "before it ran"
            outcome = error_outcome("cancelled", f"it was stopped {when}")
            target = OperationState.CANCELLED
        else:
            outcome = error_outcome("outcome_unknown", "nobody knows whether it was done")
            target = OperationState.UNKNOWN
        tickets.settle_unused(at, self.operation_id)
        if self.goes_on:
            at.tx.run("agent_operation_doubt", operation_id=self.operation_id, expected=dispatched)
        move_operation(at, self.operation_id, dispatched, target, outcome=outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOperation(OfOperation):
    """The hooks have seen the answer: this is what counts."""

    after: Any
    outcome: Any

    def apply(self, at: Applying) -> None:
        """Complete it; the task that waits for it is ready."""
        columns = {"after": self.after, "outcome": self.outcome}
        move_operation(at, self.operation_id, OperationState.RAW, OperationState.COMPLETED, **columns)


def _is_too_much(at: Applying, operation: Operation) -> bool:
    """Whether another call would be one too many; that closes the scope whose limit it is, or a person is asked."""
    found = limits.exceeded(at, operation)
    if found is not None:
        agent_run_id, reason, _ = found
        _tell(at, agent_run_id, reason, is_held=raising.reached(at, operation, *found))
    return found is not None


def _exhausted(at: Applying, operation: Operation, planned: tickets.Planned) -> None:
    """There is no ticket for it, and there will be none; as above."""
    _tell(at, planned.agent_run_id, planned.reason, is_held=raising.spent(at, operation, planned))


def _tell(at: Applying, agent_run_id: str | None, reason: str | None, *, is_held: bool) -> None:
    """Answer that the operation goes no further: a person decides on a limit, or its scope has closed."""
    at.result |= {"held": True} if is_held else {"closed": {"agent_run_id": agent_run_id, "reason": reason}}


def _is_open(at: Applying, operation: Operation) -> bool:
    """Whether its scope is."""
    return agent_run_of(at.tx, operation.agent_run_id).status is AgentStatus.RUNNING


def _settle(at: Applying, operation: Operation, raw: Any, after: Any) -> None:
    """Store what came of its last call; with what is on record of the hooks, it is the outcome as well."""
    if not _is_open(at, operation):
        after = {"skipped": "closing"}
    expected = OperationState.DISPATCHED
    if after is None:
        move_operation(at, operation.operation_id, expected, OperationState.RAW, raw=raw)
    else:
        move_operation(at, operation.operation_id, expected, OperationState.COMPLETED, after=after, outcome=raw)


def _close_call(at: Applying, operation_id: str, number: int, state: CallState, answer: Any, usage: Any = None) -> None:
    count = at.tx.run(
        "agent_call_close",
        operation_id=operation_id,
        number=number,
        state=state,
        answer=None if answer is None else encoded(answer, "answer"),
        usage=None if usage is None else encoded(usage, "usage").decode(),
        now_us=at.now_us,
    )
    moved(count, "call", f"{operation_id}:{number}", "closed", "closed")
