"""Forks: effects that a fork comes to and that the run it was forked from had committed (rule L47).

    run      pay ─ committed ─ …
             └─ fork: pay ── meet ──▶ found ── choose ──▶ act      under a key of its own, as forks do
                                                     ├──▶ reuse    the old receipt is given back
                                                     └──▶ stop     nothing is done, and the fork is cancelled

It is the same effect if node, name, part and payload are. What led to the fork is not met again: that was done before
it. Each effect is met by one round of the fork, its own if that is among those left; so a loop that is forked acts by
itself once it is beyond what the run had done. What was met is on record before anybody is asked, and so is the first
choice: who comes here again meets the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import control, inbox
from langgraph_ext.ledger.attempts import Attempt
from langgraph_ext.ledger.effect_keys import Key
from langgraph_ext.ledger.effect_rows import Held, conflict, from_row, holder_of, known
from langgraph_ext.ledger.effects import use_name
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.frames import FrameKey, check_frame
from langgraph_ext.ledger.records import CancelMode, EffectStatus, InboxKind
from langgraph_ext.ledger.visits import inherited_places

__all__ = ["Choice", "Meeting", "Met", "asked_up_to", "choose", "is_fork", "meet"]


class Choice(StrEnum):
    """What a fork does about an effect that was committed before."""

    ACT = "act"
    REUSE = "reuse"
    STOP = "stop"


_EVENTS = {Choice.ACT: "effect.repeated", Choice.REUSE: "effect.reused", Choice.STOP: "effect.refused"}

_REASON = "an effect was committed by the run that was forked, and the fork was to stop at that"


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """An effect that a fork has met."""

    key: str
    """Which the fork's own would have."""
    node_path: str
    name: str
    part: str | None
    before_id: str
    """The effect that was committed before."""
    before_run: str | None
    """Its run; None if that was deleted since."""
    task_part: int
    """Which attempt-bearing part of its task has met it."""
    ordinal: int | None
    """Which question of this sort it is in its task, from 0; None if nobody is asked."""
    choice: Choice | None
    """None if nobody has chosen yet."""
    receipt: Encoded | None
    """If that is given back."""


class Meeting(NamedTuple):
    """An effect that a fork has met, and what its task has asked about before."""

    met: Met
    earlier: Sequence[Met]
    """The questions of its task that come before it, in their order."""


def is_fork(tx: Tx, run: int) -> bool:
    """Whether a run was forked from another one."""
    return tx.one("run_get", run=run)["fork_of"] is not None


def meet(
    tx: Tx,
    frame: FrameKey,
    *,
    effect_id: str,
    name: str,
    part: str | None,
    key: Key,
    payload_digest: str,
    asks: bool,
    now_us: int,
) -> Meeting | None:
    """See whether a fork comes to what was committed before; None if not, or if it has acted already. Again: the same.

    Args:
        tx: The transaction.
        frame: Who wants to act, in a fork.
        effect_id: The new id that `effects.begin` will be given.
        name: What the effect is called in its node.
        part: What tells it from others of its name in the attempt.
        key: The derived one.
        payload_digest: Of what the call is to be given.
        asks: Whether somebody is asked about it.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`), or this attempt's visit has met it with another
            payload (`idempotency_conflict`).
        InvalidArgument: The attempt has used this name, and part, before.
    """
    attempt = check_frame(tx, frame)
    row = tx.maybe("effect_fork_get", key=key.text)
    if row is None:
        if holder_of(tx, key) is not None:
            return None  # begun when nothing was committed there yet
        before = _before(tx, frame, attempt, name=name, part=part, payload_digest=payload_digest)
        if before is None:
            return None
        tx.run(
            "effect_fork_put",
            key=key.text,
            run=frame.run,
            thread_id=attempt.thread_id,
            checkpoint_id=attempt.checkpoint_id,
            task_id=attempt.task_id,
            task_part=attempt.ordinal,
            asks=int(asks),
            node_path=frame.node_path,
            iteration_path=_path(frame),
            name=name,
            part=part,
            payload_digest=payload_digest,
            before_id=before.effect_id,
            now_us=now_us,
        )
        row = tx.one("effect_fork_get", key=key.text)
    if row["payload_digest"] != payload_digest:
        raise ConflictError(
            f"effect {name!r}: this visit of a fork came to it with another payload before; nothing was begun. Give "
            "the same payload as then, or another name",
            code="idempotency_conflict",
            details={"name": name, "effect_id": row["before_id"]},
        )
    use_name(tx, frame, name, part, effect_id, row["before_id"], now_us)
    met, asked = _met(tx, row), _asked(tx, attempt)
    return Meeting(met, [each for each in asked if met.ordinal is not None and _comes_before(each, met)])


def asked_up_to(tx: Tx, attempt: Attempt) -> Sequence[Met]:
    """The questions of a task as far as one of its parts has asked them, which has come to its end; in their order.

    Whoever is given that part's result goes on behind them.
    """
    asked = _asked(tx, attempt)
    own = [each for each in asked if each.task_part == attempt.ordinal]
    return [each for each in asked if each is own[-1] or _comes_before(each, own[-1])] if own else ()


