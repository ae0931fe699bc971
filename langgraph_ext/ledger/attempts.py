"""Attempts: the physical executions of a visit, and the moves that their rows may make.

    running ⇄ paused → succeeded, failed, cancelled, timed_out, interrupted
                                          cancelled → timed_out

Paused and succeeded are reached with a marker only, by `settlement.write`; the other ends have none. The move of the
second line corrects: a body cannot know that it was cancelled by a timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.records import AttemptStatus, EffectClass
from langgraph_ext.ledger.texts import cut

__all__ = [
    "Attempt",
    "AttemptStatus",
    "EffectClass",
    "Error",
    "Part",
    "append_attempt_event",
    "cancel_paused",
    "end",
    "find",
    "go_on",
    "have_timed_out",
    "interrupt_left",
    "is_authorized",
    "last_of",
    "may_move",
    "of_run",
    "parts_of",
    "start",
    "writes_of",
]


Error = tuple[str, str, str | None]
"""Type, message and code of what was raised."""

_ENDS = frozenset(status for status in AttemptStatus if status.ended)

_MOVES: Mapping[AttemptStatus, frozenset[AttemptStatus]] = {
    AttemptStatus.RUNNING: _ENDS | {AttemptStatus.PAUSED},
    AttemptStatus.PAUSED: _ENDS | {AttemptStatus.RUNNING},
    **dict.fromkeys(_ENDS, frozenset[AttemptStatus]()),
    AttemptStatus.CANCELLED: frozenset((AttemptStatus.TIMED_OUT,)),
}
"""Every move there is. Each is made by compare-and-set, on a row whose status is the one it starts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One row of `attempt`, as the transaction read it; without marker and writes, which may be large."""

    attempt_id: str
    run: int
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    ordinal: int
    """Which attempt-bearing part of its task, from 0."""
    number: int
    """Which attempt of its visit, from 1."""
    epoch: int
    """The fencing epoch of the lease it runs under."""
    status: AttemptStatus
    digest: str | None
    """Of its marker: how it ended or, once it goes on, paused last."""
    node: str
    kind: str | None
    """What its node says that it is, for whoever lists them."""
    effect: EffectClass
    started_us: int
    """Microseconds since the epoch, UTC; so are the next two."""
    ended_us: int | None
    authorized_us: int | None
    """When somebody let the next attempt act in spite of how this one ended."""
    function: str
    """What it executes: module and qualified name."""
    arguments: str
    """The digest of what that was called with; empty for the task's own function, of which there is one."""


class Part(NamedTuple):
    """One durable call of a task, as it is on record."""

    ordinal: int
    """Which one, from 0."""
    function: str
    arguments: str
    holds: bool
    """Whether it would matter that another call is taken for it: it has a result, effects or a question."""
    attempt_id: str
    """Its last attempt."""


def may_move(status: AttemptStatus, target: AttemptStatus) -> bool:
    """Whether there is such a move."""
    return target in _MOVES[status]


def find(tx: Tx, attempt_id: str) -> Attempt | None:
    """The attempt of this id, or None."""
    row = tx.maybe("attempt_get", attempt_id=attempt_id)
    return None if row is None else _from_row(row)


def start(
    tx: Tx,
    *,
    attempt_id: str,
    run: int,
    thread_id: str,
    checkpoint_ns: str,
    checkpoint_id: str,
    task_id: str,
    ordinal: int,
    epoch: int,
    now_us: int,
    node: str = "",
    kind: str | None = None,
    effect: EffectClass = EffectClass.NONE,
    function: str = "",
    arguments: str = "",
) -> Attempt:
    """Begin the next attempt of a visit. Beginning the same one again changes nothing.

    Whether one may begin is not asked here: that is its admission's business.
    """
    tx.run(
        "attempt_start",
        attempt_id=attempt_id,
        run=run,
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=checkpoint_id,
        task_id=task_id,
        ordinal=ordinal,
        epoch=epoch,
        node=node,
        kind=kind,
        effect=effect,
        started_us=now_us,
        function=function,
        arguments=arguments,
    )
    return _from_row(tx.one("attempt_get", attempt_id=attempt_id))


def last_of(tx: Tx, thread_id: str, checkpoint_id: str, task_id: str, ordinal: int) -> Attempt | None:
    """The newest attempt of a visit, or of one of its parts; None if there is none."""
    where = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "task_id": task_id, "ordinal": ordinal}
    row = tx.maybe("attempt_last", **where)
    return None if row is None else _from_row(row)


def is_authorized(tx: Tx, attempt: Attempt) -> bool:
    """Whether somebody let an attempt act, in spite of what the one before has left in doubt."""
    where = {"thread_id": attempt.thread_id, "checkpoint_id": attempt.checkpoint_id, "task_id": attempt.task_id}
    before = tx.maybe("attempt_before", **where, ordinal=attempt.ordinal, number=attempt.number)
    return before is not None and before["authorized_us"] is not None


def parts_of(tx: Tx, thread_id: str, checkpoint_id: str, task_id: str) -> list[Part]:
    """The durable calls of a task that are on record, in the order of their numbers."""
    rows = tx.all("attempt_parts", thread_id=thread_id, checkpoint_id=checkpoint_id, task_id=task_id)
    last = {row["ordinal"]: row for row in rows}
    return [
        Part(ordinal, row["function"], row["arguments"], bool(row["holds"]), row["attempt_id"])
        for ordinal, row in last.items()
    ]


def of_run(tx: Tx, run: int) -> list[Attempt]:
    """The attempts of a run, in the order in which they started."""
    found = [_from_row(row) for row in tx.all("attempts_of_run", run=run)]
    return sorted(found, key=lambda attempt: (attempt.started_us, attempt.number, attempt.attempt_id))


