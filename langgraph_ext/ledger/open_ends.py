"""Open ends: what of a thread somebody may still come back to, so that nobody takes its ground away (rules S9, S10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.errors import LeaseError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.agent_threads import thread_of
from langgraph_ext.ledger.forgetting import agent_roots_of

__all__ = ["Kept", "end_lapsed", "places_of", "refuse_held", "why_kept"]


class Kept(StrEnum):
    """Why a thread is left as it is."""

    HELD = "thread_busy"
    """Somebody runs it, under a lease."""
    ASKS = "question_open"
    """It waits for an answer, or for a task to take one."""
    IN_DOUBT = "effect_in_doubt"
    """Nobody knows of one of its effects, or of a call of one of its agents, whether it happened."""


def why_kept(tx: Tx, thread_id: str, *, now_us: int) -> Kept | None:
    """Why a thread is to be left as it is; None if there is no reason.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        now_us: Microseconds since the epoch, UTC.
    """
    roots = agent_roots_of(tx, thread_id)
    try:
        refuse_held(tx, thread_id, roots, now_us=now_us)
    except LeaseError:
        return Kept.HELD
    agents = [row for root in roots if (row := tx.maybe("agent_open_of_tree", root_id=root))]
    if tx.maybe("interrupt_pending", thread_id=thread_id) is not None or any(row["asks"] for row in agents):
        return Kept.ASKS
    if tx.maybe("effect_in_doubt", thread_id=thread_id) is not None or any(row["doubts"] for row in agents):
        return Kept.IN_DOUBT
    return None


def refuse_held(tx: Tx, thread_id: str, roots: Sequence[str], *, now_us: int) -> dict[str, int]:
    """Raise if somebody runs a thread, or an agent of one of its agent nodes by itself.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        roots: Its agent nodes' agent runs (`agent_roots_of`).
        now_us: Microseconds since the epoch, UTC.

    Returns:
        The epochs of those leases that have lapsed and that nobody has ended, by their threads.

    Raises:
        LeaseError: Somebody does (`thread_busy`).
    """
    found = ((held, leases.refuse_held(tx, held, now_us=now_us)) for held in (thread_id, *map(thread_of, roots)))
    return {held: epoch for held, epoch in found if epoch is not None}


def end_lapsed(tx: Tx, lapsed: Mapping[str, int], *, now_us: int) -> None:
    """End lapsed leases of a thread that is about to be deleted, as `refuse_held` has found them.

    Who overslept would hold the thread still, as nobody has taken it since.
    """
    for held, epoch in lapsed.items():
        leases.release(tx, held, epoch, now_us=now_us)


def places_of(tx: Tx, thread_id: str) -> set[tuple[str, str]]:
    """Namespace and id of every checkpoint at which something is open: a question, an effect, an attempt that runs.

    Those around it, in the graphs that enclose it, are among them.
    """
    found = set(_at(tx, thread_id))
    return found | {around for place in found for around in _around(tx, thread_id, *place)}


def _at(tx: Tx, thread_id: str) -> Iterator[tuple[str, str]]:
    for asked in tx.all("interrupts_pending_at", thread_id=thread_id):
        yield "", asked["root_id"]
        yield asked["checkpoint_ns"], asked["checkpoint_id"]
    for row in (*tx.all("effects_open_at", thread_id=thread_id), *tx.all("attempts_running_at", thread_id=thread_id)):
        yield row["checkpoint_ns"], row["checkpoint_id"]


def _around(tx: Tx, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Iterator[tuple[str, str]]:
    where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    row = tx.maybe("place_get", **where) if checkpoint_ns else None
    if row is None:
        return
    if row["root_id"] is not None:
        yield "", row["root_id"]
    yield from (canonical.decode(row["metadata"]).get("parents") or {}).items()
