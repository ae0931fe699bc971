"""Sweeping: retention for many threads, and for the events of all of them, a bounded batch at a time (rule S10).

A batch is a transaction. It looks at some threads, in the order of their ids, and takes away some checkpoints, or it
moves the horizon of events on by some rows; then others have their turn. It leaves nothing half done, and what is done
is not found again: a sweep that was cut off is simply begun anew.

A thread that is run under a lease, that asks, or of which an effect is in doubt, is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.ledger import horizon, keeping, open_ends
from langgraph_ext.saver import deletion, pruning
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.pruning import SLICE, Keep, is_finished
from langgraph_ext.saver.retention import Pruned
from langgraph_ext.saver.swept import Policy, Swept

__all__ = ["Step", "begin", "count_threads", "look", "sweep"]

_THREADS = 200
"""Most threads that one batch looks at."""

_ROWS = 2000
"""Most rows of the log that one batch looks at, to take events away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a sweep stands."""

    after: str | None
    """The last thread that is done; None when all are."""
    seq: int | None
    """Of a sweep that only looks: the last row of the log whose events were counted; None until that begins."""


def begin(policy: Policy) -> Step:
    """Where it begins."""
    return Step(after=None if policy.keep_last is None else "", seq=None)


def count_threads(tx: Tx) -> int:
    """How many threads have rows."""
    number: int = tx.one("threads_count")["threads"]
    return number


def sweep(tx: Tx, step: Step, policy: Policy, *, names: str, now_us: int) -> tuple[Swept, Step | None]:
    """Do the next batch.

    Args:
        tx: The open transaction.
        step: Where the sweep stands.
        policy: What goes.
        names: A text that nobody else has: deleted threads that are kept get names that begin so.
        now_us: Microseconds since the epoch, UTC.

    Returns:
        What was done, and where to go on; None at the end.
    """
    if step.after is not None:
        done, after = _threads(tx, step.after, policy, names=names, now_us=now_us, acts=True)
        rest = replace(step, after=after)
        return done, None if after is None and policy.events_before_us is None else rest
    assert policy.events_before_us is not None, "a policy asks for something"
    moved = horizon.move(tx, policy.events_before_us, _ROWS)
    return Swept(events=moved.events, batches=1), step if moved.more else None


def look(tx: Tx, step: Step, policy: Policy, *, now_us: int) -> tuple[Swept, Step | None]:
    """As `sweep`, and takes nothing away: what would go."""
    if step.after is not None:
        done, after = _threads(tx, step.after, policy, names="", now_us=now_us, acts=False)
        return done, None if after is None and policy.events_before_us is None else replace(step, after=after)
    assert policy.events_before_us is not None, "a policy asks for something"
    moved, seq = horizon.look(tx, step.seq, policy.events_before_us, _ROWS)
    return Swept(events=moved.events, batches=1), replace(step, seq=seq) if moved.more else None


def _threads(tx: Tx, after: str, policy: Policy, *, names: str, now_us: int, acts: bool) -> tuple[Swept, str | None]:
    """The threads behind `after`, as many as a batch takes; and the last one that is done, None if all are."""
    done, left = Swept(batches=1), SLICE if acts else GREATEST
    for number in range(_THREADS):
        thread_id = tx.one("thread_behind", after=after)["thread_id"]
        if thread_id is None:
            return done, None
        swept, more = _thread(tx, thread_id, policy, left, keep_as=f"{names}.{number}", now_us=now_us, acts=acts)
        done, left = done + swept, left - swept.checkpoints
        if more or left <= 0:
            return done, after if more else thread_id
        after = thread_id
    return done, after


class _Due(Enum):
    DELETED = "deleted"
    PRUNED = "pruned"


def _thread(
    tx: Tx, thread_id: str, policy: Policy, most: int, *, keep_as: str, now_us: int, acts: bool
) -> tuple[Swept, bool]:
    """One thread: what was taken away, or would be, and whether more of it is to go."""
    if tx.maybe("thread_exists", thread_id=thread_id) is None or keeping.is_kept(tx, thread_id):
        return Swept(), False  # only events are left of it, or its ledger was kept: both go by age
    due = _due_of(tx, thread_id, policy)
    if due is None:
        return Swept(threads=1), False
    why = open_ends.why_kept(tx, thread_id, now_us=now_us)
    if why is not None:
        return Swept(threads=1, skipped={why: 1}), False
    keep = policy.keep if due is _Due.PRUNED else Keep(finished=False)
    if not acts:
        gone = pruning.to_prune(tx, thread_id, keep)
    elif due is _Due.PRUNED or tx.maybe("thread_is_longer", thread_id=thread_id, size=most) is not None:
        gone = pruning.prune(tx, thread_id, keep, most=most, stored_us=now_us)  # a long one goes a slice at a time
    else:
        gone = Pruned()
    if gone.more:
        return Swept(checkpoints=gone.checkpoints, hidden=gone.hidden), True
    if due is _Due.PRUNED:
        return Swept(threads=1, pruned=1, checkpoints=gone.checkpoints, hidden=gone.hidden), False
    left = deletion.to_delete(tx, thread_id)
    if acts:
        deletion.delete_thread(tx, thread_id, keep_as=keep_as if policy.keep_ledger else None, stored_us=now_us)
    else:
        gone = Pruned()  # those are among them
    return Swept(threads=1, deleted=1, checkpoints=gone.checkpoints + left), False


def _due_of(tx: Tx, thread_id: str, policy: Policy) -> _Due | None:
    """What is to be done to a thread, by a few looks at each namespace; whether anything keeps it is seen later."""
    is_old, is_long = True, False
    for named in tx.all("namespaces_of", thread_id=thread_id, size=GREATEST):
        address = Address(thread_id, named["checkpoint_ns"], None)
        touched = tx.one("namespace_touched", **address.namespace)["stored_us"]
        is_old = is_old and policy.before_us is not None and (touched is None or touched < policy.before_us)
        is_long = is_long or _is_long(tx, address, policy)
        if is_long and not (is_old and policy.keep_last == 0):
            return _Due.PRUNED
    if is_old and policy.keep_last == 0:
        return _Due.DELETED
    return None


def _is_long(tx: Tx, address: Address, policy: Policy) -> bool:
    """Whether there is a checkpoint in a namespace that does not stay."""
    oldest = tx.maybe("put_oldest", **address.namespace)
    if oldest is None or not _is_before(oldest, policy):
        return False
    if tx.maybe("put_behind", **address.namespace, last=policy.keep.last) is not None:
        return True
    newest = tx.maybe("put_newest", **address.namespace)
    if newest is None or not address.checkpoint_ns or not _is_before(newest, policy):
        return False
    return is_finished(address, newest, lambda root_id: _is_listed(tx, address.thread_id, root_id))


def _is_before(row: Row, policy: Policy) -> bool:
    return policy.before_us is None or bool(row["stored_us"] < policy.before_us)


def _is_listed(tx: Tx, thread_id: str, root_id: str) -> bool:
    return tx.maybe("put_listed", thread_id=thread_id, checkpoint_ns="", checkpoint_id=root_id) is not None
