"""Runs: how they begin, go on and end, learned from the root checkpoints that are stored.

State machine (the only legal moves; `_MOVES` below is the same table):

    begin ──▶ running ◀──▶ paused, idle, failed       a question; a stop without an end; an error
              running, paused, idle, failed ──▶ recovery_required    something is in doubt
              recovery_required ──▶ running, idle                    a node acts again; its invocation is over
              paused ──▶ idle, failed    idle, failed ──▶ paused, failed
              all of them ──▶ succeeded, cancelled
              running, paused, idle, failed ──▶ budget_exhausted ──▶ idle    its budget is spent; it was raised

`update_state` on an open run takes its questions away: a paused one is idle then, one with nothing left has succeeded.
Elsewhere it begins a run, idle at first, if it leaves something to run.

A run begins with an input, with a fork, or when a graph goes on where no run is open. `plan` looks and decides, `apply`
writes: the checkpoint's row is stored in between, with the number of its run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError, BudgetExhausted
from langgraph_ext.ledger import attempts
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.interrupts import close_at, close_of_run
from langgraph_ext.ledger.records import InboxKind, InterruptStatus, RunStatus
from langgraph_ext.ledger.requests import Request, begin

__all__ = [
    "STATUS_AFTER",
    "At",
    "Ending",
    "Parent",
    "Plan",
    "Step",
    "apply",
    "begin_apart",
    "begin_at",
    "has_child",
    "has_nothing_left",
    "is_apart",
    "is_cancelled",
    "is_over",
    "move",
    "plan",
    "refuse_cancelled",
    "refuse_exhausted",
    "why",
]

_STOPPED = frozenset((RunStatus.PAUSED, RunStatus.IDLE, RunStatus.FAILED, RunStatus.RECOVERY_REQUIRED))

_OPEN = _STOPPED | {RunStatus.RUNNING}

_OVER = frozenset((RunStatus.SUCCEEDED, RunStatus.CANCELLED))
"""Ended for good; a raise reopens a run that has spent its budget."""

_MOVES = {
    RunStatus.RUNNING: _STOPPED,
    RunStatus.PAUSED: {RunStatus.RUNNING, RunStatus.IDLE, RunStatus.FAILED},
    RunStatus.IDLE: {
        RunStatus.RUNNING,
        RunStatus.PAUSED,
        RunStatus.RECOVERY_REQUIRED,
        RunStatus.BUDGET_EXHAUSTED,
    },
    RunStatus.FAILED: {RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.IDLE, RunStatus.FAILED},
    RunStatus.RECOVERY_REQUIRED: _OPEN - {RunStatus.RECOVERY_REQUIRED},
    RunStatus.SUCCEEDED: _OPEN,
    RunStatus.CANCELLED: _OPEN,
    RunStatus.BUDGET_EXHAUSTED: _OPEN - {RunStatus.RECOVERY_REQUIRED},
}
"""`target -> the statuses it may follow`."""

_EVENTS = {
    RunStatus.RUNNING: "run.resumed",
    RunStatus.PAUSED: "run.paused",
    RunStatus.IDLE: "run.stopped",
    RunStatus.FAILED: "run.failed",
    RunStatus.RECOVERY_REQUIRED: "run.recovery_required",
    RunStatus.SUCCEEDED: "run.succeeded",
    RunStatus.CANCELLED: "run.cancelled",
    RunStatus.BUDGET_EXHAUSTED: "run.budget_exhausted",
}

STATUS_AFTER = {"run.started": RunStatus.RUNNING} | {event: status for status, event in _EVENTS.items()}
"""The status that each event leaves a run in."""

_NOTHING_LEFT = "nothing_left"
"""Reason of a run that stopped where nothing starts a task, and nothing says that this is an end."""

_EDITED = "edited"


class Ending(StrEnum):
    """What a root checkpoint says about its run's end."""

    GOES_ON = "goes_on"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    """Nothing in it starts a task, and nothing says that this is an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A root checkpoint, as far as the ledger is concerned."""

    thread_id: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    """Metadata's."""
    source: str | None
    """Metadata's: `input`, `loop`, `update`, `fork`."""
    from_graph: bool
    """Whether a running graph stores it, and not a program or `update_state`."""
    ending: Ending
    stored_us: int
    request: Request | None = None
    """What a run begins with that it begins."""
    epoch: int | None = None
    """Under which epoch it is stored; None if under no lease."""


