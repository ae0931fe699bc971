"""Reencrypting a database: all that was sealed with older keys, or not at all, is sealed with the current one.

It goes over all rows in small transactions, and keeps no state: asked again, it leaves alone what is done. It does so
until there is nothing to do, a few times at most: if there always is something, others seal with another key. While a
plain database is being encrypted nothing else may use it, as some rows are plain then; a mark says so. Its file is
written anew before that mark goes, so that nothing plain is left in it. Old keys can be changed while graphs run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import LOCKED, Encryption, Row, Sealer, Tx, open_database
from langgraph_ext.database.encryption import Cipher
from langgraph_ext.database.reencrypting import (
    Step,
    compact,
    count_rows,
    is_current,
    last_rows,
    refuse_company,
    reseal_rows,
    resealed,
)
from langgraph_ext.database.sealed_columns import TABLES, Named
from langgraph_ext.database.sealed_json import metadata_inner
from langgraph_ext.errors import EncryptionError
from langgraph_ext.saver import strands, values
from langgraph_ext.saver.batches import Batches, run_batches
from langgraph_ext.saver.copying import put_sealed_again
from langgraph_ext.saver.sealing import Seals, frames_in
from langgraph_ext.saver.writes import sealed_again

__all__ = ["OnRows", "Reencrypted", "Steps", "encrypt_database", "steps", "to_look_at"]

_ROWS = 64
"""Rows of a step; of a kind that may be large, fewer."""

_FEW = 16

_PASSES = 4
"""Most passes over all rows. The second one finds what was sealed during the first by who had not heard of the key."""

_LOG, _PIECES = "checkpoint_log", "strand_piece"

_DETAILS = Named("event.details", "details", TABLES["event"].key)

OnRows = Callable[[int], object]
"""Called after each step with how many rows were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencrypted:
    """What was done."""

    rows: int
    """That were looked at."""
    changed: int
    """That were sealed with the current key."""


Steps = Batches[Callable[[Tx], Any], Any, Reencrypted]


def steps(on_progress: OnRows | None, *, converting: bool = False) -> Steps:
    """Everything, once and again until there is nothing to do; then the keys that nothing needs are forgotten.

    Raises:
        EncryptionError: There is always more to do: others seal with another key (`key_in_use`).
    """
    rows = changed = 0
    for _ in range(_PASSES):
        before = changed
        begins: dict[str, int] = {}
        for _ in range(2):  # all rows, and those that came meanwhile
            lasts: dict[str, int] = yield _last_rows
            for table, upto in lasts.items():
                after: int | None = begins.get(table, 0)
                while after is not None:
                    done: Step = yield partial(_step, table=table, after=after, upto=upto, converting=converting)
                    rows, changed, after = rows + done.seen, changed + done.changed, done.last
                    if on_progress is not None:
                        on_progress(rows)
            begins = lasts
        changed += yield partial(_end, begins=begins, converting=converting, may_forget=changed == before)
        if changed == before:
            return Reencrypted(rows=rows, changed=changed)
    yield partial(_refuse_others, changed=changed)
    raise AssertionError("others were refused")


def to_look_at(tx: Tx) -> int:
    """About how many rows there are to be looked at; all of them are, once more at the end."""
    return int(tx.one("log_and_pieces")["number"]) + count_rows(tx)


def encrypt_database(
    url: str | PathLike[str], encryption: Encryption | Cipher, *, on_progress: OnRows | None = None
) -> Reencrypted:
    """Encrypt a plain database, or go on with it; of one that is encrypted, seal all with the current key.

    Nothing else may use a plain one meanwhile: stop what does, first. It may be killed at any time, and asked again.

    Args:
        url: A path.
        encryption: What it is encrypted with from here on.
        on_progress: Called after each step with how many rows were looked at.

    Raises:
        StoreError: As `open_database`; `store_busy` if a plain one is open anywhere else.
        EncryptionError: Something that is encrypted does not open, or others go on sealing with another key
            (`key_in_use`; what was sealed stays).
    """
    _refuse_company(url)
    database = open_database(url, encryption=encryption, create=False, keys="converts")
    try:
        database.open()
        if converting := database.read(_is_converting):  # it is marked: whoever opens it from here on is refused
            database.close()
            refuse_company(database.name)
            database = open_database(url, encryption=encryption, create=False, keys="converts")
        found = run_batches(steps(on_progress, converting=converting), database.transact)
    finally:
        database.close()
    if converting:
        compact(database.name)
        database = open_database(url, encryption=encryption, create=False, keys="converts")
        try:
            database.transact(_converted)
        finally:
            database.close()
    return found


def _refuse_company(url: str | PathLike[str]) -> None:
    """Refuse to encrypt a plain database that somebody uses, before anything is written."""
    database = open_database(url, encryption=LOCKED, create=False)
    try:
        database.open()
        is_plain = database.sealer is None
    finally:
        database.close()
    if is_plain:
        refuse_company(database.name)


def _is_converting(tx: Tx) -> bool:
    return any(row["converting"] for row in tx.all("encryption_keys"))


def _converted(tx: Tx) -> None:
    tx.run("encryption_converted")


def _end(tx: Tx, *, begins: Mapping[str, int], converting: bool, may_forget: bool) -> int:
    """Seal the few rows that nobody has looked at yet; if all was sealed already, forget the keys that nothing needs.

    In one transaction, so that nobody seals with another key in between and is not noticed.
    """
    changed = 0
    for table, upto in _last_rows(tx).items():
        after: int | None = begins[table]
        while after is not None:
            done = _step(tx, table=table, after=after, upto=upto, converting=converting)
            changed, after = changed + done.changed, done.last
    if may_forget and not changed and not converting:
        tx.run("encryption_key_forget", current=_sealer(tx).current)
    return changed


