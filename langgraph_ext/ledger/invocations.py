"""Invocations: what the beginning and the end of an attached one mean for its thread's run.

Rules L18, L25–L27, L37, L38 and L54.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError, BudgetExhausted, LangGraphExtError
from langgraph_ext.ledger import (
    abandoned,
    active_time,
    budgets,
    control,
    definitions,
    leases,
    lost_calls,
    resuming,
    runs,
)
from langgraph_ext.ledger.definitions import Definition
from langgraph_ext.ledger.dimensions import Amounts
from langgraph_ext.ledger.encoded import Serde
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.requests import Request, reserve
from langgraph_ext.ledger.runs import At

__all__ = ["Arrival", "Begun", "begin", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How an attached invocation comes to its thread."""

    checkpoint_id: str | None
    """The root checkpoint that its config names."""
    run_id: str | None
    """The one that its metadata name: LangGraph goes on with a run of that name, whatever it is given."""
    request: Request | None
    """Its new input; None if it comes without, and goes on."""
    definition: Definition | None
    """Its graph's."""
    refuses_changes: bool
    """Whether it goes on with a run only by the definition that began it."""
    said: resuming.Given | None
    """What its command says to a question, if it does."""
    supersedes: bool
    """Whether its input may take the place of open questions."""
    seen: frozenset[str] | None = None
    """The questions that were open when it came, if it may have to wait for its thread."""


class Begun(NamedTuple):
    """An invocation that has its thread."""

    lease: Lease
    stored: Sequence[resuming.Stored] | None
    """The answers that it is to give to the tasks of the run it goes on with; None where LangGraph is left alone."""
    is_empty: bool = False
    """Whether nothing was ever stored in the thread."""
    goes_on: bool = False
    """Whether it goes on with the run at the head, though it brings an input."""


def take_up(tx: Tx, *, thread_id: str, now_us: int, **asked: Any) -> Lease:
    """As `leases.acquire`, for any invocation: the model calls that another owner has left open are closed."""
    lease = leases.acquire(tx, thread_id=thread_id, now_us=now_us, **asked)
    lost_calls.close_left(tx, thread_id, epoch=lease.epoch, now_us=now_us)
    return lease


def begin(
    tx: Tx, *, thread_id: str, arrival: Arrival, serde: Serde | None, now_us: int, **asked: Any
) -> Begun | LangGraphExtError:
    """Take a thread for an invocation (as `leases.acquire`), and put on record what it says to its questions.

    A config that names another checkpoint than the head travels in time: that is LangGraph's business alone.

    Returns:
        What it has; or, if it goes on with a run that was cancelled (`cancelled`) or has spent its budget
        (`budget_exhausted`), the error that refuses it, to be raised once this is committed: what an owner who is gone
        has left running there comes to its end here, as nobody takes the thread for that run any more.

    Raises:
        AdmissionError: The graph is not what it was when the run that it goes on with began, and it matters
            (`definition_changed`), or its input finds questions open (`questions_open`).
        ConflictError: Another request has, or had, its name (`run_exists`, `run_key_conflict`); what it says answers no
            open question, or one that has another answer (see `resuming.answer`).
        LeaseError: Another invocation holds the thread (`thread_busy`).
        NotFound: It names a question that nobody asks (`interrupt_not_found`).
    """
    head = tx.maybe("run_at_head", thread_id=thread_id)
    if arrival.request is not None:
        is_named_again = head is not None and _is_named_again(head, arrival)
        if head is not None and is_named_again and (refused := _refused(tx, head, thread_id, now_us)) is not None:
            return refused
        lease = take_up(tx, thread_id=thread_id, now_us=now_us, **asked)
        reserve(tx, arrival.request, thread_id=thread_id, epoch=lease.epoch, now_us=now_us)
        _refuse_to_supersede(tx, head, arrival, thread_id)
        return Begun(lease, None, goes_on=is_named_again)
    newest_id = head["checkpoint_id"] if head is not None else tx.one("head_id", thread_id=thread_id)["checkpoint_id"]
    travels = arrival.checkpoint_id not in (None, newest_id)
    if head is not None and not travels and (refused := _refused(tx, head, thread_id, now_us)) is not None:
        return refused
    if arrival.said is not None and travels and arrival.checkpoint_id is not None:
        there = {"thread_id": thread_id, "root_id": arrival.checkpoint_id}
        resuming.refuse_another(tx, arrival.said, **there, serde=serde)
    unknown = head is None and newest_id is not None  # a copied thread, whose questions nobody has recorded
    if arrival.said is not None and not travels and not unknown:
        resuming.answer(tx, arrival.said, thread_id=thread_id, head=head, seen=arrival.seen, serde=serde, now_us=now_us)
    lease = take_up(tx, thread_id=thread_id, now_us=now_us, **asked)
    if head is None or travels:
        return Begun(lease, None, is_empty=newest_id is None)
    return Begun(lease, _go_on(tx, head, arrival, At(thread_id, head["checkpoint_id"], now_us)))


