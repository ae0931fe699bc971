"""Inbox: what others ask of a run, from any process (rule L45).

State machine of an entry:

    ask ──▶ waiting ──▶ consumed      the run has done it: it has ended; an attempt has claimed the message
                └─ the run ended otherwise first: it stays as it is, in sight
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import runs
from langgraph_ext.ledger.attempts import Attempt
from langgraph_ext.ledger.encoded import Encoded, Serde, value_of
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.records import CancelMode, InboxEntry, InboxKind, RunStatus
from langgraph_ext.ledger.rows import moment, run_named, text_or_none

__all__ = ["add", "ask_inbox", "ask_to_steer", "claim", "claimed", "inbox_given_out", "refuse_closed"]

_MOST_BYTES = 2 * 1024 * 1024
"""Of a message, encoded."""

_EVENTS = {InboxKind.CANCEL: "run.cancel_requested", InboxKind.STEER: "run.steered"}


def refuse_closed(run: Row) -> None:
    """Nothing more is asked of a run that has ended; nor of one that has failed, if no graph can go on with it.

    Raises:
        ConflictError: It has (`run_closed`).
    """
    is_over = run["status"] == RunStatus.FAILED and runs.is_apart(run)
    if RunStatus(run["status"]).ended or is_over:
        raise ConflictError(
            f"run {run['run_id']!r} is {run['status']}: nothing more can be asked of it",
            code="run_closed",
            details={"run_id": run["run_id"], "status": run["status"]},
        )


def add(
    tx: Tx,
    run: Row,
    kind: InboxKind,
    *,
    mode: CancelMode | None = None,
    reason: str | None = None,
    message: Encoded | None = None,
    now_us: int,
) -> None:
    """Put an entry into a run's inbox, with the event that says so; a message itself does not stand in that."""
    tx.run(
        "inbox_add",
        run=run["run"],
        thread_id=run["thread_id"],
        kind=kind,
        mode=mode,
        at_id=_at(tx, run),
        reason=reason,
        value_type=None if message is None else message.type,
        value=None if message is None else message.data,
        now_us=now_us,
    )
    append_event(
        tx,
        name=_EVENTS[kind],
        run=run["run"],
        thread_id=run["thread_id"],
        checkpoint_ns="",
        checkpoint_id=run["last_id"],
        details={} if mode is None else {"mode": str(mode), "words": reason},
        stored_us=now_us,
    )


def _at(tx: Tx, run: Row) -> str:
    """The newest checkpoint that is being executed: of the step of the innermost graph, as far as it is stored."""
    head = tx.maybe("place_newest", thread_id=run["thread_id"])
    if head is None:
        return str(run["last_id"])
    root_id = head["checkpoint_id"]
    inside = tx.one("place_newest_inside", thread_id=run["thread_id"], root_id=root_id)["checkpoint_id"]
    return str(max(root_id, inside or ""))


def ask_to_steer(run_id: str, message: Encoded, now_us: int) -> Callable[[Tx], None]:
    """Leave a message for a run, ready to be committed.

    Raises:
        InvalidArgument: The id is no text, or the message is longer than 2 MiB.
    """
    if len(message.data) > _MOST_BYTES:
        raise InvalidArgument(
            f"the message is {len(message.data)} bytes long, and {_MOST_BYTES} is the most; keep what is longer "
            "elsewhere, and leave its name"
        )
    named = text_or_none(run_id, "run_id") or ""
    return partial(_steer, run_id=named, message=message, now_us=now_us)


def _steer(tx: Tx, *, run_id: str, message: Encoded, now_us: int) -> None:
    run = run_named(tx, run_id)
    refuse_closed(run)
    add(tx, run, InboxKind.STEER, message=message, now_us=now_us)


def claim(tx: Tx, attempt: Attempt, *, now_us: int) -> tuple[Encoded, ...]:
    """Claim the messages of a run for an attempt that starts, or give it those that its visit has claimed before.

    Those of an attempt that came to nothing go to the next one of its visit, and to no other: nothing is lost by that,
    and nothing is heard twice.
    """
    tx.run("inbox_claim", run=attempt.run, attempt_id=attempt.attempt_id, now_us=now_us)
    return claimed(tx, attempt)


def claimed(tx: Tx, attempt: Attempt) -> tuple[Encoded, ...]:
    """The messages that the attempts of a visit have claimed, in the order in which they were left."""
    where = {"thread_id": attempt.thread_id, "checkpoint_id": attempt.checkpoint_id, "task_id": attempt.task_id}
    rows = tx.all("inbox_claimed", **where, ordinal=attempt.ordinal)
    return tuple(Encoded(row["value_type"], row["value"]) for row in rows)


def ask_inbox(run_id: str) -> Callable[[Tx], tuple[Row, list[Row]]]:
    """What was asked of a run, in order, ready to be read."""
    return partial(_inbox, run_id=text_or_none(run_id, "run_id") or "")


def _inbox(tx: Tx, *, run_id: str) -> tuple[Row, list[Row]]:
    run = run_named(tx, run_id)
    return run, tx.all("inbox_of_run", run=run["run"])


def inbox_given_out(found: tuple[Row, list[Row]], serde: Serde | None) -> list[InboxEntry]:
    """The entries as they are given out."""
    run, rows = found
    return [
        InboxEntry(
            entry=row["entry"],
            run_id=run["run_id"],
            thread_id=row["thread_id"],
            kind=InboxKind(row["kind"]),
            mode=None if row["mode"] is None else CancelMode(row["mode"]),
            reason=row["reason"],
            message=None if row["value"] is None else value_of(row["value_type"], row["value"], serde),
            attempt_id=row["attempt_id"],
            requested_at=moment(row["requested_us"]),
            consumed_at=None if row["consumed_us"] is None else moment(row["consumed_us"]),
        )
        for row in rows
    ]