def _last_rows(tx: Tx) -> dict[str, int]:
    """The tables, in the order in which they are gone over, and where each ends now."""
    last = tx.one("last_sealed")
    return {**last_rows(tx), _PIECES: last["piece"], _LOG: last["log"]}


def _refuse_others(tx: Tx, *, changed: int) -> None:
    current = _sealer(tx).current
    names = [row["name"] for row in tx.all("encryption_keys") if row["name"] != current]
    marked = f"({', '.join(map(repr, names))})" if names else "(none that is marked)"
    raise EncryptionError(
        f"{changed} rows were sealed with {current!r}, and others go on sealing with another key {marked}; make "
        f"{current!r} the current key in every process, keep the old keys meanwhile, and ask again",
        code="key_in_use",
        details={"current": current, "keys": names, "changed": changed},
    )


def _step(tx: Tx, *, table: str, after: int, upto: int, converting: bool) -> Step:
    if table == _LOG:
        rows = tx.all("log_sealed", after=after, upto=upto, size=_FEW)
        return _reseal(rows, "seq", partial(_reseal_log, tx, converting))
    if table == _PIECES:
        rows = tx.all("pieces_sealed", after=after, upto=upto, size=_FEW)
        return _reseal(rows, "piece", partial(_reseal_piece, tx, converting))
    return reseal_rows(tx, table, after, upto, size=_ROWS, converting=converting)


def _reseal(rows: list[Row], number: str, reseal: Callable[[Row], bool]) -> Step:
    return Step(len(rows), sum(map(reseal, rows)), rows[-1][number] if rows else None)


def _reseal_piece(tx: Tx, converting: bool, row: Row) -> bool:
    sealer, data = _sealer(tx), row["data"]
    if row["size"] is not None and is_current(sealer, data):
        return False
    strand, start = divmod(row["piece"], 2**32)
    place = ("piece", row["thread_id"], row["checkpoint_ns"], row["channel"], strand, start)
    if row["size"] is not None or not converting:
        data = sealer.open(place, data)
    tx.run("piece_put", piece=row["piece"], data=sealer.seal(place, data), size=len(data))
    return True


def _reseal_log(tx: Tx, converting: bool, row: Row) -> bool:
    sealer = _sealer(tx)
    seals = Seals(sealer, row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    where = [row[name] for name in TABLES["event"].key]
    details = resealed(sealer, _DETAILS, where, row["details"], converting)
    metadata, places, body, data = row["metadata"], row["places"], row["body"], row["data"]
    if row["listed"] is not None:
        metadata, places, data = _resealed_put(tx, row, seals, converting)
    elif row["task_id"] is not None and body:
        body, data = _resealed_call(tx, row, seals, converting)
    new = (details, metadata, places, body, data)
    if new == (row["details"], row["metadata"], row["places"], row["body"], row["data"]):
        return False
    tx.run("log_put", seq=row["seq"], details=details, metadata=metadata, places=places, body=body, data=data)
    return True


def _resealed_put(tx: Tx, row: Row, seals: Seals, converting: bool) -> tuple[bytes, bytes, bytes]:
    metadata, places, data = row["metadata"], row["places"], row["data"]
    inner = metadata_inner(metadata)
    is_sealed = inner is not None or not converting
    laid = values.decode_places(places)
    grown = values.grown_in(laid)
    heads = [bytes.fromhex(place[2]) for place in grown.values()]
    if is_sealed and _all_current(seals.sealer, [inner, *heads], data):
        return metadata, places, data
    if is_sealed:
        return (seals.seal_metadata(seals.open_metadata(metadata)), *put_sealed_again(row, seals, seals))
    for channel, place in grown.items():
        place[3] = strands.whole(tx, _namespace(row), channel, place[3])
    return (seals.seal_metadata(metadata), *values.sealed_again(laid, data, None, seals))


def _namespace(row: Row) -> dict[str, object]:
    return {"thread_id": row["thread_id"], "checkpoint_ns": row["checkpoint_ns"]}


def _resealed_call(tx: Tx, row: Row, seals: Seals, converting: bool) -> tuple[bytes, bytes]:
    writes: list[list[Any]] = canonical.decode(row["body"])
    heads = [bytes.fromhex(write[2]) for write in writes if len(write) > 3]
    is_sealed = not converting or _is_sealed_call(seals.sealer, writes, heads, row["data"])
    if is_sealed and _all_current(seals.sealer, heads, row["data"]):
        return row["body"], row["data"]
    if is_sealed:
        return sealed_again(row, seals, seals)
    for write in writes:
        if len(write) > 3:
            write[3] = strands.whole(tx, _namespace(row), write[0], write[3])
    whole = {"task_id": row["task_id"], "body": canonical.encode_exact(writes), "data": row["data"]}
    return sealed_again(whole, None, seals)


def _is_sealed_call(sealer: Sealer, writes: list[list[Any]], heads: list[bytes], data: bytes) -> bool:
    """Whether a call's row was sealed: a plain one is as long as its writes, and a plain head has a few bytes."""
    if heads:
        return sealer.has_sealed(heads[0]) and len(heads[0]) > _LONGEST_HEAD
    return (bool(data) and len(data) != sum(write[2] for write in writes)) or not writes


_LONGEST_HEAD = 11
"""Bytes in which msgpack says how many follow (growing.py)."""


def _all_current(sealer: Sealer, parts: Sequence[bytes | None], data: bytes) -> bool:
    framed = (sealed for _, _, sealed in frames_in(data) if sealed)
    return all(is_current(sealer, part) for part in (*parts, *framed))


def _sealer(tx: Tx) -> Sealer:
    assert tx.sealer is not None, "it was opened with keys"
    return tx.sealer
