"""Visits of a run: what its tasks' calls in the log add up to.

A visit is (thread, checkpoint, task). It has succeeded if one of its calls did; otherwise the newest call says how it
stands. Ordinals and transitions follow the order of events (order.py), so that they never change once they were shown
(rule L3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.node_paths import NodePaths, Stood
from langgraph_ext.ledger.order import Key, calls_of_run, keys_of_run
from langgraph_ext.ledger.records import Visit, VisitStatus
from langgraph_ext.ledger.rows import at_least, moment, one_of, run_named, text_or_none, thread_of
from langgraph_ext.ledger.visit_rows import numbered_in

__all__ = ["ask_visits", "error_of", "inherited_places", "visits_of"]


def ask_visits(
    run_id: str,
    *,
    status: VisitStatus | str | None,
    node_path: str | None,
    inherited: bool,
    after: int,
    limit: int | None,
) -> Callable[[Tx], list[Visit]]:
    """Visits of a run, ready to be read.

    Raises:
        InvalidArgument: There is no such status, `after` is negative or `limit` below 1.
    """
    return partial(
        _chosen,
        run_id=text_or_none(run_id, "run_id") or "",
        status=one_of(VisitStatus, status, "status"),
        node_path=text_or_none(node_path, "node_path"),
        inherited=bool(inherited),
        after=at_least(0, after, "after"),
        limit=None if limit is None else at_least(1, limit, "limit"),
    )


def _chosen(
    tx: Tx,
    *,
    run_id: str,
    status: VisitStatus | None,
    node_path: str | None,
    inherited: bool,
    after: int,
    limit: int | None,
) -> list[Visit]:
    """Inherited visits stand before the first page and do not count in its limit."""
    run = run_named(tx, run_id)
    found = (
        visit
        for visit in visits_of(tx, run, inherited=inherited and after == 0)
        if status in (None, visit.status) and node_path in (None, visit.node_path)
    )
    chosen: list[Visit] = []
    count = 0
    for visit in found:
        if visit.inherited or visit.transition > after:
            chosen.append(visit)
            count += not visit.inherited
        if count == limit:
            break
    return chosen


class Tally:
    """One visit while its calls are being added up."""

    __slots__ = ("attempts", "error", "first", "last_us", "ordinal", "started_us", "status", "stood")

    def __init__(self, first: Row, stood: Stood, ordinal: int) -> None:
        self.first = first
        self.stood = stood
        self.ordinal = ordinal
        self.attempts = 0
        self.status = VisitStatus.PAUSED
        self.error: tuple[str | None, str | None] = (None, None)
        self.started_us: int | None = None
        self.last_us: int = first["stored_us"]

    def add(self, call: Row) -> None:
        """Add a call, in the order of their commits."""
        status, details = VisitStatus.of_event(call["event"]), _details(call)
        self.attempts += 1
        self.started_us = self.started_us or details.get("started_us")
        self.last_us = call["stored_us"]
        if self.status is not VisitStatus.SUCCEEDED:
            self.status = status
        if status not in (VisitStatus.SUCCEEDED, VisitStatus.PAUSED):
            self.error = details.get("error_type"), details.get("error_message")


def visits_of(tx: Tx, run: Row, *, inherited: bool = False, keys: Sequence[Key] | None = None) -> Iterator[Visit]:
    """The visits of a run by transition; before them, if asked for, those it inherited as a fork.

    Args:
        tx: The snapshot.
        run: The run's row.
        inherited: Whether inherited visits are asked for.
        keys: Of the run's events, if they are known.
    """
    paths = NodePaths(tx)
    if inherited:
        for owner, checkpoint_ids in inherited_places(tx, run):
            theirs = (key for id in checkpoint_ids for key in sorted(calls_of_run(tx, owner, id, id)))
            for _, tally in _tallies(tx, paths, theirs, numbered_in(tx, owner["run"])):
                yield _visit(owner, tally, transition=0, inherited=True)
    if keys is None:
        keys = keys_of_run(tx, run, calls_only=True)
    calls = (key for key in keys if key.name.startswith("visit."))
    for transition, tally in _tallies(tx, paths, calls, numbered_in(tx, run["run"])):
        yield _visit(run, tally, transition=transition, inherited=False)


def error_of(call: Row) -> tuple[str | None, str | None]:
    """Type and message of the error that a call carries."""
    details = _details(call)
    return details.get("error_type"), details.get("error_message")


def _details(call: Row) -> Mapping[str, Any]:
    return canonical.decode(call["details"]) if call["details"] else {}


def _tallies(
    tx: Tx, paths: NodePaths, keys: Iterable[Key], numbered: Mapping[tuple[str, str], Row]
) -> Iterable[tuple[int, Tally]]:
    """The visits that these calls add up to, counted from 1 in the order of their first calls.

    One that has a row (visit_rows.py) has its ordinal, and its node path, from there.
    """
    found: dict[tuple[str, str], Tally] = {}
    ordinals: Counter[Any] = Counter()
    for key in keys:
        call = tx.one("log_get", seq=key.seq)
        visit = (call["checkpoint_id"], call["task_id"])
        if visit not in found:
            placed = paths.placed(call["thread_id"], call["checkpoint_ns"], call["checkpoint_id"])
            stood = paths.stood(placed, call["task_path"])
            row = numbered.get(visit)
            if row is not None:
                stood = replace(stood, node_path=row["node_path"])
            counted = (stood.kind, stood.node_path, stood.scope, stood.place)
            ordinals[counted] = ordinals[counted] + 1 if row is None else max(ordinals[counted], row["ordinal"])
            found[visit] = Tally(call, stood, ordinals[counted] if row is None else row["ordinal"])
        found[visit].add(call)
    return enumerate(found.values(), start=1)


def _visit(run: Row, tally: Tally, *, transition: int, inherited: bool) -> Visit:
    first, stood = tally.first, tally.stood
    return Visit(
        run_id=run["run_id"],
        thread_id=thread_of(run),
        checkpoint_ns=first["checkpoint_ns"],
        checkpoint_id=first["checkpoint_id"],
        task_id=first["task_id"],
        kind=stood.kind,
        node=stood.node,
        node_path=stood.node_path,
        scope=stood.scope,
        place=stood.place,
        ordinal=tally.ordinal,
        transition=transition,
        status=tally.status,
        attempts=tally.attempts,
        error_type=tally.error[0],
        error_message=tally.error[1],
        started_at=None if tally.started_us is None else moment(tally.started_us),
        first_at=moment(first["stored_us"]),
        last_at=moment(tally.last_us),
        inherited=inherited,
    )


def inherited_places(tx: Tx, run: Row) -> list[tuple[Row, list[str]]]:
    """The root checkpoints whose visits led to a fork, by the run they belong to, the oldest first.

    Up from where it branched off, as long as the run is the one that was forked (or the one that that one was forked
    from). What ran at the branching checkpoint itself led elsewhere.
    """
    found: list[tuple[Row, list[str]]] = []
    heir, above = run, _parent(tx, run["thread_id"], run["first_id"])
    while above is not None:
        place = tx.maybe("place_get", thread_id=run["thread_id"], checkpoint_ns="", checkpoint_id=above)
        if place is None:
            break
        if place["run"] is not None and place["run"] == heir["run"]:
            found[-1][1].insert(0, above)
        elif place["run"] is not None:
            owner = tx.maybe("run_get", run=place["run"])
            if owner is None or owner["run_id"] != heir["fork_of"]:
                break
            heir = owner
            found.append((owner, []))
        above = place["parent_id"]
    return found[::-1]


def _parent(tx: Tx, thread_id: str, checkpoint_id: str) -> str | None:
    place = tx.maybe("place_get", thread_id=thread_id, checkpoint_ns="", checkpoint_id=checkpoint_id)
    return None if place is None else place["parent_id"]
