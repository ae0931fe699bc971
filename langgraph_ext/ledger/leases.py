"""Leases: one invocation at a time holds a thread, and what an earlier holder still writes is refused.

State machine of a thread's lease:

    acquire ──▶ held ◀── renew
                │  │
                │  └─ expired, or its owner is gone ── acquire ──▶ held by another, epoch + 1; lease.taken_over
                ▼
             released ── acquire ──▶ held, epoch + 1

The epoch is the fencing token. It counts the holds of a thread, also over its deletion; whoever writes under a lease
calls `check` in the transaction that writes (rule L13), which passes the present epoch alone, as long as it is held. So
time decides only who may take over, never whether a write is in order: a lease that has expired is its owner's until
somebody takes it.

A clock that is put back would let the lease of an owner who died on another host last longer. Who finds one that ends
later than one TTL from now lets it end then (`cap`). A refusal stores nothing, so this is a transaction of its own,
which `take` and `atake` add to theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import NoReturn, TypeVar

from langgraph_ext.database import Database, Row, Tx
from langgraph_ext.errors import InvalidArgument, LeaseError
from langgraph_ext.ledger import active_time, notices
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.owners import Owner, is_gone
from langgraph_ext.ledger.rows import moment

__all__ = [
    "DEFAULT_TTL_US",
    "Lease",
    "acquire",
    "atake",
    "atake_by",
    "cap",
    "check",
    "give_back",
    "holder",
    "left_epoch",
    "lost",
    "refuse_held",
    "release",
    "renew",
    "take",
    "take_by",
]

T = TypeVar("T")

DEFAULT_TTL_US = 30_000_000
"""For how long a lease holds that is not renewed."""

_LONGEST_TTL_US = 10**15
"""About 30 years: more would not fit beside the time in 64 bits, or into a timer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One hold of a thread, as the transaction read it."""

    thread_id: str
    epoch: int
    """The fencing token: which hold of the thread it is, from 1."""
    owner: Owner
    ttl_us: int
    """For how long it holds if it is not renewed."""
    acquired_us: int
    """Microseconds since the epoch, UTC; so is the next."""
    expires_us: int
    whole: bool
    """Whether it is an invocation's, from its beginning to its end, and not one that an attempt took by itself."""
    taken_over: str | None = field(default=None, compare=False)
    """Why it was taken from a holder that had not given it back, if this transaction did: `expired`, `owner_gone`."""


def acquire(tx: Tx, *, thread_id: str, owner: Owner, ttl_us: int, now_us: int, whole: bool = False) -> Lease:
    """Hold a thread. Its present holder gets the lease it has, renewed.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        owner: Who is to hold it.
        ttl_us: For how long, if it is not renewed; of a present holder the lease's own counts.
        now_us: Microseconds since the epoch, UTC.
        whole: Whether for a whole invocation.

    Raises:
        LeaseError: Another owner holds it (`thread_busy`); `details` names it and says until when. If they also hold
            `"clock_put_back": True`, `cap` has to follow in a transaction of its own.
        InvalidArgument: The TTL is not positive, or longer than a timer can wait.
    """
    if not 0 < ttl_us <= _LONGEST_TTL_US:
        raise InvalidArgument(f"a lease's TTL is {ttl_us!r} µs; it must be positive, {_LONGEST_TTL_US} at most")
    hold = {"thread_id": thread_id, "owner": owner.to_text(), "ttl_us": ttl_us, "now_us": now_us, "whole": int(whole)}
    made = Lease(
        thread_id=thread_id,
        epoch=1,
        owner=owner,
        ttl_us=ttl_us,
        acquired_us=now_us,
        expires_us=now_us + ttl_us,
        whole=whole,
    )
    row = tx.maybe("lease_get", thread_id=thread_id)
    if row is None:
        tx.run("lease_insert", **hold)
        return made
    before = _from_row(row)
    why = None
    if row["released_us"] is None:
        if before.owner.is_same(owner):
            return renew(tx, thread_id, before.epoch, now_us=now_us)
        if (why := _ended(before, now_us)) is None:
            _busy(before, now_us)
        _say_taken_over(tx, before, why, owner, now_us)
        if before.whole:
            until_us = min(now_us, before.expires_us)
            active_time.count(tx, thread_id, since_us=before.acquired_us, until_us=until_us)
    moved = tx.run("lease_take", **hold, epoch=before.epoch)
    assert moved == 1, "nobody else writes in this transaction"
    return replace(made, epoch=before.epoch + 1, taken_over=why)


