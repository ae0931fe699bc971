"""Pruning: which checkpoints of a thread may go (rule S10); how they do is in retention.py.

What somebody may still come back to stays, whatever its age: a checkpoint at which a question is open, an effect in
doubt, or an attempt running.

A long thread is pruned in slices, each a transaction of its own, from the newest checkpoint that goes to the oldest:
values are never inherited from a younger one, so what is still to go need not take in anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.ledger import forgetting, open_ends
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.retention import Pruned, Space, newest_stored, puts_of, say, space_of, take_away

__all__ = ["LATEST", "SLICE", "Keep", "is_finished", "prune", "to_prune"]

SLICE = 1000
"""Most checkpoints that one transaction takes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What is kept of each namespace."""

    last: int = 1
    """So many of its newest checkpoints."""
    since_us: int | None = None
    """And those that were stored since: microseconds since the epoch, UTC; None: no others."""
    finished: bool = True
    """Whether the last ones are kept of a subgraph, too, whose task can never go on: its root checkpoint goes."""


LATEST = Keep()


def prune(tx: Tx, thread_id: str, keep: Keep, *, most: int = SLICE, stored_us: int) -> Pruned:
    """Take away what is not kept of a thread, `most` checkpoints at a time; a thread that does not exist has nothing.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        keep: What is kept.
        most: So many checkpoints at the most.
        stored_us: Now: microseconds since the epoch, UTC.

    Raises:
        LeaseError: Somebody runs it, under a lease (`thread_busy`).
    """
    if tx.maybe("thread_exists", thread_id=thread_id) is None:
        return Pruned()
    open_ends.refuse_held(tx, thread_id, forgetting.agent_roots_of(tx, thread_id), now_us=stored_us)
    spaces, more = _spaces(tx, thread_id, keep, most)
    if not spaces:
        return Pruned()
    stamp = say(tx, "thread.pruned", thread_id, newest_stored(tx, thread_id), stored_us)
    return replace(take_away(tx, spaces, stamp=stamp), more=more)


def to_prune(tx: Tx, thread_id: str, keep: Keep) -> Pruned:
    """What `prune` would take away in all, but for the events. It reads only."""
    spaces, _ = _spaces(tx, thread_id, keep, GREATEST)
    return Pruned(checkpoints=sum(space.unlisted for space in spaces), hidden=sum(space.hidden for space in spaces))


def _spaces(tx: Tx, thread_id: str, keep: Keep, most: int) -> tuple[list[Space], bool]:
    """The namespaces of which something goes, and whether more than that is to go.

    The root graph's is looked at first: what goes of it says which subgraphs are finished.
    """
    in_use = open_ends.places_of(tx, thread_id)
    found: list[Space] = []
    roots: set[str] = set()
    left, more = most, False
    for named in tx.all("namespaces_of", thread_id=thread_id, size=GREATEST):
        address = Address(thread_id, named["checkpoint_ns"], None)
        rows = puts_of(tx, address)
        doomed = _doomed(address, rows, keep, in_use, roots)
        if not address.checkpoint_ns:
            roots = {row["checkpoint_id"] for row in rows if row["listed"] and row["checkpoint_id"] not in doomed}
        more = more or len(doomed) > left
        doomed = sorted(doomed, reverse=True)[:left]
        left -= len(doomed)
        space = replace(space_of(tx, address, rows, doomed), lost=_lost(tx, address, rows)) if rows else None
        if space is not None and space.has_work:
            found.append(space)
    return found, more


def _doomed(
    address: Address, rows: Sequence[Row], keep: Keep, in_use: Collection[tuple[str, str]], roots: Collection[str]
) -> list[str]:
    """The listed checkpoints of a namespace that are not kept."""
    listed = [row for row in rows if row["listed"]]
    drops_all = not keep.finished and bool(listed) and is_finished(address, listed[-1], roots.__contains__)
    last = 0 if drops_all else keep.last
    old = listed[: len(listed) - last] if last < len(listed) else []
    return [
        row["checkpoint_id"]
        for row in old
        if (keep.since_us is None or row["stored_us"] < keep.since_us)
        and (address.checkpoint_ns, row["checkpoint_id"]) not in in_use
    ]


def is_finished(address: Address, newest: Row, is_kept: Callable[[str], bool]) -> bool:
    """Whether a subgraph was one task's alone, and nobody can run that task again, as its root checkpoint goes.

    Args:
        address: Its namespace.
        newest: Its newest checkpoint.
        is_kept: Whether a root checkpoint stays.
    """
    if not address.checkpoint_ns or newest["root_id"] is None or newest["inside"] is None:
        return False
    return address.checkpoint_ns.endswith(newest["inside"]) and not is_kept(newest["root_id"])


def _lost(tx: Tx, address: Address, rows: Sequence[Row]) -> list[str]:
    newest = max((row["checkpoint_id"] for row in rows if row["listed"]), default=None)
    if newest is None:
        return []
    return [row["checkpoint_id"] for row in tx.all("writes_orphans", **address.namespace, newest=newest)]
