"""Effects: actions on the outside world, on record before their call runs (rules L28 to L31).

State machine (the only legal moves; `_MOVES` below is the same table):

    begin ──▶ started ──▶ committed ──▶ compensated       its call answered; it was undone
                 │  └───▶ not_happened                    its call said that nothing was done
                 ▼
              unknown ──▶ committed, not_happened         its call raised, or its process was lost; somebody found out

A caller commits `begin`, and calls only if told so (`ToCall`); what the call comes to is a transaction of its own.
Whatever dies in between leaves a started effect, which the next admission turns into an unknown one (`doubt_left`). An
unknown one may be called again with its key (`again`), probed, or resolved by a person; it stays unknown meanwhile.

The key is held by one effect at a time. One that did not happen leaves its row behind and its key free: the next is a
row of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.attempts import Attempt
from langgraph_ext.ledger.effect_keys import Key
from langgraph_ext.ledger.effect_rows import (
    Held,
    append_effect_event,
    conflict,
    find,
    from_row,
    holder_of,
    is_live,
    known,
)
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.frames import FrameKey, check_frame
from langgraph_ext.ledger.records import EffectStatus
from langgraph_ext.ledger.settlement import PartKey

__all__ = [
    "Begun",
    "Done",
    "InDoubt",
    "ToCall",
    "again",
    "begin",
    "call_over",
    "commit",
    "doubt",
    "doubt_left",
    "forget_uses",
    "in_doubt",
    "may_move",
    "not_happened",
    "resolve",
    "status_after",
    "use_name",
]

_MOVES: Mapping[EffectStatus, frozenset[EffectStatus]] = {
    EffectStatus.STARTED: frozenset((EffectStatus.COMMITTED, EffectStatus.UNKNOWN, EffectStatus.NOT_HAPPENED)),
    EffectStatus.UNKNOWN: frozenset((EffectStatus.COMMITTED, EffectStatus.NOT_HAPPENED)),
    EffectStatus.COMMITTED: frozenset((EffectStatus.COMPENSATED,)),
    EffectStatus.NOT_HAPPENED: frozenset(),
    EffectStatus.COMPENSATED: frozenset(),
}
"""Every move there is. Each is made by compare-and-set, on a row whose status is the one it starts from."""

_RESOLVED = "effect.resolved"

_STATUS_AFTER = {f"effect.{status}": status for status in EffectStatus} | {"effect.retried": EffectStatus.UNKNOWN}


class ToCall(NamedTuple):
    """Begun: call now, with the effect's key, once this is committed."""

    effect: Held


class Done(NamedTuple):
    """Committed before: its receipt is the answer."""

    effect: Held


class InDoubt(NamedTuple):
    """Begun before, and nobody knows whether it happened: stop, or `again`, or probe."""

    effect: Held
    live: bool
    """Whether its call may still be running, here or elsewhere: then there is nothing to do but wait."""


Begun = ToCall | Done | InDoubt


def may_move(status: EffectStatus, target: EffectStatus) -> bool:
    """Whether there is such a move."""
    return target in _MOVES[status]


def status_after(event: str, details: Mapping[str, Any]) -> EffectStatus | None:
    """The status that an event leaves its effect in; None if it tells of none."""
    return details.get("outcome") if event == _RESOLVED else _STATUS_AFTER.get(event)


def in_doubt(tx: Tx, *, run: int | None = None, visit: PartKey | None = None) -> list[Held]:
    """Effects of which nobody knows whether they happened: of a run, or of one part of a visit; oldest first.

    One whose call may still be running (its attempt runs, under the same epoch) is not in doubt yet.
    """
    if visit is not None:
        return [from_row(row) for row in tx.all("effects_in_doubt_of_visit", **visit._asdict())]
    return [from_row(row) for row in tx.all("effects_in_doubt_of_run", run=run)]


# -- what a frame does


def begin(
    tx: Tx,
    frame: FrameKey,
    *,
    effect_id: str,
    name: str,
    part: str | None,
    key: Key,
    payload_digest: str,
    compensate: str | None,
    now_us: int,
) -> Begun:
    """Put an effect on record before its call, or find the one that holds its key. Again changes nothing.

    Args:
        tx: The transaction; its commit comes before the call.
        frame: Who wants to act.
        effect_id: A new id, for the case that it begins.
        name: What it is called in its node.
        part: What tells it from others of its name in the attempt.
        key: By `effect_keys.key_for`.
        payload_digest: Of what the call is to be given.
        compensate: The importable name of the function that undoes it.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`); the key names another payload or another name
            (`idempotency_conflict`); the effect was undone (`effect_conflict`).
        InvalidArgument: The attempt has used this name, and part, before.
    """
    attempt = check_frame(tx, frame)
    held = find(tx, effect_id) or holder_of(tx, key)
    if held is not None:
        _check_same_act(held, name, payload_digest)
    use_name(tx, frame, name, part, effect_id, effect_id if held is None else held.effect_id, now_us)
    if held is None:
        about = {"name": name, "part": part, "payload_digest": payload_digest, "compensate": compensate}
        where = _place(frame, attempt)
        own = {"key": key.text, "business": int(key.business), "now_us": now_us}
        tx.run("effect_begin", effect_id=effect_id, **about, **where, **own)
        begun = known(tx, effect_id)
        append_effect_event(tx, begun, "effect.started", now_us=now_us)
        return ToCall(begun)
    if held.effect_id == effect_id and held.status is EffectStatus.STARTED and _is_of(held, frame):
        return ToCall(held)
    if held.status is EffectStatus.COMMITTED:
        return Done(held)
    if held.status in (EffectStatus.STARTED, EffectStatus.UNKNOWN):
        return InDoubt(held, is_live(tx, held))
    raise conflict(held, f"is {held.status}; it cannot be begun again under its id or key")


