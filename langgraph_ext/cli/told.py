"""Runs and events as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from langgraph_ext.cli.plain import iso
from langgraph_ext.cli.story import span_of
from langgraph_ext.ledger.records import Event, Run
from langgraph_ext.render import Column, Fit, Line, first_line, table

__all__ = ["event_line", "run_lines"]

_RUN_COLUMNS = (
    Column("RUN", "label"),
    Column("STATUS", "status"),
    Column("STARTED"),
    Column("TOOK", to_the_right=True),
    Column("THREAD"),
    Column("ERROR"),
)

# They come one by one, so the widths cannot be those of what is there.
_EVENT_COLUMNS = (
    Column("CURSOR", "label", to_the_right=True, at_least=8),
    Column("AT"),
    Column("EVENT", at_least=21),
    Column("NODE", at_least=12),
    Column("RUN", at_least=36),
    Column("DETAILS"),
)
"""Of every run; where one run was named, its name is left out."""

_RUN = 4

_SAID_ALREADY = ("task_id",)


def run_lines(runs: Iterable[Run], now: datetime, to: Fit) -> Iterator[Line]:
    """Runs, a line each, below their titles."""
    return table(_RUN_COLUMNS, [_run_row(run, now) for run in runs], to)


def _run_row(run: Run, now: datetime) -> tuple[str, ...]:
    error = "" if run.error_type is None else f"{run.error_type}: {first_line(run.error_message or '')}"
    started = iso(run.started_at, digits=0)
    return run.run_id, run.status, started, span_of(run, now), run.thread_id, error


def event_line(event: Event, payload: str, to: Fit, *, names_run: bool) -> Iterator[Line]:
    """An event in one line.

    Args:
        event: The event.
        payload: What was asked in it, shortened, or no text.
        to: What fits.
        names_run: Whether its run is to be named.
    """
    row = _event_row(event, payload)
    kept = [at for at in range(len(_EVENT_COLUMNS)) if names_run or at != _RUN]
    columns = [_EVENT_COLUMNS[at] for at in kept]
    return table(columns, [[row[at] for at in kept]], to, titles=False)


def _event_row(event: Event, payload: str) -> tuple[str, ...]:
    details = [f"{name}={_short(value)}" for name, value in event.details.items() if name not in _SAID_ALREADY]
    return (
        str(event.cursor),
        iso(event.at, digits=3),
        event.name,
        event.node_path or "",
        event.run_id or f"(thread {event.thread_id})",
        "  ".join([*details, *([payload] if payload else [])]),
    )


def _short(value: object) -> str:
    if isinstance(value, str):
        return first_line(value)
    return json.dumps(value, default=str)
