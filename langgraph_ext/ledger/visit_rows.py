"""Rows of visits: which round a durable body stands in, known before its task has written anything (rules L3, L29).

A visit is otherwise known from its first result on. One in which a durable body begins gets a row at admission, and so
do those around it; its ordinal is then one more than that of the last of its kind on record, and the visits that the
log has seen since. A row never changes: who enters again, in whatever process, finds it.

    root graph    a ─ outer ─ b ─ outer ─ …          visit outer: scope '', ordinal 2, iteration path 2
                          │ second time
    subgraph            in ─ pay ─ in ─ pay          visit outer/pay: scope outer's task, ordinal 2, iteration path 2/2

The tasks of one fan-out are told apart by their place, and are in the same round. A run that began with a fork, or on a
copied thread, goes on counting rounds where what led to it stopped (rounds.py); ordinals count its own visits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.node_paths import UNKNOWN
from langgraph_ext.ledger.records import VisitKind
from langgraph_ext.ledger.rounds import begins_anew, led_to, sends_to
from langgraph_ext.ledger.task_paths import task_of

__all__ = ["Kind", "Level", "Numbered", "Task", "iteration_of", "kind_of", "number", "numbered_in"]


class Task(NamedTuple):
    """A task, as its config tells it while it runs."""

    task_id: str
    task_path: str
    node: str


class Level(NamedTuple):
    """A task that runs, and the checkpoint that it executes."""

    checkpoint_id: str
    task: Task | None
    """None if nothing is known of it: its graph hands nothing to the saver."""
    checkpoint_ns: str = ""


class Numbered(NamedTuple):
    """Where a visit stands."""

    node_path: str
    iteration_path: tuple[int, ...]
    """The rounds of the enclosing visits and its own, outermost first: their ordinals, and what their run inherited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a visit is one of, in whatever scope."""

    kind: VisitKind
    node_path: str
    place: int

    def columns(self) -> dict[str, object]:
        """By the names of the table."""
        return {"kind": self.kind, "node_path": self.node_path, "place": self.place}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted(Kind):
    """What ordinals count apart within a run."""

    scope: str

    def columns(self) -> dict[str, object]:
        return {**Kind.columns(self), "scope": self.scope}


def number(tx: Tx, *, run: int, thread_id: str, levels: Sequence[Level]) -> Numbered:
    """Where the innermost of these visits stands; those that have no row get theirs.

    Args:
        tx: The transaction of an admission.
        run: The run's number.
        thread_id: The thread.
        levels: The enclosing visits, outermost first, and the visit itself.
    """
    assert levels, "a visit is at least its own"
    inner = levels[-1]
    if inner.task is not None and (row := _row(tx, thread_id, inner)) is not None:
        return Numbered(row["node_path"], iteration_of(row["iteration_path"]))
    above, scope = Numbered("", ()), ""
    for level in levels:
        if level.task is None:
            above, scope = Numbered(_join(above.node_path, UNKNOWN), (*above.iteration_path, 1)), UNKNOWN
            continue
        row = _row(tx, thread_id, level)
        if row is not None:
            above = Numbered(row["node_path"], iteration_of(row["iteration_path"]))
        else:
            above = _begun(tx, run, thread_id, levels[0].checkpoint_id, level, level.task, above, scope)
        scope = level.task.task_id
    return above


def kind_of(levels: Sequence[Level]) -> Kind:
    """What the innermost of these visits is one of, whether or not it has a row."""
    names = [UNKNOWN if level.task is None else level.task.node or UNKNOWN for level in levels]
    stood = task_of("" if levels[-1].task is None else levels[-1].task.task_path)
    return Kind(kind=stood.kind, node_path="/".join(names), place=-1 if stood.send is None else stood.send)


def numbered_in(tx: Tx, run: int) -> Mapping[tuple[str, str], Row]:
    """The rows of a run's visits, by checkpoint and task."""
    return {(row["checkpoint_id"], row["task_id"]): row for row in tx.all("visits_of_run", run=run)}


def iteration_of(text: str) -> tuple[int, ...]:
    """An iteration path as it is stored, as numbers."""
    return tuple(map(int, text.split("/"))) if text else ()


def _row(tx: Tx, thread_id: str, level: Level) -> Row | None:
    assert level.task is not None
    return tx.maybe("visit_get", thread_id=thread_id, checkpoint_id=level.checkpoint_id, task_id=level.task.task_id)


def _begun(
    tx: Tx, run: int, thread_id: str, root_id: str, level: Level, task: Task, above: Numbered, scope: str
) -> Numbered:
    """Give a visit its row."""
    stood = task_of(task.task_path)
    counted = _Counted(
        kind=stood.kind,
        node_path=_join(above.node_path, task.node or UNKNOWN),
        scope=scope,
        place=-1 if stood.send is None else stood.send,
    )
    last = tx.maybe("visit_last", run=run, **counted.columns())
    after_id, ordinal = ("", 0) if last is None else (last["checkpoint_id"], last["ordinal"])
    ordinal += 1 + _plain(tx, run, thread_id, root_id, level.checkpoint_id, task, counted, after_id)
    if last is None:
        sought = {**counted.columns(), "task_path": task.task_path, "node": task.node}
        round = ordinal + led_to(tx, run, thread_id, root_id, (level.checkpoint_ns, level.checkpoint_id), sought)
    else:
        round = iteration_of(last["iteration_path"])[-1] + ordinal - last["ordinal"]
        round -= not scope and begins_anew(tx, thread_id, root_id, last)
    numbered = Numbered(counted.node_path, (*above.iteration_path, round))
    tx.run(
        "visit_insert",
        thread_id=thread_id,
        checkpoint_id=level.checkpoint_id,
        task_id=task.task_id,
        run=run,
        ordinal=ordinal,
        iteration_path="/".join(map(str, numbered.iteration_path)),
        **counted.columns(),
    )
    return numbered


def _plain(
    tx: Tx,
    run: int,
    thread_id: str,
    root_id: str,
    checkpoint_id: str,
    task: Task,
    counted: _Counted,
    after_id: str,
) -> int:
    """How many visits of this kind the log has seen since, of which none has a row.

    What it has seen of a `@task` does not say which function that was; those are counted by their rows alone.
    """
    if counted.kind is VisitKind.TASK:
        return 0
    span = {"thread_id": thread_id, "after_id": after_id, "checkpoint_id": checkpoint_id, "task_path": task.task_path}
    if counted.scope:
        found = tx.all("visits_plain_nested", root_id=root_id, scope=counted.scope, **span)
    else:
        from_id = after_id or tx.one("run_get", run=run)["first_id"]
        found = tx.all("visits_plain", run=run, from_id=from_id, **span)
    return len(found) if counted.place < 0 else sum(sends_to(row, counted.place, task.node) for row in found)


def _join(above: str, name: str) -> str:
    return f"{above}/{name}" if above else name
