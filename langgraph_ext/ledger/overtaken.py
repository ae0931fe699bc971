"""Visits that `update_state` overtook: their tasks began anew as other visits of the same run (rule L20).

    visit at C: its attempt left an effect in doubt
                └─ update_state ─ … ─ visit of the same node: its effects have keys of their own

What the first one left in doubt stops the second as it would have stopped another attempt of its own, unless somebody
has authorized that attempt to be followed: then the one visit that follows may act.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import attempts
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus
from langgraph_ext.ledger.rounds import is_edit
from langgraph_ext.ledger.visit_rows import Level, kind_of

__all__ = ["overtaken"]


def overtaken(tx: Tx, *, run: int, thread_id: str, levels: Sequence[Level], function: str, own: bool) -> list[Attempt]:
    """The last attempts of the visit that a body takes the place of, part by part, that did not succeed; mostly none.

    Args:
        tx: The transaction of an admission.
        run: The run's number.
        thread_id: The thread.
        levels: The enclosing visits, outermost first, and the visit itself.
        function: The body's name.
        own: Whether it is its task's own function; of others the attempts of that function are looked at.
    """
    root_id = levels[0].checkpoint_id
    above = kind_of(levels[:1])
    before = tx.maybe("visit_before", run=run, checkpoint_id=root_id, scope="", **above.columns())
    if before is None or not _was_edited(tx, run, thread_id, before["checkpoint_id"]):
        return []
    found = [
        attempt
        for attempt in attempts.of_node(tx, run=run, **kind_of(levels).columns())
        if (not attempt.arguments if own else attempt.function == function and attempt.arguments)
    ]
    if not found:
        return []
    newest = found[-1]
    if _root_of(tx, newest) != before["checkpoint_id"]:
        return []  # a visit that has begun since was let through
    visit = (newest.checkpoint_id, newest.task_id)
    last = {each.ordinal: each for each in found if (each.checkpoint_id, each.task_id) == visit}
    return [each for each in last.values() if each.status is not AttemptStatus.SUCCEEDED]


def _was_edited(tx: Tx, run: int, thread_id: str, checkpoint_id: str) -> bool:
    """Whether what came first behind a root checkpoint is an update, of the same run."""
    child = tx.maybe("place_child", thread_id=thread_id, parent_id=checkpoint_id, checkpoint_id="")
    if child is None:
        return False
    place = _place(tx, thread_id, "", child["checkpoint_id"])
    return place is not None and place["run"] == run and is_edit(place)


def _root_of(tx: Tx, attempt: Attempt) -> str:
    place = _place(tx, attempt.thread_id, attempt.checkpoint_ns, attempt.checkpoint_id)
    return attempt.checkpoint_id if place is None or place["root_id"] is None else str(place["root_id"])


def _place(tx: Tx, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Row | None:
    return tx.maybe("place_get", thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
