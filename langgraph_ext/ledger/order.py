"""The order of events: the same for one run and for all of them, and never changed once it was shown (rule L48).

Under LangGraph's durability `async` a task's call may be stored before the checkpoint it belongs to, and only that
checkpoint says whose it is. So an event's place is its row's number, or that of its checkpoint's if that came later:

    seq     1: put A   2: call at B   3: call at B   4: put B   5: call at B
    shown                                            4: 2, 3    5: 5
    cursor  (millionths)                             3,999,998  5,000,000
                                                     3,999,999

A cursor is a place in this order: the number of the row at which an event is shown, in millions, less the rows between
the two. So each event has its own, also where several are shown at once.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.node_paths import NodePaths
from langgraph_ext.ledger.records import RunStatus

__all__ = ["TOP_ID", "Key", "Shown", "behind", "cursor_of", "keys_of_run", "seen_up_to", "shown_by"]

_ROW = 1_000_000

TOP_ID = "\U0010ffff"
"""Above every id: they are compared by code point."""


class Key(NamedTuple):
    """An event's place in the order."""

    shown: int
    seq: int
    name: str

    @property
    def cursor(self) -> int:
        """The cursor behind it."""
        return cursor_of(self.shown, self.seq)


class Shown(NamedTuple):
    """An event's row, and the cursor behind it."""

    cursor: int
    row: Row


def keys_of_run(tx: Tx, run: Row, *, calls_only: bool = False) -> list[Key]:
    """Every event of a run, in order."""
    keys = calls_of_run(tx, run)
    if not calls_only:
        keys += [Key(row["seq"], row["seq"], row["event"]) for row in tx.all("run_events", run=run["run"])]
    return sorted(keys)


def calls_of_run(tx: Tx, run: Row, first_id: str | None = None, last_id: str | None = None) -> list[Key]:
    """The calls that are events, in no order: of the whole run, or from one root checkpoint of it to another."""
    where = {
        "thread_id": run["thread_id"],
        "run": run["run"],
        "first_id": first_id or run["first_id"],
    }
    if last_id is None:  # an ended run has no checkpoint behind the one that ended it, its thread may have many
        last_id = run["last_id"] if RunStatus(run["status"]).ended else TOP_ID
    where["last_id"] = last_id
    rows = tx.all("run_calls", **where)
    return [Key(max(row["seq"], row["placed"]), row["seq"], row["event"]) for row in rows]


def cursor_of(shown: int, seq: int) -> int:
    """The cursor behind an event. A call waits for its checkpoint no longer than the lane's queue is."""
    return shown * _ROW - min(shown - seq, _ROW - 1)


def behind(seq: int) -> int:
    """The cursor behind everything that a row shows."""
    return seq * _ROW


def seen_up_to(cursor: int) -> int:
    """The last row of which a reader at this cursor has been shown everything."""
    return cursor // _ROW


def shown_by(tx: Tx, paths: NodePaths, row: Row) -> list[Row]:
    """The events that a row of the log shows: its own, or those that were waiting for this checkpoint."""
    seq, thread_id = row["seq"], row["thread_id"]
    if row["listed"] is None:
        return [row] if row["event"] is not None and _is_placed(paths, row) else []
    if not row["checkpoint_ns"] or row["root_id"] is None:
        nested = tx.all("places_nested_before", thread_id=thread_id, root_id=row["checkpoint_id"], before=seq)
        places = [(each["checkpoint_ns"], each["checkpoint_id"]) for each in nested]
    else:
        placed = paths.placed(thread_id, row["checkpoint_ns"], row["checkpoint_id"])
        if placed is None or placed.seq != seq:
            return []  # the root checkpoint is still to come
        places = []
    places.append((row["checkpoint_ns"], row["checkpoint_id"]))
    waiting = [
        call
        for checkpoint_ns, checkpoint_id in places
        for call in tx.all(
            "calls_waiting", thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id, before=seq
        )
    ]
    return sorted(waiting, key=itemgetter("seq"))


def _is_placed(paths: NodePaths, row: Row) -> bool:
    """Whether it was known, when this row was stored, to which run it belongs."""
    if row["task_id"] is None:
        return True
    placed = paths.placed(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    return placed is not None and placed.seq < row["seq"]
