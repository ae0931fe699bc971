"""Rounds: what a run that does not begin with an input goes on counting from (rule L29).

A fork, or a run on a copied thread, comes in the middle of the rounds that began with an input. Its own visits are
counted from 1 as in every run (L3); its rounds go on from those that led to it, so that a replay of round 3 asks under
the keys of round 3:

    run      input ─ 1 ─ 2 ─ 3 ─ 4          numbers: rounds
    replay               └─ fork ─ 3 ─ 4    ordinals 1, 2

What ran at the checkpoint that a fork branched off led elsewhere. So did a visit that had not succeeded when
`update_state` made its task begin anew: the new visit is the same round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx

__all__ = ["Sought", "begins_anew", "is_edit", "led_to", "sends_to", "source_of"]

_AT_ONCE = 64
"""How many checkpoints are looked at by one query."""

_EDITS = ("update", "fork")
"""Sources of checkpoints that nothing has run for."""

Sought = Mapping[str, Any]
"""Which visits are looked for: `kind`, `node_path`, `scope`, `place`, `task_path`; and the `node` a place is for."""


def source_of(place: Row) -> str | None:
    """Where a checkpoint comes from, by its metadata."""
    found: str | None = canonical.decode(place["metadata"]).get("source")
    return found


def is_edit(place: Row) -> bool:
    """Whether somebody made a checkpoint, and no tasks led to it."""
    return source_of(place) in _EDITS


def led_to(tx: Tx, run: int, thread_id: str, root_id: str, at: tuple[str, str], sought: Sought) -> int:
    """How many rounds a run has inherited, for the visits that are looked for.

    Args:
        tx: The transaction.
        run: The run's number.
        thread_id: The thread.
        root_id: The root checkpoint being executed.
        at: Namespace and id of the one that the visit is at.
        sought: Which visits.
    """
    begun = tx.one("run_get", run=run)
    first = tx.maybe("place_get", thread_id=thread_id, checkpoint_ns="", checkpoint_id=begun["first_id"])
    if first is None or source_of(first) == "input":
        return 0
    if at[0]:
        return _copied_above(tx, thread_id, at, sought)
    return _inherited(tx, thread_id, begun["first_id"], root_id, sought)


def begins_anew(tx: Tx, thread_id: str, root_id: str, last: Row) -> bool:
    """Whether `update_state` lets what the last visit did not come to begin anew at a root checkpoint."""
    above = root_id
    while above != last["checkpoint_id"]:
        place = tx.maybe("place_get", thread_id=thread_id, checkpoint_ns="", checkpoint_id=above)
        if place is None or not is_edit(place) or place["parent_id"] is None:
            return False
        above = place["parent_id"]
    where = {"thread_id": thread_id, "checkpoint_id": above, "task_id": last["task_id"]}
    return above != root_id and tx.maybe("visit_success", **where) is None


def _inherited(tx: Tx, thread_id: str, first_id: str, root_id: str, sought: Sought) -> int:
    """Up from where the run began: the last round on record, and the visits that the log has seen since."""
    total, below, only_edits = 0, None, True
    for place in _line(tx, thread_id, ("", first_id), sought):
        if below is None:  # its visits are the run's own, but for those that came with a copy
            total += first_id != root_id and bool(place["copied"]) and _is_sought(place, sought)
        elif _led_on(tx, thread_id, place, below, only_edits=only_edits):
            if place["iteration_path"] is not None:
                return total + int(place["iteration_path"].rpartition("/")[2])
            total += bool(place["called"]) and _is_sought(place, sought)
        if source_of(place) == "input":
            break
        only_edits = only_edits and is_edit(place)
        below = place
    return total


def _copied_above(tx: Tx, thread_id: str, at: tuple[str, str], sought: Sought) -> int:
    """Visits of a subgraph that was copied in the middle of its run. What it has run since has places of its own."""
    total = 0
    for place in _line(tx, thread_id, at, sought):
        if place["checkpoint_id"] != at[1] and place["root_id"] is None:
            total += bool(place["called"]) and _is_sought(place, sought)
        if source_of(place) == "input":
            break
    return total


def _led_on(tx: Tx, thread_id: str, place: Row, below: Row, *, only_edits: bool) -> bool:
    """Whether what ran at a checkpoint led to this child of it."""
    source = source_of(below)
    if source not in _EDITS:
        return True
    if source == "fork" or _branched(tx, thread_id, place, below):
        return False
    return not only_edits or bool(place["succeeded"])


def _branched(tx: Tx, thread_id: str, place: Row, below: Row) -> bool:
    """Whether an update was made where its parent had led elsewhere before."""
    run = None if below["run"] is None else tx.maybe("run_get", run=below["run"])
    if run is not None and run["fork_of"] is not None and run["first_id"] == below["checkpoint_id"]:
        return True
    where = {"parent_id": place["checkpoint_id"], "checkpoint_id": below["checkpoint_id"]}
    other = tx.maybe("place_child", thread_id=thread_id, **where)
    return other is not None and bool(other["checkpoint_id"] < below["checkpoint_id"])


def _line(tx: Tx, thread_id: str, start: tuple[str, str], sought: Sought) -> Iterator[Row]:
    """A checkpoint and those above it, the nearest first, with the visits that are looked for."""
    checkpoint_ns, checkpoint_id = start
    kinds = {name: value for name, value in sought.items() if name != "node"}
    above: str | None = checkpoint_id
    while above is not None:
        where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": above}
        rows = sorted(tx.all("places_above", **where, size=_AT_ONCE, **kinds), key=lambda row: int(row["depth"]))
        yield from rows
        above = rows[-1]["parent_id"] if len(rows) == _AT_ONCE else None


def _is_sought(place: Row, sought: Sought) -> bool:
    """Whether a task of this path is one of the node's: a scheduled task is told by its number alone."""
    return sought["place"] < 0 or sends_to(place, sought["place"], sought["node"])


def sends_to(checkpoint: Row, place: int, node: str) -> bool:
    """Whether the scheduled task of this place at a checkpoint is one of this node."""
    sends = canonical.decode(checkpoint["sends"]) if checkpoint["sends"] else []
    return place < len(sends) and bool(sends[place] == node)
