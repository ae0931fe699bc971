"""Listings of effects, in keyset pages, and what a person says of one; receipts are decoded when they are given out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import abandoned, effects, leases
from langgraph_ext.ledger.attempts import AttemptStatus
from langgraph_ext.ledger.effect_rows import known
from langgraph_ext.ledger.encoded import Encoded, Serde, encode, value_of
from langgraph_ext.ledger.records import Effect, EffectStatus
from langgraph_ext.ledger.rows import at_least, moment, one_of, run_named, text_or_none
from langgraph_ext.ledger.visit_rows import iteration_of

__all__ = ["NO_RECEIPT", "ask_effects", "ask_to_resolve", "effects_given_out"]

NO_RECEIPT: Final[Any] = object()
"""None is a receipt as well."""


class Found(NamedTuple):
    """An effect as it was read, its receipt not yet decoded."""

    row: Row
    in_doubt: bool


def ask_effects(
    run_id: str | None,
    *,
    thread_id: str | None,
    status: EffectStatus | str | None,
    after: str | None,
    limit: int,
    now_us: int,
) -> Callable[[Tx], list[Found]]:
    """A page of effects, oldest first, ready to be read.

    Raises:
        InvalidArgument: There is no such status, or `limit` is below 1.
    """
    return partial(
        _effects,
        run_id=text_or_none(run_id, "run_id"),
        thread_id=text_or_none(thread_id, "thread_id"),
        status=one_of(EffectStatus, status, "status"),
        after=text_or_none(after, "after"),
        size=at_least(1, limit, "limit"),
        now_us=now_us,
    )


def _effects(tx: Tx, *, now_us: int, **asked: Any) -> list[Found]:
    return [Found(row, _is_in_doubt(tx, row, now_us)) for row in _page(tx, **asked)]


def _page(
    tx: Tx, *, run_id: str | None, thread_id: str | None, status: EffectStatus | None, after: str | None, size: int
) -> list[Row]:
    run = None if run_id is None else run_named(tx, run_id)
    page = {**_behind(tx, after), "size": size}
    if run is not None:
        return tx.all("effects_page_of_run", run=run["run"], status=status, **page) if _fits(run, thread_id) else []
    if thread_id is not None:
        return tx.all("effects_page_of_thread", thread_id=thread_id, status=status, **page)
    if status is not None:
        return tx.all("effects_page_with_status", status=status, **page)
    return tx.all("effects_page", **page)


def _fits(run: Row, thread_id: str | None) -> bool:
    return thread_id in (None, run["thread_id"])


def _behind(tx: Tx, after: str | None) -> dict[str, object]:
    """Where a page begins: behind the effect of this id."""
    if after is None:
        return {"started_us": -1, "effect_id": ""}
    known(tx, after)
    return {"started_us": tx.one("effect_get", effect_id=after)["started_us"], "effect_id": after}


def ask_to_resolve(
    effect_id: str, receipt: Any, happened: object, serde: Serde | None, now_us: int
) -> Callable[[Tx], Found]:
    """What somebody found out about an effect, checked and encoded, ready to be stored; answers with its row.

    Raises:
        InvalidArgument: It says neither, or both, or the receipt cannot be encoded.
    """
    if not (happened is None or happened is False) or (receipt is NO_RECEIPT) is (happened is None):
        raise InvalidArgument(
            f"effect {effect_id!r}: give either receipt=, what the outside has to show for it, or happened=False"
        )
    return partial(
        _resolve,
        effect_id=text_or_none(effect_id, "effect_id") or "",
        receipt=None if receipt is NO_RECEIPT else encode(receipt, serde, what="receipt"),
        now_us=now_us,
    )


def _resolve(tx: Tx, *, effect_id: str, receipt: Encoded | None, now_us: int) -> Found:
    held = known(tx, effect_id)
    if held.calling and abandoned.give_up(tx, held.thread_id, now_us=now_us):
        effects.doubt_left(tx, [held.attempt_id], now_us=now_us)
    effects.resolve(tx, effect_id, receipt=receipt, now_us=now_us)
    return Found(tx.one("effect_record", effect_id=effect_id), in_doubt=False)


def effects_given_out(found: Iterable[Found], serde: Serde | None) -> list[Effect]:
    """The effects as they are given out."""
    return [_record(each.row, each.in_doubt, serde) for each in found]


def _record(row: Row, in_doubt: bool, serde: Serde | None) -> Effect:
    return Effect(
        effect_id=row["effect_id"],
        run_id=row["run_id"],
        thread_id=row["thread_id"],
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        node_path=row["node_path"],
        iteration_path=iteration_of(row["iteration_path"]),
        attempt_id=row["attempt_id"],
        epoch=row["epoch"],
        name=row["name"],
        part=row["part"],
        key=row["key"],
        business=bool(row["business"]),
        payload_digest=row["payload_digest"],
        status=EffectStatus(row["status"]),
        in_doubt=in_doubt,
        tries=row["tries"],
        receipt=None if row["receipt"] is None else value_of(row["receipt_type"], row["receipt"], serde),
        receipt_type=row["receipt_type"],
        compensate=row["compensate"],
        again_of=row["again_of"],
        started_at=moment(row["started_us"]),
        ended_at=None if row["ended_us"] is None else moment(row["ended_us"]),
    )


def _is_in_doubt(tx: Tx, row: Row, now_us: int) -> bool:
    """As `effects.in_doubt` finds them; of an owner who is gone also before the next admission has noticed."""
    if row["status"] not in (EffectStatus.STARTED, EffectStatus.UNKNOWN):
        return False
    runs = row["attempt_status"] == AttemptStatus.RUNNING and row["attempt_epoch"] == row["epoch"]
    if row["calling_us"] is None or abandoned.is_abandoned(tx, row["thread_id"], now_us=now_us):
        return True
    return not runs and not (leases.left_epoch(tx, row["thread_id"]) == row["attempt_epoch"] == row["epoch"])