class At(NamedTuple):
    """Where and when a run changes."""

    thread_id: str
    checkpoint_id: str
    """Of the root graph."""
    now_us: int


class Open(NamedTuple):
    """A run that is not over, as it stands before a checkpoint is stored."""

    status: RunStatus
    last_id: str
    """The root checkpoint at which its status changed last."""
    asks: bool
    """Whether a question of it is pending."""


class Plan(NamedTuple):
    """To which run a checkpoint belongs, and what that changes."""

    run: int
    open: Open | None = None
    """As it stands; None if it begins."""
    run_id: str = ""
    fork_of: str | None = None
    supersedes: int | None = None
    """A run that its input closes."""
    adopts: str | None = None
    """Its parent, if that belongs to no run: the tasks that ran there led to this run."""
    known: bool = False
    """Whether the checkpoint was stored before."""

    @property
    def begins(self) -> bool:
        """Whether the run begins with it."""
        return self.open is None and not self.known


def plan(tx: Tx, step: Step) -> Plan | None:
    """Decide to which run a root checkpoint belongs; None if to none. Writes nothing."""
    places = _places(tx, step.thread_id, step.checkpoint_id, step.parent_id)
    stored = places.get(step.checkpoint_id)
    if stored is not None:
        return None if stored["owner"] is None else Plan(stored["owner"], known=True)
    parent = None if step.parent_id is None else places.get(step.parent_id)
    lineage = _lineage(tx, step.thread_id, step.checkpoint_id, parent)
    branches = lineage.branches or step.source == "fork"
    around = None if branches else lineage.parent_run  # the open run that it stands in
    if around is not None and around["status"] not in _OPEN:
        around = None
    is_input = step.source == "input" and step.from_graph
    if step.source == "loop" and step.from_graph and not branches and lineage.parent_run is not None:
        refuse_cancelled(tx, lineage.parent_run, step.thread_id)
    if around is not None and not is_input:
        return Plan(around["run"], Open(RunStatus(around["status"]), around["last_id"], bool(around["asks"])))
    if not step.from_graph and (lineage.run is None or step.ending is not Ending.GOES_ON):
        return None
    begun = _begun(tx, step.thread_id, step.checkpoint_id, step.run_id, lineage.run if branches else None)
    return begun._replace(
        supersedes=None if around is None else around["run"],
        adopts=step.parent_id if step.source == "loop" and not branches and _is_unclaimed(tx, step, parent) else None,
    )


def is_cancelled(tx: Tx, run: int) -> bool:
    """Whether a run has ended because somebody asked (control.py), and not because new input superseded it."""
    return tx.maybe("inbox_consumed", run=run, kind=InboxKind.CANCEL) is not None


def refuse_cancelled(tx: Tx, run: Row, thread_id: str) -> None:
    """Who goes on with a run that somebody has cancelled is refused, and begins no other run by that.

    Raises:
        AdmissionError: It does (`cancelled`).
    """
    if run["status"] != RunStatus.CANCELLED or not is_cancelled(tx, run["run"]):
        return
    raise AdmissionError(
        f"thread {thread_id!r}: run {run['run_id']!r} was cancelled, and nothing more of it is run; new input begins "
        "another run",
        code="cancelled",
        details={"thread_id": thread_id, "run_id": run["run_id"]},
    )