def choose(tx: Tx, frame: FrameKey, met: Met, *, choice: Choice, now_us: int) -> Met:
    """Put on record what a fork does about what it has met. The first choice counts, whatever comes later.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`), or the old receipt is no more: its effect was undone
            (`effect_conflict`).
        NotFound: The old effect was deleted with its run (`effect_not_found`).
    """
    attempt = check_frame(tx, frame)
    receipt = _receipt_of(known(tx, met.before_id)) if choice is Choice.REUSE else None
    chosen = tx.run(
        "effect_fork_choose",
        key=met.key,
        choice=choice,
        receipt_type=None if receipt is None else receipt.type,
        receipt=None if receipt is None else receipt.data,
        now_us=now_us,
    )
    row = tx.one("effect_fork_get", key=met.key)
    if chosen and choice is Choice.STOP and control.waiting(tx, attempt.thread_id, frame.run) is None:
        run = tx.one("run_get", run=frame.run)
        inbox.add(tx, run, InboxKind.CANCEL, mode=CancelMode.NOW, reason=_REASON, now_us=now_us)
    if chosen:
        part = {"part": row["part"]} if row["part"] else {}
        append_event(
            tx,
            name=_EVENTS[choice],
            run=frame.run,
            thread_id=attempt.thread_id,
            checkpoint_ns=attempt.checkpoint_ns,
            checkpoint_id=attempt.checkpoint_id,
            details={"name": row["name"], **part, "of": met.before_id, "attempt_id": frame.attempt_id},
            stored_us=now_us,
        )
    return _met(tx, row)


def _asked(tx: Tx, attempt: Attempt) -> list[Met]:
    where = {"thread_id": attempt.thread_id, "checkpoint_id": attempt.checkpoint_id, "task_id": attempt.task_id}
    return [_met(tx, row) for row in tx.all("effect_forks_asked", **where)]


def _comes_before(question: Met, other: Met) -> bool:
    return (question.ordinal or 0) < (other.ordinal or 0)


def _before(
    tx: Tx, frame: FrameKey, attempt: Attempt, *, name: str, part: str | None, payload_digest: str
) -> Held | None:
    """What the runs that a fork comes from had committed of an effect, behind the checkpoints that led to it."""
    run = tx.one("run_get", run=frame.run)
    led_here: set[tuple[int, str]] | None = None
    for forked in _line(tx, run):
        alike = tx.all(
            "effects_alike",
            run=forked["run"],
            fork=frame.run,
            node_path=frame.node_path,
            iteration_path=_path(frame),
            name=name,
            part=part,
        )
        same = [row for row in alike if row["payload_digest"] == payload_digest]
        for row in sorted(same, key=lambda row: bool(row["iteration_path"] != _path(frame))):  # its own round's first
            if led_here is None:
                led_here = {(owner["run"], place) for owner, places in inherited_places(tx, run) for place in places}
            if (forked["run"], _root_of(tx, row)) not in led_here:
                return from_row(row)
    return None


def _line(tx: Tx, run: Row) -> Iterator[Row]:
    """The run that a fork was forked from, the one that that was forked from, and so on."""
    seen = {run["run"]}
    while run["fork_of"] is not None:
        above = tx.maybe("run_named", run_id=run["fork_of"])
        if above is None or above["run"] in seen:
            return
        seen.add(above["run"])
        yield (run := above)


def _root_of(tx: Tx, effect: Row) -> str:
    """The root checkpoint that was being executed when it was begun."""
    where = {"checkpoint_ns": effect["checkpoint_ns"], "checkpoint_id": effect["checkpoint_id"]}
    place = tx.maybe("place_get", thread_id=effect["thread_id"], **where)
    return str(effect["checkpoint_id"] if place is None or place["root_id"] is None else place["root_id"])


def _receipt_of(held: Held) -> Encoded:
    if held.status is not EffectStatus.COMMITTED or held.receipt is None:
        raise conflict(held, f"is {held.status} by now: there is no receipt of it to be given back")
    return held.receipt


def _met(tx: Tx, row: Row) -> Met:
    effect = tx.maybe("effect_get", effect_id=row["before_id"])
    run = None if effect is None else tx.maybe("run_get", run=effect["run"])
    return Met(
        key=row["key"],
        node_path=row["node_path"],
        name=row["name"],
        part=row["part"],
        task_part=row["task_part"],
        before_id=row["before_id"],
        before_run=None if run is None else run["run_id"],
        ordinal=row["ordinal"],
        choice=None if row["choice"] is None else Choice(row["choice"]),
        receipt=None if row["receipt"] is None else Encoded(row["receipt_type"], row["receipt"]),
    )


def _path(frame: FrameKey) -> str:
    return "/".join(map(str, frame.iteration_path))