def of_node(tx: Tx, *, run: int, **kind: object) -> list[Attempt]:
    """The attempts of a run at visits of one kind (`visit_rows.Kind`), in the order in which they started."""
    found = [_from_row(row) for row in tx.all("attempts_of_node", run=run, **kind)]
    return sorted(found, key=lambda attempt: (attempt.started_us, attempt.number, attempt.attempt_id))


def writes_of(tx: Tx, attempt: Attempt) -> bytes:
    """The serialized result that stands beside an attempt's marker."""
    writes: bytes = tx.one("attempt_writes", attempt_id=attempt.attempt_id)["writes"]
    return writes


def go_on(tx: Tx, attempt: Attempt, *, epoch: int, now_us: int) -> Attempt:
    """A paused attempt runs again, as the same attempt, under the epoch of the lease that takes it on."""
    tx.run("attempt_go_on", attempt_id=attempt.attempt_id, epoch=epoch)
    resumed = replace(attempt, status=AttemptStatus.RUNNING, epoch=epoch)
    append_attempt_event(tx, resumed, "resumed", now_us=now_us)
    return resumed


def end(tx: Tx, attempt: Attempt, target: AttemptStatus, *, now_us: int, error: Error | None = None) -> bool:
    """End an attempt whose body raised or was cancelled (rule L49), with the event that says so.

    Args:
        tx: The transaction of the wrapper.
        attempt: The attempt.
        target: `failed`, `cancelled`, `timed_out` or `interrupted`.
        now_us: Microseconds since the epoch, UTC.
        error: Type, message and code of what it raised.

    Returns:
        Whether it ended now; False if it stands otherwise by now.
    """
    current = find(tx, attempt.attempt_id)
    if current is None or current.epoch != attempt.epoch or not may_move(current.status, target):
        return False
    more: dict[str, object] = {}
    if error is not None:
        more = {"error_type": error[0], "error_message": cut(error[1]), "error_code": error[2]}
    return _end(tx, current, target, now_us=now_us, **more)


def have_timed_out(tx: Tx, attempt_ids: Iterable[str], *, now_us: int) -> None:
    """It has come out that the bodies of these attempts were cancelled by a timeout. Again changes nothing.

    Args:
        tx: The transaction that stores what proves it, or that precedes the next attempt.
        attempt_ids: Attempts that were cancelled.
        now_us: Microseconds since the epoch, UTC.
    """
    for attempt_id in attempt_ids:
        attempt = find(tx, attempt_id)
        if attempt is None:
            continue
        if attempt.status is AttemptStatus.RUNNING:  # its own record of that is on its way
            _end(tx, attempt, AttemptStatus.TIMED_OUT, now_us=now_us)
        elif tx.run("attempt_timed_out", attempt_id=attempt_id):
            append_attempt_event(tx, attempt, AttemptStatus.TIMED_OUT, now_us=now_us)


def interrupt_left(tx: Tx, thread_id: str, *, epoch: int, now_us: int) -> tuple[str, ...]:
    """Give up what the owners of earlier epochs left running on a thread; their ends can come no more.

    Args:
        tx: The transaction of an admission.
        thread_id: The thread.
        epoch: The present lease's: its own attempts run on.
        now_us: Microseconds since the epoch, UTC.

    Returns:
        The ids of the attempts that are interrupted now, the oldest epoch first.
    """
    left = [_from_row(row) for row in tx.all("attempts_left", thread_id=thread_id, epoch=epoch)]
    return tuple(
        attempt.attempt_id
        for attempt in left
        if _end(tx, attempt, AttemptStatus.INTERRUPTED, now_us=now_us, reason="owner_lost")
    )


def cancel_paused(tx: Tx, run: int, *, now_us: int) -> None:
    """No answer is to come any more: the attempts of a run that wait for one are cancelled."""
    for row in tx.all("attempts_paused", run=run):
        _end(tx, _from_row(row), AttemptStatus.CANCELLED, now_us=now_us)


def append_attempt_event(tx: Tx, attempt: Attempt, what: str, *, now_us: int, **more: Any) -> None:
    """Append `attempt.<what>`, for a move that was just made."""
    append_event(
        tx,
        name=f"attempt.{what}",
        run=attempt.run,
        thread_id=attempt.thread_id,
        checkpoint_ns=attempt.checkpoint_ns,
        checkpoint_id=attempt.checkpoint_id,
        details={
            "attempt_id": attempt.attempt_id,
            "task_id": attempt.task_id,
            "ordinal": attempt.ordinal,
            "number": attempt.number,
            **more,
        },
        stored_us=now_us,
    )


def _end(tx: Tx, attempt: Attempt, target: AttemptStatus, *, now_us: int, **more: Any) -> bool:
    """End an attempt without a marker, if it still stands where it was read; an event says so."""
    assert may_move(attempt.status, target), f"{attempt.status} -> {target} is not a move"
    key = attempt.attempt_id
    moved = tx.run("attempt_end", attempt_id=key, expected=attempt.status, target=target, ended_us=now_us) == 1
    if moved:
        append_attempt_event(tx, attempt, target, now_us=now_us, **more)
    return moved


def _from_row(row: Row) -> Attempt:
    return Attempt(
        attempt_id=row["attempt_id"],
        run=row["run"],
        thread_id=row["thread_id"],
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        ordinal=row["ordinal"],
        number=row["number"],
        epoch=row["epoch"],
        status=AttemptStatus(row["status"]),
        digest=row["digest"],
        node=row["node"],
        kind=row["kind"],
        effect=EffectClass(row["effect"]),
        started_us=row["started_us"],
        ended_us=row["ended_us"],
        authorized_us=row["authorized_us"],
        function=row["function"],
        arguments=row["arguments"],
    )