def refuse_exhausted(run: Row, thread_id: str) -> None:
    """Who goes on with a run that has ended by its budget is refused, until somebody has raised that.

    Only invocations of attached graphs, which budgets are for, and durable nodes ask. A put does not: under durability
    `exit` it does not say whether it goes on, or was begun by new input.

    Raises:
        BudgetExhausted: It does (`budget_exhausted`).
    """
    if run["status"] == RunStatus.BUDGET_EXHAUSTED:
        raise BudgetExhausted(
            f"thread {thread_id!r}: run {run['run_id']!r} has ended because its budget is spent. Raise it with "
            "ledger.raise_budget(run_id, …) and invoke again to go on; new input begins another run",
            details={"thread_id": thread_id, "run_id": run["run_id"]},
        )


def _begun(tx: Tx, thread_id: str, checkpoint_id: str, run_id: str | None, forked: Row | None) -> Plan:
    number, name = _number_and_name(tx, run_id, checkpoint_id)
    return Plan(number, run_id=name, fork_of=None if forked is None else forked["run_id"])


def _is_unclaimed(tx: Tx, step: Step, parent: Row | None) -> bool:
    """Whether tasks have run at a checkpoint's parent, and it belongs to no run: they led to the one that begins."""
    if parent is None or parent["owner"] is not None:
        return False
    return tx.maybe("place_visit", thread_id=step.thread_id, checkpoint_id=step.parent_id) is not None


def apply(tx: Tx, planned: Plan, step: Step) -> RunStatus | None:
    """Record what storing the checkpoint changes; returns the run's status, None if nothing is said about it."""
    if planned.known:
        return None
    at = At(step.thread_id, step.checkpoint_id, step.stored_us)
    if not step.from_graph and not planned.begins:
        _edit(tx, planned.run, step, at)
        return None
    if planned.supersedes is not None:
        _supersede(tx, planned, at)
    if planned.open is None:
        _begin(tx, planned, At(step.thread_id, planned.adopts or step.checkpoint_id, step.stored_us), step)
        status = RunStatus.RUNNING
    else:
        if planned.open.asks and step.parent_id is not None:  # it went on behind the questions asked there
            close_at(tx, step.thread_id, step.parent_id, InterruptStatus.ANSWERED, now_us=step.stored_us)
        status = _go_on(tx, planned.run, planned.open, step, at)
    if not step.from_graph:
        return _move(tx, planned.run, status, RunStatus.IDLE, at, details={"reason": _EDITED})
    if step.ending is Ending.SETTLED:
        if planned.open is not None and planned.open.asks:
            close_of_run(tx, step.thread_id, planned.run, InterruptStatus.SUPERSEDED, now_us=step.stored_us)
        return _move(tx, planned.run, status, RunStatus.SUCCEEDED, at)
    if step.ending is Ending.UNKNOWN:
        return _move(tx, planned.run, status, RunStatus.IDLE, at, details={"reason": _NOTHING_LEFT})
    return status


def begin_at(tx: Tx, at: At) -> int:
    """Begin a run at a stored checkpoint of no run, whose tasks have something to say; returns its number."""
    place = _places(tx, at.thread_id, at.checkpoint_id)[at.checkpoint_id]
    parent = None if place["parent_id"] is None else _place(tx, at.thread_id, place["parent_id"])
    lineage = _lineage(tx, at.thread_id, at.checkpoint_id, parent)
    begun = _begun(tx, at.thread_id, at.checkpoint_id, None, lineage.run if lineage.branches else None)
    _begin(tx, begun._replace(adopts=at.checkpoint_id), at)
    return begun.run


class Parent(NamedTuple):
    """What has started a child run."""

    run_id: str
    attempt_id: str


def begin_apart(tx: Tx, *, run_id: str, thread_id: str, parent: Parent | None = None, now_us: int) -> int:
    """Begin a run that no graph runs, and that has no checkpoints; returns its number."""
    number, name = _number_and_name(tx, run_id, run_id)
    _begin(tx, Plan(number, run_id=name), At(thread_id, "", now_us))
    if parent is not None:
        tx.run("run_is_child", run=number, parent_id=parent.run_id, parent_attempt=parent.attempt_id)
    return number


def is_apart(run: Row) -> bool:
    """Whether it was begun so: the engine alone drives it, and ends it."""
    return bool(run["first_id"] == "")


