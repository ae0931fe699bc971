"""Calls: what a task's writes say about its run, when they are more than output (rules L9, L24).

The call's own row says how the visit went; here is what follows from it for the run and its questions, in the same
transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.interrupts import Place, Question, answer_up_to, ask
from langgraph_ext.ledger.records import RunStatus, VisitStatus
from langgraph_ext.ledger.runs import At, move

__all__ = ["Call", "check_identity", "record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `put_writes` that is more than output, as far as the ledger is concerned."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    task_path: str
    outcome: VisitStatus | None
    """None if no task made it."""
    error: tuple[str, str] | None
    """Type and message."""
    handled: bool
    """Whether an error handler takes the error over."""
    answers: int
    """How many answers the task says it was given."""
    questions: tuple[Question, ...]
    resumes: bool
    """Whether it is an answer on its way to a task."""
    stored_us: int


def check_identity(tx: Tx, call: Call) -> None:
    """Refuse a task that was seen under another namespace or path (rules L1, L2).

    Raises:
        ConflictError: It was (`task_identity_conflict`).
    """
    if call.outcome is None:
        return
    for seen in tx.all("namespaces_of", thread_id=call.thread_id):
        where = {"checkpoint_ns": seen["checkpoint_ns"], "checkpoint_id": call.checkpoint_id, "task_id": call.task_id}
        known = tx.maybe("call_of_task", thread_id=call.thread_id, **where)
        if known is None:
            continue
        if seen["checkpoint_ns"] != call.checkpoint_ns or known["task_path"] != call.task_path:
            raise ConflictError(
                f"task {call.task_id!r} of checkpoint {call.checkpoint_id!r} was recorded in namespace "
                f"{seen['checkpoint_ns']!r} as {known['task_path']!r}, and comes in {call.checkpoint_ns!r} as "
                f"{call.task_path!r}; a task never changes its place: pass the config and the path LangGraph gave",
                code="task_identity_conflict",
                details={"thread_id": call.thread_id, "task_id": call.task_id},
            )


def record(tx: Tx, call: Call) -> int | None:
    """Record what a call says beyond its output; returns the run's number, None if it belongs to no run."""
    run, root_id = _run_of(tx, call)
    if run is None or RunStatus(tx.one("run_get", run=run)["status"]).ended:
        return run
    place = Place(
        run=run,
        thread_id=call.thread_id,
        checkpoint_ns=call.checkpoint_ns,
        checkpoint_id=call.checkpoint_id,
        root_id=root_id,
        task_id=call.task_id,
        task_path=call.task_path,
        now_us=call.stored_us,
    )
    if call.answers:
        answer_up_to(tx, place, call.answers)
    ask(tx, place, call.questions)
    at = At(call.thread_id, root_id, call.stored_us)
    if call.resumes:
        move(tx, run, RunStatus.RUNNING, at)
    if call.questions:
        move(tx, run, RunStatus.PAUSED, at)
    elif call.error is not None and not call.checkpoint_ns and not call.handled:
        if call.outcome is VisitStatus.CANCELLED:
            move(tx, run, RunStatus.IDLE, at, details={"reason": "cancelled"})
        else:
            move(tx, run, RunStatus.FAILED, at, error=call.error)
    return run


def _run_of(tx: Tx, call: Call) -> tuple[int | None, str]:
    """The run of a call's checkpoint, and the root checkpoint being executed.

    Under durability `async` a task's writes may come before its checkpoint: then it is the thread's newest run.
    """
    where = {"thread_id": call.thread_id, "checkpoint_id": call.checkpoint_id}
    place = tx.maybe("place_get", **where, checkpoint_ns=call.checkpoint_ns)
    root_id: str = call.checkpoint_id
    if place is not None and call.checkpoint_ns and place["root_id"] is not None:
        root_id = place["root_id"]
        place = tx.maybe("place_get", thread_id=call.thread_id, checkpoint_id=root_id, checkpoint_ns="")
    if place is not None:
        return place["run"], root_id
    newest = tx.maybe("run_newest", thread_id=call.thread_id)
    return (None if newest is None or RunStatus(newest["status"]).ended else newest["run"]), root_id