def renew(tx: Tx, thread_id: str, epoch: int, *, now_us: int) -> Lease:
    """Let a lease hold for one more TTL from now; also one that has expired, if nobody has taken it over.

    Raises:
        LeaseError: It is not the present one, or was released (`lease_lost`).
    """
    if tx.run("lease_renew", thread_id=thread_id, epoch=epoch, now_us=now_us) == 0:
        _lost(tx, thread_id, epoch)
    return _from_row(tx.one("lease_get", thread_id=thread_id))


def release(tx: Tx, thread_id: str, epoch: int, *, now_us: int) -> bool:
    """Give a thread back, if it is still held under this epoch; nothing happens otherwise.

    Returns:
        Whether it was held.
    """
    return tx.run("lease_release", thread_id=thread_id, epoch=epoch, now_us=now_us) == 1


def give_back(tx: Tx, thread_id: str, epoch: int, *, now_us: int) -> bool:
    """As `release`, of a lease that attempts took by themselves (rule L14): the last of them gives it back."""
    return tx.run("lease_give_back", thread_id=thread_id, epoch=epoch, now_us=now_us) == 1


def check(tx: Tx, thread_id: str, epoch: int) -> None:
    """See, before a write of the same transaction, that it comes from the thread's present holder.

    Raises:
        LeaseError: It does not: the thread is held under another epoch, or under none (`lease_lost`).
    """
    row = tx.maybe("lease_get", thread_id=thread_id)
    if row is None or row["epoch"] != epoch or row["released_us"] is not None:
        _lost(tx, thread_id, epoch)


def holder(tx: Tx, thread_id: str, *, now_us: int) -> Lease | None:
    """The live lease of a thread; None if it was released, has expired, or its owner is known to be gone.

    After a clock was put back, it is shown to end one TTL from now at the latest.
    """
    row = tx.maybe("lease_get", thread_id=thread_id)
    if row is None or row["released_us"] is not None:
        return None
    lease = _from_row(row)
    return None if _ended(lease, now_us) is not None else _capped(lease, now_us)


def left_epoch(tx: Tx, thread_id: str) -> int | None:
    """The epoch of a thread's lease that was never given back; None if it was, or if there never was one."""
    row = tx.maybe("lease_get", thread_id=thread_id)
    return None if row is None or row["released_us"] is not None else row["epoch"]


def cap(tx: Tx, thread_id: str, *, now_us: int) -> bool:
    """Let a lease end one TTL from now at the latest: its end was reckoned by a clock that was put back since.

    Returns:
        Whether it would have ended later.
    """
    return tx.run("lease_cap", thread_id=thread_id, now_us=now_us) == 1


def refuse_held(tx: Tx, thread_id: str, *, now_us: int) -> int | None:
    """For who does to a thread what its holder must not meet, and has no lease himself: none may be live.

    Returns:
        The epoch of a lease that was never given back; None if it was, or if there never was one.

    Raises:
        LeaseError: Somebody holds it, in this process or in another (`thread_busy`).
    """
    row = tx.maybe("lease_get", thread_id=thread_id)
    if row is None or row["released_us"] is not None:
        return None
    lease = _from_row(row)
    if _ended(lease, now_us) is None:
        _busy(_capped(lease, now_us), now_us)
    return lease.epoch


def take(database: Database, *, thread_id: str, owner: Owner, ttl_us: int = DEFAULT_TTL_US) -> Lease:
    """Hold a thread for a whole invocation: as `acquire`, in a transaction of its own, by the database's clock."""
    lease = take_by(database, acquire, thread_id=thread_id, owner=owner, ttl_us=ttl_us)
    notices.taken_over(thread_id, lease.epoch, lease.taken_over)
    return lease


async def atake(database: Database, *, thread_id: str, owner: Owner, ttl_us: int = DEFAULT_TTL_US) -> Lease:
    """As `take`."""
    lease = await atake_by(database, acquire, thread_id=thread_id, owner=owner, ttl_us=ttl_us)
    notices.taken_over(thread_id, lease.epoch, lease.taken_over)
    return lease


