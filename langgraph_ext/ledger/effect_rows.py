"""Rows of effects: one as a transaction read it, found by id or key, and the event that tells of a change of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError, NotFound
from langgraph_ext.ledger import attempts, leases
from langgraph_ext.ledger.effect_keys import Key
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.records import EffectStatus

__all__ = ["Held", "append_effect_event", "conflict", "find", "from_row", "holder_of", "is_live", "known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One row of `effect`, as the transaction read it or left it."""

    effect_id: str
    attempt_id: str
    """The attempt that called last; the next ones are its place."""
    run: int
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    ordinal: int
    epoch: int
    name: str
    part: str | None
    key: Key
    payload_digest: str
    status: EffectStatus
    tries: int
    receipt: Encoded | None
    """What the outside answered."""
    compensate: str | None
    calling: bool
    """Whether its call was begun and nobody has said that it is over; its process may be gone."""


def find(tx: Tx, effect_id: str) -> Held | None:
    """The effect of this id, or None."""
    row = tx.maybe("effect_get", effect_id=effect_id)
    return None if row is None else from_row(row)


def holder_of(tx: Tx, key: Key) -> Held | None:
    """The effect that holds a key, or None."""
    row = tx.maybe("effect_of_key", key=key.text)
    return None if row is None else from_row(row)


def known(tx: Tx, effect_id: str) -> Held:
    """The effect of this id.

    Raises:
        NotFound: There is none (`effect_not_found`).
    """
    held = find(tx, effect_id)
    if held is None:
        raise NotFound(
            f"effect {effect_id!r} is not in this ledger; effects() lists those that are",
            code="effect_not_found",
            details={"effect_id": effect_id},
        )
    return held


def is_live(tx: Tx, held: Held) -> bool:
    """Whether its call may still be running: it was not said to be over, and its attempt runs, in the same go.

    Or the attempt has ended, and its lease was not given back: that waits for its calls (holds.py).
    """
    attempt = attempts.find(tx, held.attempt_id) if held.calling else None
    if attempt is None or attempt.epoch != held.epoch:
        return False
    return attempt.status is attempts.AttemptStatus.RUNNING or leases.left_epoch(tx, held.thread_id) == held.epoch


def append_effect_event(tx: Tx, held: Held, event: str, *, now_us: int, **more: Any) -> None:
    """Append an event of an effect, for a change that was just made: ids and names, no payload and no receipt."""
    about = {"effect_id": held.effect_id, "name": held.name, "attempt_id": held.attempt_id, "task_id": held.task_id}
    append_event(
        tx,
        name=event,
        run=held.run,
        thread_id=held.thread_id,
        checkpoint_ns=held.checkpoint_ns,
        checkpoint_id=held.checkpoint_id,
        details={**about, **({"part": held.part} if held.part else {}), **more},
        stored_us=now_us,
    )


def conflict(held: Held, why: str) -> ConflictError:
    """The error of a move that an effect cannot make (`effect_conflict`)."""
    return ConflictError(
        f"effect {held.effect_id!r} ({held.name!r}) {why}; nothing was changed. See effects() for how it stands",
        code="effect_conflict",
        details={"effect_id": held.effect_id, "status": str(held.status), "attempt_id": held.attempt_id},
    )


def from_row(row: Row) -> Held:
    """A row of `effect` as a value."""
    return Held(
        effect_id=row["effect_id"],
        attempt_id=row["attempt_id"],
        run=row["run"],
        thread_id=row["thread_id"],
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        ordinal=row["ordinal"],
        epoch=row["epoch"],
        name=row["name"],
        part=row["part"],
        key=Key(row["key"], bool(row["business"])),
        payload_digest=row["payload_digest"],
        status=EffectStatus(row["status"]),
        tries=row["tries"],
        receipt=None if row["receipt"] is None else Encoded(row["receipt_type"], row["receipt"]),
        compensate=row["compensate"],
        calling=row["calling_us"] is not None,
    )