def _refused(tx: Tx, head: Row, thread_id: str, now_us: int) -> LangGraphExtError | None:
    """Why nobody goes on with a run; what an owner who is gone has left running is given up then."""
    try:
        runs.refuse_cancelled(tx, head, thread_id)
        runs.refuse_exhausted(head, thread_id)
    except (AdmissionError, BudgetExhausted) as refused:
        abandoned.give_up(tx, thread_id, now_us=now_us)
        return refused
    return None


def _go_on(tx: Tx, head: Row, arrival: Arrival, at: At) -> Sequence[resuming.Stored] | None:
    """It goes on with the run at the head; returns the answers that it takes along.

    One that names the head and answers nothing takes none: there LangGraph branches off, and asks anew.
    """
    if RunStatus(head["status"]).ended:
        return ()
    if arrival.definition is not None:
        run = tx.one("run_get", run=head["run"])
        definitions.check(tx, run, arrival.definition, refuses=arrival.refuses_changes, now_us=at.now_us)
    if arrival.checkpoint_id is not None and arrival.said is None:
        return None
    stored = resuming.on_record(tx, head["run"])
    if stored:
        runs.move(tx, head["run"], RunStatus.RUNNING, at)
    return stored


def _is_named_again(head: Row, arrival: Arrival) -> bool:
    """Whether an input comes under the name of the run at the head: LangGraph goes on with that, and reads no input."""
    return bool(arrival.checkpoint_id is None and head["run_id"] == arrival.run_id)


def _refuse_to_supersede(tx: Tx, head: Row | None, arrival: Arrival, thread_id: str) -> None:
    """New input finds a run that waits for answers, and is not for another checkpoint than the head."""
    if arrival.supersedes or head is None or arrival.checkpoint_id not in (None, head["checkpoint_id"]):
        return
    if RunStatus(head["status"]).ended or head["run_id"] == arrival.run_id:
        return
    ids = [row["interrupt_id"] for row in tx.all("interrupts_open", run=head["run"])]
    if ids:
        raise AdmissionError(
            f"thread {thread_id!r}: run {head['run_id']!r} has open questions ({', '.join(map(repr, ids[:3]))}), and "
            "new input would take their place; answer them, cancel the run, or attach the graph with "
            'on_open_questions="supersede"',
            code="questions_open",
            details={"thread_id": thread_id, "run_id": head["run_id"], "interrupt_ids": ids},
        )


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

    A run that was asked to end is cancelled; one that was left running is paused if a question of it is open, and idle
    otherwise; one of which nobody knew whether its last checkpoint is an end has succeeded, if the graph says that it
    has finished.
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
    asks = tx.maybe("interrupt_open", run=run) is not None
    is_its_own = exhausted is not None and exhausted.get("thread_id") == lease.thread_id
    if exhausted is not None and is_its_own and not asks and not budgets.was_raised(tx, run, exhausted):
        runs.move(tx, run, RunStatus.BUDGET_EXHAUSTED, at, details=dict(exhausted))
    elif status is RunStatus.RUNNING and asks:
        runs.move(tx, run, RunStatus.PAUSED, at)  # it was stopped on its way to a task that waits for its answer
    elif status is RunStatus.RUNNING:
        runs.move(tx, run, RunStatus.IDLE, at, details={"reason": "stopped"})
    elif status is RunStatus.IDLE and finished and runs.has_nothing_left(tx, run):
        runs.move(tx, run, RunStatus.SUCCEEDED, at)
    return True