def is_over(tx: Tx, run: int) -> bool:
    """Whether a run has ended for good, so that none of its attempts may wait for an answer."""
    found = tx.maybe("run_get", run=run)
    return found is not None and RunStatus(found["status"]) in _OVER


def _begin(tx: Tx, planned: Plan, at: At, step: Step | None = None) -> None:
    where = {"run": planned.run, "thread_id": at.thread_id, "checkpoint_id": at.checkpoint_id}
    tx.run("run_insert", **where, run_id=planned.run_id, fork_of=planned.fork_of, now_us=at.now_us)
    if planned.adopts is not None:
        tx.run("place_adopt", **where)
    if step is not None and step.request is not None:
        begin(tx, planned.run, step.request, thread_id=at.thread_id, epoch=step.epoch, now_us=at.now_us)
    _event(tx, "run.started", planned.run, at, {"fork_of": planned.fork_of} if planned.fork_of else None)


def move(
    tx: Tx,
    run: int,
    target: RunStatus,
    at: At,
    *,
    error: tuple[str, str] | None = None,
    details: dict[str, object] | None = None,
) -> None:
    """Move a run along the state machine, with the event that says so.

    It stays where it is if it is there already, or where this move does not start (rule L46: the first terminal status
    wins).

    Args:
        tx: The transaction that makes it move.
        run: Its number.
        target: Where to.
        at: Where and when.
        error: Type and message of what made it fail.
        details: Of the event.
    """
    _move(tx, run, _status(tx, run), target, at, error=error, details=details)


def _move(
    tx: Tx,
    run: int,
    status: RunStatus,
    target: RunStatus,
    at: At,
    *,
    error: tuple[str, str] | None = None,
    details: dict[str, object] | None = None,
) -> RunStatus:
    """As `move`, of a run whose status is known; returns the one it has then."""
    if status not in _MOVES[target]:
        return status
    moved = tx.run(
        "run_move",
        run=run,
        expected=status,
        target=target,
        checkpoint_id=at.checkpoint_id,
        now_us=at.now_us,
        ended_us=at.now_us if target.ended else None,
        error_type=error[0] if error else None,
        error_message=error[1] if error else None,
    )
    assert moved == 1, "nobody else writes in this transaction"
    if target in _OVER:
        attempts.cancel_paused(tx, run, now_us=at.now_us)
    if error:
        details = {**(details or {}), "error_type": error[0], "error_message": error[1]}
    _event(tx, _EVENTS[target], run, at, details)
    return target


def _go_on(tx: Tx, run: int, open: Open, step: Step, at: At) -> RunStatus:
    """A checkpoint that follows the one at which its run stopped, failed or asked shows that it runs again.

    One that was being executed then does not: under durability `async` it may be stored after what its tasks did.
    """
    stays_idle = step.ending is Ending.UNKNOWN and open.status is RunStatus.IDLE
    if open.last_id < step.checkpoint_id and not stays_idle:
        return _move(tx, run, open.status, RunStatus.RUNNING, at)
    return open.status


def _edit(tx: Tx, run: int, step: Step, at: At) -> None:
    """`update_state` at the head of an open run: its tasks begin anew, and what the old ones asked is void."""
    close_of_run(tx, step.thread_id, run, InterruptStatus.SUPERSEDED, now_us=step.stored_us)
    attempts.cancel_paused(tx, run, now_us=step.stored_us)
    if step.ending is Ending.SETTLED:
        move(tx, run, RunStatus.SUCCEEDED, at)
    else:  # a loop that still runs it is refused from here on (L15); a failed one stays failed, which says more
        move(tx, run, RunStatus.IDLE, at, details={"reason": _EDITED})


def _supersede(tx: Tx, planned: Plan, at: At) -> None:
    """New input on a thread whose last run is open: that one comes to nothing more."""
    old = planned.supersedes
    assert old is not None
    nothing_left = has_nothing_left(tx, old)
    close_of_run(tx, at.thread_id, old, InterruptStatus.SUPERSEDED, now_us=at.now_us)
    if nothing_left:
        move(tx, old, RunStatus.SUCCEEDED, at)
    else:
        move(tx, old, RunStatus.CANCELLED, at, details={"reason": "superseded", "by": planned.run_id})


