"""Invocations: what the beginning and the end of an attached one mean for its thread's run (L18, L37, L38, L54)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.ledger import active_time, budgets, control, definitions, leases, lost_calls, runs
from langgraph_ext.ledger.definitions import Definition
from langgraph_ext.ledger.dimensions import Amounts
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.requests import Request, reserve
from langgraph_ext.ledger.runs import At

__all__ = ["begin", "end", "go_on", "take_up"]


def take_up(tx: Tx, *, thread_id: str, now_us: int, **asked: Any) -> Lease:
    """As `leases.acquire`, for any invocation: the model calls that another owner has left open are closed."""
    lease = leases.acquire(tx, thread_id=thread_id, now_us=now_us, **asked)
    lost_calls.close_left(tx, thread_id, epoch=lease.epoch, now_us=now_us)
    return lease


def begin(tx: Tx, *, request: Request, thread_id: str, now_us: int, **asked: Any) -> Lease:
    """As `take_up`, for an invocation with new input, whose name is reserved for it.

    Raises:
        ConflictError: Another request has, or had, this name (`run_exists`, `run_key_conflict`); nothing is written.
    """
    lease = take_up(tx, thread_id=thread_id, now_us=now_us, **asked)
    reserve(tx, request, thread_id=thread_id, epoch=lease.epoch, now_us=now_us)
    return lease


def go_on(
    tx: Tx, *, definition: Definition | None, refuses_changes: bool, thread_id: str, now_us: int, **asked: Any
) -> Lease:
    """As `take_up`, for an invocation that goes on with the run at the head of a thread.

    Raises:
        AdmissionError: That run was cancelled (`cancelled`), or the graph is not what it was when the run began, and
            that matters (`definition_changed`); nothing is written.
        BudgetExhausted: It has ended by its budget, and nobody has raised that (`budget_exhausted`).
    """
    lease = take_up(tx, thread_id=thread_id, now_us=now_us, **asked)
    head = tx.maybe("run_at_head", thread_id=thread_id)
    if head is None:
        return lease
    runs.refuse_cancelled(tx, head, thread_id)
    runs.refuse_exhausted(head, thread_id)
    if definition is not None and not RunStatus(head["status"]).ended:
        run = tx.one("run_get", run=head["run"])
        definitions.check(tx, run, definition, refuses=refuses_changes, now_us=now_us)
    return lease


def end(
    tx: Tx,
    *,
    lease: Lease,
    finished: bool,
    now_us: int,
    limits: Amounts | None = None,
    exhausted: Mapping[str, object] | None = None,
) -> bool:
    """Release an invocation's lease, and say how its run stands, which no checkpoint may have told.

    A run that was asked to end is cancelled; one that was left running, without an end or a question, is idle; one of
    which nobody knew whether its last checkpoint is an end has succeeded, if the graph says that it has finished.
    One that stopped at its budget has ended by it; but while a question of it is open, that keeps it open.

    Args:
        tx: The open transaction.
        lease: The invocation's. If it was lost, nothing happens.
        finished: Whether the graph came to its end by itself, and did not raise.
        now_us: Microseconds since the epoch, UTC.
        limits: What its run may use, for the record if that has none yet.
        exhausted: How its budget was spent, if it ended because of that.

    Returns:
        Whether it was held.
    """
    if not leases.release(tx, lease.thread_id, lease.epoch, now_us=now_us):
        return False
    lost_calls.adopt_early(tx, lease.thread_id, below=lease.epoch + 1)
    active_time.count(tx, lease.thread_id, since_us=lease.acquired_us, until_us=now_us)
    head = tx.maybe("run_at_head", thread_id=lease.thread_id)
    if head is None or RunStatus(head["status"]).ended:
        return True
    if limits and tx.one("run_get", run=head["run"])["started_us"] >= lease.acquired_us:  # it is this invocation's
        budgets.set_limits(tx, head["run"], limits, now_us=now_us)
    run, status, at = head["run"], RunStatus(head["status"]), At(lease.thread_id, head["checkpoint_id"], now_us)
    if control.see_to(tx, run, at):
        return True
    is_its_own = exhausted is not None and exhausted.get("thread_id") == lease.thread_id
    if exhausted is not None and is_its_own and tx.maybe("interrupt_open", run=run) is None:
        runs.move(tx, run, RunStatus.BUDGET_EXHAUSTED, at, details=dict(exhausted))
    elif status is RunStatus.RUNNING:
        runs.move(tx, run, RunStatus.IDLE, at, details={"reason": "stopped"})
    elif status is RunStatus.IDLE and finished and _has_nothing_left(tx, run):
        runs.move(tx, run, RunStatus.SUCCEEDED, at)
    return True


def _has_nothing_left(tx: Tx, run: int) -> bool:
    last = tx.maybe("run_last_event", run=run)
    return last is not None and canonical.decode((last["details"] or "{}").encode()).get("reason") == runs.NOTHING_LEFT
