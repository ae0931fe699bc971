"""Events: what happened, in the order of commits, page by page (rule L48).

Of all runs, a page reads the log behind its cursor and nothing else. Of one run, it gathers the places of the run's
events, so that each has its number in the run, and reads the rows of its page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import horizon
from langgraph_ext.ledger.node_paths import NodePaths, Stood
from langgraph_ext.ledger.order import Shown, behind, cursor_of, keys_of_run, seen_up_to, shown_by
from langgraph_ext.ledger.records import ErrorRecord, Event, VisitStatus
from langgraph_ext.ledger.retained import shown_of, start_behind
from langgraph_ext.ledger.rows import at_least, moment, run_named, text_or_none
from langgraph_ext.ledger.visits import error_of

__all__ = ["Scan", "ask_errors", "ask_events", "event_of", "scan"]

_ERRORS = {status.event: status for status in (VisitStatus.FAILED, VisitStatus.CANCELLED, VisitStatus.TIMED_OUT)}


def ask_events(run_id: str | None, *, after: int, limit: int) -> Callable[[Tx], list[Event]]:
    """A page of events, ready to be read.

    Raises:
        InvalidArgument: `after` is negative, or `limit` below 1.
        NotFound: When it is read: events behind `after` are gone (`cursor_expired`).
    """
    after, limit = at_least(0, after, "after"), at_least(1, limit, "limit")
    run_id = text_or_none(run_id, "run_id")
    if run_id is None:
        return lambda tx: scan(tx, NodePaths(tx), horizon.start_behind(tx, after), limit).events
    return partial(_page_of_run, run_id=run_id, after=after, limit=limit)


def ask_errors(run_id: str, *, after: int, limit: int) -> Callable[[Tx], list[ErrorRecord]]:
    """A page of a run's errors, ready to be read."""
    after, limit = at_least(0, after, "after"), at_least(1, limit, "limit")
    return partial(_errors, run_id=text_or_none(run_id, "run_id") or "", after=after, limit=limit)


@dataclass(frozen=True, slots=True)
class Scan:
    """Events that rows of the log show, and how far it was looked at."""

    events: list[Event]
    upto: int
    at_end: bool


def scan(
    tx: Tx, paths: NodePaths, after: int, limit: int, *, most: int | None = None, run_id: str | None = None
) -> Scan:
    """Read the log on from the cursor `after` until `limit` events are found, or `most` rows were looked at."""
    events: list[Event] = []
    seq, size, looked_at = seen_up_to(after), max(16, min(limit, 512)), 0
    while most is None or looked_at < most:
        rows = tx.all("log_page", after=seq, size=size)
        for row in rows:
            seq = row["seq"]
            for each in shown_by(tx, paths, row):
                cursor = cursor_of(seq, each["seq"])
                event = event_of(tx, paths, Shown(cursor, each), None)
                if cursor > after and run_id in (None, event.run_id):
                    events.append(event)
                    if len(events) == limit:
                        return Scan(events, cursor, at_end=False)
        if len(rows) < size:
            return Scan(events, max(after, behind(seq)), at_end=True)
        looked_at += size
    return Scan(events, behind(seq), at_end=False)


def _page_of_run(tx: Tx, run_id: str, after: int, limit: int) -> list[Event]:
    paths, run = NodePaths(tx), run_named(tx, run_id)
    after = start_behind(run, after)
    page = islice((each for each in shown_of(run, keys_of_run(tx, run)) if each[1].cursor > after), limit)
    return [event_of(tx, paths, Shown(key.cursor, tx.one("log_get", seq=key.seq)), run_seq) for run_seq, key in page]


def _errors(tx: Tx, run_id: str, after: int, limit: int) -> list[ErrorRecord]:
    run = run_named(tx, run_id)
    if after:
        start_behind(run, after)
    keys = keys_of_run(tx, run, calls_only=True)
    paths = NodePaths(tx)
    page = islice((key for key in keys if key.name in _ERRORS and key.cursor > after), limit)
    return [_error(paths, run_id, Shown(key.cursor, tx.one("log_get", seq=key.seq))) for key in page]


def _error(paths: NodePaths, run_id: str, shown: Shown) -> ErrorRecord:
    row = shown.row
    placed = paths.placed(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    stood = paths.stood(placed, row["task_path"])
    status = _ERRORS[row["event"]]
    error_type, error_message = error_of(row)
    return ErrorRecord(
        cursor=shown.cursor,
        run_id=run_id,
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        node=stood.node,
        node_path=stood.node_path,
        status=status,
        error_type=error_type or "",
        error_message=error_message or "",
        at=moment(row["stored_us"]),
    )


def event_of(tx: Tx, paths: NodePaths, shown: Shown, run_seq: int | None) -> Event:
    """An event as it is given out; `run_seq` if it is one of a run's."""
    row = shown.row
    details = canonical.decode(row["details"]) if row["details"] else {}
    placed = paths.placed(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    task_id, task_path = row["task_id"], row["task_path"]
    if task_id is None:
        run, (task_id, task_path) = row["run"], _task_in(tx, paths, row, details)
    else:
        run = None if placed is None else placed.run
    stood = None if task_path is None else paths.stood(placed, task_path)
    return _made(shown, run_seq, paths.run_id(run), paths.name_of(row["thread_id"]), task_id, stood, details)


def _made(
    shown: Shown,
    run_seq: int | None,
    run_id: str | None,
    thread_id: str,
    task_id: str | None,
    stood: Stood | None,
    details: dict[str, object],
) -> Event:
    row = shown.row
    return Event(
        cursor=shown.cursor,
        run_seq=run_seq,
        name=row["event"],
        run_id=run_id,
        thread_id=thread_id,
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=task_id,
        node=stood.node if stood else None,
        node_path=stood.node_path if stood else None,
        scope=stood.scope if stood else None,
        details=details,
        at=moment(row["stored_us"]),
    )


def _task_in(tx: Tx, paths: NodePaths, row: Row, details: dict[str, object]) -> tuple[str | None, str | None]:
    """The task, and its path, that an event of its own speaks of."""
    interrupt_id, task_id = details.get("interrupt_id"), details.get("task_id")
    if isinstance(interrupt_id, str):
        asked = tx.maybe("interrupt_task", thread_id=row["thread_id"], interrupt_id=interrupt_id)
        if asked is not None:
            return asked["task_id"], asked["task_path"]
    if isinstance(task_id, str):
        return task_id, paths.task_path(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"], task_id)
    return None, None