def again(tx: Tx, frame: FrameKey, effect_id: str, *, now_us: int) -> Held:
    """Take an effect in doubt over, to call it once more with its key; committed before that call, and counted.

    It stays unknown until the call has answered. The same frame's second time changes nothing.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`); the effect is in no doubt, or its call may still be
            running (`effect_conflict`).
        NotFound: There is no such effect (`effect_not_found`).
    """
    attempt = check_frame(tx, frame)
    held = known(tx, effect_id)
    if held.status is EffectStatus.UNKNOWN and held.calling and _is_of(held, frame):
        return held
    if held.status not in (EffectStatus.STARTED, EffectStatus.UNKNOWN):
        raise conflict(held, f"is {held.status}; there is nothing to call again")
    if is_live(tx, held):
        _refuse_live(held)
    if held.calling:
        held = _doubt(tx, held, now_us=now_us, reason="owner_lost")
    if tx.run("effect_retry", effect_id=effect_id, **_place(frame, attempt), now_us=now_us) != 1:
        raise conflict(held, "has moved meanwhile")
    taken = known(tx, effect_id)
    append_effect_event(tx, taken, "effect.retried", now_us=now_us, tries=taken.tries, before=held.attempt_id)
    return taken


def commit(tx: Tx, frame: FrameKey, effect_id: str, *, receipt: Encoded, now_us: int) -> Held:
    """Its call has answered, or a probe has found the answer. The same receipt again changes nothing.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`); the effect was settled otherwise, or another attempt
            may still be calling (`effect_conflict`).
        NotFound: There is no such effect (`effect_not_found`).
    """
    check_frame(tx, frame)
    return _settle(tx, known(tx, effect_id), receipt, frame=frame, now_us=now_us)


def not_happened(tx: Tx, frame: FrameKey, effect_id: str, *, now_us: int) -> Held:
    """As `commit`, for a call that says, or a probe that finds, that nothing was done; the key is free again."""
    check_frame(tx, frame)
    return _settle(tx, known(tx, effect_id), None, frame=frame, now_us=now_us)


def doubt(tx: Tx, frame: FrameKey, effect_id: str, *, now_us: int) -> Held:
    """Its call raised: nobody knows what it did. Again changes nothing.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`); the effect was settled, or is another attempt's
            (`effect_conflict`).
        NotFound: There is no such effect (`effect_not_found`).
    """
    check_frame(tx, frame)
    held = known(tx, effect_id)
    if held.status not in (EffectStatus.STARTED, EffectStatus.UNKNOWN) or not _is_of(held, frame):
        raise conflict(held, f"is {held.status} by attempt {held.attempt_id!r}; this attempt has no call of it")
    return _doubt(tx, held, now_us=now_us, reason="raised") if held.calling else held


# -- what others do


def call_over(tx: Tx, effect_id: str, *, attempt_id: str, epoch: int, gives_back: bool, now_us: int) -> None:
    """A call has come back when its attempt was over: what it did is in doubt, and from here on nobody waits for it.

    If its attempt took the lease by itself (`gives_back`), that is given back unless something else runs under it.
    """
    held = find(tx, effect_id)
    if held is None or not held.calling or (held.attempt_id, held.epoch) != (attempt_id, epoch):
        return
    _doubt(tx, held, now_us=now_us, reason="late")
    if gives_back:
        leases.give_back(tx, held.thread_id, epoch, now_us=now_us)


def doubt_left(tx: Tx, attempt_ids: Iterable[str], *, now_us: int, still_calling: Collection[str] = ()) -> list[Held]:
    """What attempts that are over, or go on from their beginning, left started is unknown now.

    Args:
        tx: The transaction of an admission, or of the wrapper that ends an attempt.
        attempt_ids: The attempts.
        now_us: Microseconds since the epoch, UTC.
        still_calling: Effects whose calls are still running: they stay as they are until those have come back.

    Returns:
        Those effects, by attempt, the oldest first.
    """
    left = [from_row(row) for each in attempt_ids for row in tx.all("effects_calling", attempt_id=each)]
    over = (held for held in left if held.effect_id not in still_calling)
    return [_doubt(tx, held, now_us=now_us, reason="owner_lost") for held in over]


