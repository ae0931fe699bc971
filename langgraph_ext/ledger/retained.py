"""Retained events: which of a run's events are shown, once some of them are gone (rule L48).

Whoever takes rows of a run away counts its events before and afterwards, in the same transaction. Of a run of which
some are gone, only what came behind the last of those is shown: so its numbers (`run_seq`) have no gaps, an event keeps
the one it has, and a stored cursor either sees everything behind it once or is told that it cannot (`cursor_expired`).

    events   1  2  3  4  5  6  7
    gone           ×     ×               gone_upto: the cursor of 5; events_gone: 5
    shown                      6  7
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import NotFound
from langgraph_ext.ledger.order import Key, keys_of_run

__all__ = ["Counted", "count", "expired", "hide_upto", "note_gone", "shown_of", "start_behind"]


class Counted(NamedTuple):
    """The events of a run, before some of them go."""

    run: Row
    keys: list[Key]


def count(tx: Tx, runs: Iterable[int]) -> list[Counted]:
    """Count the events of these runs, as far as there are such runs."""
    rows = (tx.maybe("run_get", run=run) for run in sorted(set(runs)))
    return [Counted(row, keys_of_run(tx, row)) for row in rows if row is not None]


def note_gone(tx: Tx, counted: Iterable[Counted]) -> int:
    """Note which of them are gone; returns how many are."""
    gone = 0
    for run, before in counted:
        left = {key.seq for key in keys_of_run(tx, run)}
        missing = [key.cursor for key in before if key.seq not in left]
        if missing:
            _move(tx, run, before, max(missing))
            gone += len(missing)
    return gone


def hide_upto(tx: Tx, counted: Iterable[Counted], cursor: int) -> None:
    """Show none of them that does not come behind the cursor."""
    for run, before in counted:
        hidden = [key.cursor for key in before if key.cursor <= cursor]
        if hidden:
            _move(tx, run, before, max(hidden))


def _move(tx: Tx, run: Row, before: list[Key], upto: int) -> None:
    """Only what is behind `upto` is shown from here on; what was shown before, and is not, counts as gone."""
    if upto <= run["gone_upto"]:
        return
    gone = run["events_gone"] + sum(run["gone_upto"] < key.cursor <= upto for key in before)
    tx.run("run_events_gone", run=run["run"], gone_upto=upto, events_gone=gone)


def shown_of(run: Row, keys: Iterable[Key]) -> Iterable[tuple[int, Key]]:
    """The events of a run that are shown, in their order, each with its number in the run."""
    shown = (key for key in keys if key.cursor > run["gone_upto"])
    return enumerate(shown, start=run["events_gone"] + 1)


def start_behind(run: Row, after: int) -> int:
    """Where to read on behind a cursor; 0 is the beginning of what is shown.

    Raises:
        NotFound: Events behind it are gone (`cursor_expired`).
    """
    upto: int = run["gone_upto"]
    if 0 < after < upto:
        raise expired(after, upto, f"run {run['run_id']!r}: ")
    return max(after, upto)


def expired(after: int, upto: int, where: str = "") -> NotFound:
    """The error that says that events behind a cursor are gone."""
    return NotFound(
        f"{where}events behind the cursor {after} were taken away, up to {upto}, and have not all been shown to who "
        f"stored it; read on with after={upto}, and look at the state itself for what happened before",
        code="cursor_expired",
        details={"after": after, "oldest": upto},
    )
