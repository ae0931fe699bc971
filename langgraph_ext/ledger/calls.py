"""Calls: what a task's writes say about its run, when they are more than output (rules L9, L24).

The call's own row says how the visit went; here is what follows from it for the run and its questions, in the same
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.interrupts import Place, Question, answer_up_to, ask, close_passed
from langgraph_ext.ledger.records import RunStatus, VisitStatus
from langgraph_ext.ledger.runs import At, begin_at, has_child, move

__all__ = ["Call", "check_identity", "record", "record_early"]


_NAMESPACES = 32
"""In so many namespaces of its thread a task is looked for; a thread may have one for each run of a subgraph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `put_writes` that is more than output, as far as the ledger is concerned."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    root_id: str
    """The root checkpoint that is being executed."""
    around: tuple[tuple[str, str], ...]
    """Namespace and checkpoint of each subgraph that encloses the task, its own included."""
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
    namespaces = {row["checkpoint_ns"] for row in tx.all("namespaces_of", thread_id=call.thread_id, size=_NAMESPACES)}
    for checkpoint_ns in sorted(namespaces | {call.checkpoint_ns, ""}):
        where = {"checkpoint_ns": checkpoint_ns, "checkpoint_id": call.checkpoint_id, "task_id": call.task_id}
        known = tx.maybe("call_of_task", thread_id=call.thread_id, **where)
        if known is None:
            continue
        if checkpoint_ns != call.checkpoint_ns or known["task_path"] != call.task_path:
            raise ConflictError(
                f"task {call.task_id!r} of checkpoint {call.checkpoint_id!r} was recorded in namespace "
                f"{checkpoint_ns!r} as {known['task_path']!r}, and comes in {call.checkpoint_ns!r} as "
                f"{call.task_path!r}; a task never changes its place: pass the config and the path LangGraph gave",
                code="task_identity_conflict",
                details={"thread_id": call.thread_id, "task_id": call.task_id},
            )


def record(tx: Tx, call: Call) -> bool:
    """Record what a call says beyond its output; False, and nothing is, if its root checkpoint is not stored yet.

    Under durability `async` a task's writes may come before it, and only it says whose they are: record it again then.
    """
    root = tx.maybe("place_get", thread_id=call.thread_id, checkpoint_ns="", checkpoint_id=call.root_id)
    if root is None:
        return False
    at = At(call.thread_id, call.root_id, call.stored_us)
    # What is done again where the run has gone on already says nothing of it.
    passed = has_child(tx, call.thread_id, call.root_id)
    run = None if passed else _open_run(tx, root["run"], at)
    if run is None:
        return True
    place = Place(
        run=run,
        thread_id=call.thread_id,
        checkpoint_ns=call.checkpoint_ns,
        checkpoint_id=call.checkpoint_id,
        root_id=call.root_id,
        around=call.around,
        task_id=call.task_id,
        task_path=call.task_path,
        now_us=call.stored_us,
    )
    if call.answers:
        answer_up_to(tx, place, call.answers)
    if call.checkpoint_ns:
        close_passed(tx, place)
    ask(tx, place, call.questions)
    if call.resumes:
        move(tx, run, RunStatus.RUNNING, at)
    if call.questions:
        _pause(tx, run, at)
    elif call.error is not None and not call.checkpoint_ns and not call.handled:
        if call.outcome is VisitStatus.CANCELLED:
            _stop(tx, run, at)
        elif _is_news(tx, run, call):
            move(tx, run, RunStatus.FAILED, at, error=call.error)
    return True


def _open_run(tx: Tx, run: int | None, at: At) -> int | None:
    """The run of a root checkpoint, if it is open; one begins there if it belongs to none."""
    if run is None:
        return begin_at(tx, at)
    found = tx.maybe("run_get", run=run)
    if found is None or found["thread_id"] != at.thread_id or RunStatus(found["status"]).ended:
        return None
    return run


def _pause(tx: Tx, run: int, at: At) -> None:
    """A task asks. One that is replayed may ask what was answered before: only an open question pauses its run."""
    if tx.maybe("interrupt_open", run=run) is not None:
        move(tx, run, RunStatus.PAUSED, at)


def _stop(tx: Tx, run: int, at: At) -> None:
    """A task was cancelled. Where another one has failed or asks, it was for that; a question is open still."""
    if tx.one("run_get", run=run)["status"] == RunStatus.RUNNING:
        move(tx, run, RunStatus.IDLE, at, details={"reason": "cancelled"})


def _is_news(tx: Tx, run: int, call: Call) -> bool:
    """Whether a failure tells more than that its run has failed: the first one does, and a task's second one."""
    if tx.one("run_get", run=run)["status"] != RunStatus.FAILED:
        return True
    where = {"checkpoint_ns": call.checkpoint_ns, "checkpoint_id": call.checkpoint_id, "task_id": call.task_id}
    return len(tx.all("failures_of_task", thread_id=call.thread_id, **where)) > 1


def record_early(tx: Tx, early: Iterable[Call]) -> None:
    """Record calls that came before their root checkpoint, now that it is stored. May be repeated."""
    for call in early:
        where = {"checkpoint_ns": call.checkpoint_ns, "checkpoint_id": call.checkpoint_id, "task_id": call.task_id}
        if tx.maybe("call_of_task", thread_id=call.thread_id, **where) is not None:  # it was not rolled back
            record(tx, call)