def take_by(database: Database, begin: Callable[..., T], *, thread_id: str, owner: Owner, ttl_us: int) -> T:
    """As `take`, by a transaction that does more than `acquire`, which it calls; gives back what that does.

    Whoever calls it tells the log of a takeover, as the lease says.
    """
    now_us = database.clock_us()
    try:
        return database.transact(begin, thread_id=thread_id, owner=owner, ttl_us=ttl_us, now_us=now_us, whole=True)
    except LeaseError as error:
        if _clock_was_put_back(error):
            database.transact(cap, thread_id, now_us=now_us)
        raise


async def atake_by(database: Database, begin: Callable[..., T], *, thread_id: str, owner: Owner, ttl_us: int) -> T:
    """As `take_by`."""
    now_us = database.clock_us()
    try:
        return await database.atransact(
            begin, thread_id=thread_id, owner=owner, ttl_us=ttl_us, now_us=now_us, whole=True
        )
    except LeaseError as error:
        if _clock_was_put_back(error):
            await database.atransact(cap, thread_id, now_us=now_us)
        raise


def lost(thread_id: str, epoch: int, why: str, **details: object) -> LeaseError:
    """The error that says that a lease is its owner's no more."""
    return LeaseError(
        f"thread {thread_id!r}: the lease of epoch {epoch} is lost: {why}; nothing was written. Stop this invocation; "
        "invoke again to go on from what is stored",
        code="lease_lost",
        details={"thread_id": thread_id, "epoch": epoch, **details},
    )


def _ended(lease: Lease, now_us: int) -> str | None:
    """Why a lease that was not released holds no more; None if it does."""
    if lease.expires_us <= now_us:
        return "expired"
    return "owner_gone" if is_gone(lease.owner) else None


def _capped(lease: Lease, now_us: int) -> Lease:
    latest = now_us + lease.ttl_us
    return lease if lease.expires_us <= latest else replace(lease, expires_us=latest)


def _busy(lease: Lease, now_us: int) -> NoReturn:
    ends_us = _capped(lease, now_us).expires_us
    details: dict[str, object] = {
        "thread_id": lease.thread_id,
        "epoch": lease.epoch,
        "owner": asdict(lease.owner),
        "expires_us": ends_us,
    }
    if ends_us != lease.expires_us:
        details["clock_put_back"] = True
    raise LeaseError(
        f"thread {lease.thread_id!r} is held by {lease.owner} until {moment(ends_us).isoformat()}, or longer if that "
        "renews its lease; call again when it has ended",
        code="thread_busy",
        retryable=True,
        details=details,
    )


def _clock_was_put_back(error: LeaseError) -> bool:
    return "clock_put_back" in error.details


def _lost(tx: Tx, thread_id: str, epoch: int) -> NoReturn:
    row = tx.maybe("lease_get", thread_id=thread_id)
    if row is None or row["epoch"] < epoch:
        raise lost(thread_id, epoch, "the thread was never held under it")
    now = _from_row(row)
    if now.epoch == epoch:
        raise lost(thread_id, epoch, "it was released")
    raise lost(thread_id, epoch, f"{now.owner} holds, or held, the thread since", now_epoch=now.epoch)


def _say_taken_over(tx: Tx, before: Lease, why: str, owner: Owner, now_us: int) -> None:
    append_event(
        tx,
        name="lease.taken_over",
        run=None,
        thread_id=before.thread_id,
        checkpoint_ns="",
        checkpoint_id="",
        details={
            "reason": why,
            "from": asdict(before.owner),
            "from_epoch": before.epoch,
            "expires_us": before.expires_us,
            "by": asdict(owner),
            "epoch": before.epoch + 1,
        },
        stored_us=now_us,
    )


def _from_row(row: Row) -> Lease:
    return Lease(
        thread_id=row["thread_id"],
        epoch=row["epoch"],
        owner=Owner.from_text(row["owner"]),
        ttl_us=row["ttl_us"],
        acquired_us=row["acquired_us"],
        expires_us=row["expires_us"],
        whole=bool(row["whole"]),
    )