def resolve(tx: Tx, effect_id: str, *, receipt: Encoded | None, now_us: int) -> Held:
    """Somebody has found out what an effect in doubt came to (rule L31). The same again changes nothing.

    Args:
        tx: The transaction.
        effect_id: The effect.
        receipt: What the outside has; None: it did not happen.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        ConflictError: It is in no doubt: settled otherwise, or its call may still be running (`effect_conflict`).
        NotFound: There is no such effect (`effect_not_found`).
    """
    return _settle(tx, known(tx, effect_id), receipt, frame=None, now_us=now_us)


def _settle(tx: Tx, held: Held, receipt: Encoded | None, *, frame: FrameKey | None, now_us: int) -> Held:
    """Settle an open effect: by the frame whose call it was, by one that has probed it, or by a person."""
    target = EffectStatus.NOT_HAPPENED if receipt is None else EffectStatus.COMMITTED
    if (held.status, held.receipt) == (target, receipt):
        return held
    if not may_move(held.status, target):
        raise conflict(held, f"is {held.status}; how it ended is never changed")
    if (frame is None or not _is_of(held, frame)) and is_live(tx, held):
        _refuse_live(held)
    moved = tx.run(
        "effect_move",
        effect_id=held.effect_id,
        expected=held.status,
        target=target,
        receipt_type=None if receipt is None else receipt.type,
        receipt=None if receipt is None else receipt.data,
        ended_us=now_us,
    )
    if moved != 1:
        raise conflict(held, f"is {held.status} no longer")
    if frame is None:
        append_effect_event(tx, held, _RESOLVED, now_us=now_us, outcome=str(target))
    else:
        append_effect_event(tx, held, f"effect.{target}", now_us=now_us, attempt_id=frame.attempt_id)
    return replace(held, status=target, receipt=receipt, calling=False)


def _doubt(tx: Tx, held: Held, *, now_us: int, reason: str) -> Held:
    """The call of a started effect, or the repeated one of an unknown effect, is over without an answer."""
    if tx.run("effect_doubt", effect_id=held.effect_id, expected=held.status) != 1:
        raise conflict(held, f"is {held.status} no longer")
    append_effect_event(tx, held, "effect.unknown", now_us=now_us, reason=reason)
    return replace(held, status=EffectStatus.UNKNOWN, calling=False)


def _check_same_act(held: Held, name: str, payload_digest: str) -> None:
    """A key names one action: of one name, with one payload."""
    if held.name == name and held.payload_digest == payload_digest:
        return
    other = "name" if held.name != name else "payload"
    raise ConflictError(
        f"effect {name!r}: its key was used before, with another {other}, by effect {held.effect_id!r} "
        f"({held.name!r} of attempt {held.attempt_id!r}); nothing was begun. A key names one action: give "
        "another one, or the same name and payload as then",
        code="idempotency_conflict",
        details={"effect_id": held.effect_id, "name": name, "first_name": held.name, "attempt_id": held.attempt_id},
    )


def forget_uses(tx: Tx, attempt_id: str, *, epoch: int) -> None:
    """A body begins again in the same go at its attempt, so it may use its names again; what they did stays on record.

    Args:
        tx: The transaction of an admission.
        attempt_id: The attempt.
        epoch: The epoch it runs under.
    """
    tx.run("effect_uses_of_go_delete", attempt_id=attempt_id, epoch=epoch)


def use_name(tx: Tx, frame: FrameKey, name: str, part: str | None, asked_id: str, effect_id: str, now_us: int) -> None:
    """Note that this go at the attempt has used a name; one that has not happened may be tried again."""
    use = {"attempt_id": frame.attempt_id, "epoch": frame.epoch, "name": name, "part": part or ""}
    used = tx.maybe("effect_use_get", **use)
    if used is not None and used["asked_id"] != asked_id and not used["came_to_nothing"]:
        which = "without part=" if part is None else f"with part={part!r}"
        raise InvalidArgument(
            f"effect {name!r} is used twice in one attempt {which}; give each use a part= of its own, so that each is "
            "done once",
            details={"attempt_id": frame.attempt_id, "name": name},
        )
    tx.run("effect_use_put", **use, asked_id=asked_id, effect_id=effect_id, now_us=now_us)


def _is_of(held: Held, frame: FrameKey) -> bool:
    return (held.attempt_id, held.epoch) == (frame.attempt_id, frame.epoch)


def _place(frame: FrameKey, attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt_id": attempt.attempt_id,
        "run": attempt.run,
        "thread_id": attempt.thread_id,
        "checkpoint_ns": attempt.checkpoint_ns,
        "checkpoint_id": attempt.checkpoint_id,
        "task_id": attempt.task_id,
        "ordinal": attempt.ordinal,
        "node_path": frame.node_path,
        "iteration_path": "/".join(map(str, frame.iteration_path)),
        "epoch": frame.epoch,
    }


def _refuse_live(held: Held) -> NoReturn:
    raise conflict(held, f"may still be called by attempt {held.attempt_id!r}, which is running; wait until that ended")