def has_nothing_left(tx: Tx, run: int) -> bool:
    """Whether a run stopped last where nothing starts a task, and nothing says that this is an end."""
    return why(tx, run).get("reason") == _NOTHING_LEFT


def why(tx: Tx, run: int) -> dict[str, Any]:
    """Details of the event that gave a run the status it has; empty if it has none."""
    last = tx.maybe("run_last_event", run=run, event=_EVENTS[_status(tx, run)])
    found: dict[str, Any] = canonical.decode(((last and last["details"]) or "{}").encode())
    return found


def _status(tx: Tx, run: int) -> RunStatus:
    return RunStatus(tx.one("run_get", run=run)["status"])


def _places(tx: Tx, thread_id: str, checkpoint_id: str, parent_id: str | None = None) -> dict[str, Row]:
    """Two root checkpoints, as far as they are stored, by their ids; `run` is None if theirs was deleted meanwhile."""
    found = tx.all("places_of_step", thread_id=thread_id, checkpoint_id=checkpoint_id, parent_id=parent_id)
    return {row["checkpoint_id"]: row for row in found}


def _place(tx: Tx, thread_id: str, checkpoint_id: str) -> Row | None:
    return _places(tx, thread_id, checkpoint_id).get(checkpoint_id)


class Lineage(NamedTuple):
    """What a checkpoint comes from."""

    run: Row | None
    """The run of the nearest ancestor that has one."""
    parent_run: Row | None
    """The same, if that ancestor is the parent."""
    branches: bool
    """Whether that ancestor, or one in between, has another child."""


def _lineage(tx: Tx, thread_id: str, checkpoint_id: str, parent: Row | None) -> Lineage:
    path, place = [checkpoint_id], parent
    while place is not None and place["run"] is None:
        path.append(place["checkpoint_id"])
        place = None if place["parent_id"] is None else _place(tx, thread_id, place["parent_id"])
    if place is None:
        # However long the way was (a copied thread has no run at all), nothing branches off one.
        return Lineage(None, None, branches=False)
    if place is parent and place["newest_id"] == place["checkpoint_id"]:
        return Lineage(place, place, branches=False)  # nearly always
    path.append(place["checkpoint_id"])
    branches = any(has_child(tx, thread_id, above, but=below) for below, above in pairwise(path))
    return Lineage(place, place if place is parent else None, branches)


def has_child(tx: Tx, thread_id: str, checkpoint_id: str, *, but: str = "") -> bool:
    """Whether a root checkpoint has a child besides `but`."""
    newest = tx.maybe("place_newest", thread_id=thread_id)
    if newest is not None and newest["checkpoint_id"] == checkpoint_id:
        return False
    return tx.maybe("place_child", thread_id=thread_id, parent_id=checkpoint_id, checkpoint_id=but) is not None


def _number_and_name(tx: Tx, run_id: str | None, checkpoint_id: str) -> tuple[int, str]:
    """A number that no run ever had: the log's, which never come again, and each run begins with a row of it.

    Its name is metadata's run id, or else the checkpoint's; with the number, which no other has, if both are taken.
    """
    name = checkpoint_id if run_id is None else run_id
    last = tx.one("run_last", run_id=name)
    number = max(last["run"] or 0, last["seq"] or 0) + 1
    if not last["taken"]:
        return number, name
    if name != checkpoint_id and tx.maybe("run_named", run_id=checkpoint_id) is None:
        return number, checkpoint_id
    return number, f"{checkpoint_id}:{number}"


def _event(tx: Tx, name: str, run: int, at: At, details: dict[str, object] | None) -> None:
    append_event(
        tx,
        name=name,
        run=run,
        thread_id=at.thread_id,
        checkpoint_ns="",
        checkpoint_id=at.checkpoint_id,
        details=details,
        stored_us=at.now_us,
    )
