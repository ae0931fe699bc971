"""Horizon: up to where events were taken away because of their age, over all runs (rule L48).

It moves along the log, row by row, and stops at the first row that is young enough: the order of the log is what
counts, and a clock that was put back or forward takes nothing away too early. A row that is only an event is deleted.
One that is more (what a task wrote is also an event, and its checkpoint needs it) stays, and is shown as an event no
more.

Of a run that has not ended its own life stays (`run.…`): it says why the run stands as it does. It goes with the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.node_paths import NodePaths
from langgraph_ext.ledger.order import behind, cursor_of, shown_by
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.retained import count, expired, hide_upto

__all__ = ["Moved", "look", "move", "start_behind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How far the horizon has come."""

    events: int
    """Events that are not shown any more."""
    rows: int
    """Rows of the log that were looked at."""
    more: bool
    """Whether there may be more to take away."""


def start_behind(tx: Tx, after: int) -> int:
    """Where to read the events of all runs on behind a cursor; 0 is the beginning of what is shown.

    Raises:
        NotFound: Events behind it are gone (`cursor_expired`).
    """
    found = tx.maybe("horizon_get")
    if found is None:
        return after
    if 0 < after < found["upto"]:
        raise expired(after, found["upto"])
    return max(after, behind(found["seq"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Rows of the log that are old enough, and the events they show."""

    rows: list[Row]
    events: int
    last: int
    """The cursor of the last of these events; 0 if there are none."""
    runs: frozenset[int]
    is_full: bool


def look(tx: Tx, seq: int | None, before_us: int, size: int) -> tuple[Moved, int]:
    """How many events would go with the next rows behind `seq` (None: the horizon); and the last of these rows."""
    if seq is None:
        found = tx.maybe("horizon_get")
        seq = 0 if found is None else int(found["seq"])
    page = _page(tx, seq, before_us, size)
    moved = Moved(events=page.events, rows=len(page.rows), more=page.is_full)
    return moved, page.rows[-1]["seq"] if page.rows else seq


def move(tx: Tx, before_us: int, size: int) -> Moved:
    """Take away the events of the next rows of the log that were stored before a time.

    Args:
        tx: The open transaction.
        before_us: Microseconds since the epoch, UTC.
        size: At most so many rows are looked at.
    """
    found = tx.maybe("horizon_get")
    seq, upto = (0, 0) if found is None else (found["seq"], found["upto"])
    page, last = _page(tx, seq, before_us, size), tx.maybe("log_get", seq=seq)
    if page.rows:
        seq, upto = page.rows[-1]["seq"], page.last or upto
        hide_upto(tx, count(tx, page.runs), upto)
        tx.run("horizon_put", seq=seq, upto=upto)
    _delete_events(tx, page.rows if last is None else [last, *page.rows])
    kept = 0 if page.is_full else _forget_kept(tx, seq, size - len(page.rows))
    return Moved(events=page.events, rows=len(page.rows) + kept, more=page.is_full or kept > 0)


def _delete_events(tx: Tx, rows: Sequence[Row]) -> None:
    """Delete those of the passed rows that are events and nothing more; but for the newest row of the log.

    That one stays, so that no number comes again, and goes the next time: so the last row that was passed is looked at
    again then.
    """
    newest = tx.one("log_last")["seq"]
    for row in rows:
        if row["seq"] != newest and _is_only_event(tx, row):
            tx.run("event_delete", seq=row["seq"])
            if row["run"] is not None:  # it may have been open when the first of its events were passed
                tx.run("run_life_forget", run=row["run"], seq=row["seq"])


def _page(tx: Tx, seq: int, before_us: int, size: int) -> _Page:
    found = tx.all("log_page", after=seq, size=size)
    young = next((place for place, row in enumerate(found) if row["stored_us"] >= before_us), len(found))
    rows, paths = found[:young], NodePaths(tx)
    events, last, runs = 0, 0, set()
    for row in rows:
        for each in shown_by(tx, paths, row):
            events, last = events + 1, cursor_of(row["seq"], each["seq"])
            if (run := _run_of(paths, each)) is not None:
                runs.add(run)
    is_full = len(found) == size and young == size
    return _Page(rows=rows, events=events, last=last, runs=frozenset(runs), is_full=is_full)


def _run_of(paths: NodePaths, event: Row) -> int | None:
    if event["task_id"] is None:
        run: int | None = event["run"]
        return run
    placed = paths.placed(event["thread_id"], event["checkpoint_ns"], event["checkpoint_id"])
    return None if placed is None else placed.run


def _is_only_event(tx: Tx, row: Row) -> bool:
    """Whether nothing but a reader of events needs a row."""
    if row["listed"] is not None or row["task_id"] is not None or row["event"] is None:
        return False
    if row["run"] is None or not row["event"].startswith("run."):
        return True
    run = tx.maybe("run_get", run=row["run"])
    return run is None or RunStatus(run["status"]).ended


def _forget_kept(tx: Tx, seq: int, size: int) -> int:
    """Delete rows of deleted threads of which the ledger was kept, and nothing is shown any more; how many."""
    kept = tx.maybe("kept_expired", seq=seq) if size > 0 else None
    if kept is None:
        return 0
    gone = tx.run("kept_rows_delete", kept_id=kept["kept_id"], size=size)
    if gone < size:
        tx.run("visits_delete", thread_id=kept["kept_id"])
        tx.run("kept_delete", kept_id=kept["kept_id"])
    return max(gone, 1)
