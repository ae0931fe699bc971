"""L28: an effect is on record before its call, its receipt after it; a committed one is never called again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.errors import ConflictError, InvalidArgument, NotFound, StoreError
from langgraph_ext.ledger import EffectStatus, effects
from langgraph_ext.ledger.effect_keys import derived_key
from langgraph_ext.ledger.effect_rows import find
from langgraph_ext.ledger.effects import Done, InDoubt, ToCall
from langgraph_ext.ledger.encoded import Encoded
from tests.support import attempts
from tests.support.attempts import HERE, NOW_US
from tests.support.build import checkpoint, config, metadata
from tests.support.effects import (
    PAID,
    VISIT,
    begin,
    begun,
    digest,
    everything,
    frame,
    held,
    names,
    statuses,
    told,
)
from tests.support.faults import Points, faulty

LATER = NOW_US + 1


@pytest.fixture
def database(database: Database) -> Database:
    """A database with one running attempt, a1."""
    database.transact(attempts.begin)
    return database


def commit(tx: Tx, effect: str = "e1", receipt: Encoded = PAID) -> Any:
    return effects.commit(tx, frame(), effect, receipt=receipt, now_us=LATER)


def next_attempt(database: Database) -> Any:
    """The frame of the attempt that follows a lost one."""
    database.transact(attempts.force, "a1", "interrupted")
    database.transact(effects.doubt_left, ["a1"], now_us=NOW_US)
    database.transact(attempts.begin, "a2", epoch=2)
    return frame("a2", epoch=2)


# -- begin, call, commit


def test_l28_an_effect_is_on_record_before_its_call(database: Database, path: Path) -> None:
    """With attempt, place, epoch, key and payload digest; not with the payload."""
    made = database.transact(begin, part="2", compensate="shop:refund")
    [row] = held(path)

    assert isinstance(made, ToCall)
    assert ("e1", "a1", 7, "t", "", HERE, "task", 0, "pay", "2/1", 1, "charge", "2") == tuple(row.values())[:13]
    assert (made.effect.key.text, digest(), "started", 1, "shop:refund", NOW_US) == (
        *(row[name] for name in ("key", "payload_digest", "status", "tries", "compensate", "started_us")),
    )
    assert derived_key("run 7", VISIT, "charge", "2") == row["key"]


def test_l28_the_receipt_is_committed_after_the_call(database: Database, path: Path) -> None:
    database.transact(begun)
    made = database.transact(commit)
    [row] = held(path)

    assert (EffectStatus.COMMITTED, PAID, False) == (made.status, made.receipt, made.calling)
    assert ("committed", *PAID, LATER) == (*(row[name] for name in ("status", "receipt_type", "receipt", "ended_us")),)
    assert made == database.read(find, "e1")


def test_l28_each_move_has_its_event(database: Database, path: Path) -> None:
    """With ids and the name, at the place of the task; the payload and the receipt are not in it."""
    database.transact(begun, part="2")
    database.transact(commit)
    about = {"effect_id": "e1", "name": "charge", "part": "2", "attempt_id": "a1", "task_id": "task"}

    assert [("effect.started", about), ("effect.committed", about)] == told(path)
    connection = sqlite3.connect(path)
    where = connection.execute("SELECT DISTINCT run, thread_id, checkpoint_id FROM checkpoint_log").fetchall()
    connection.close()
    assert [(7, "t", HERE)] == where
    assert "paid" not in json.dumps(told(path))


def test_l28_on_replay_a_committed_effect_gives_its_receipt(database: Database, path: Path) -> None:
    """The next attempt of the visit does not call; nothing new is begun."""
    database.transact(begun)
    database.transact(commit)
    found = database.transact(begin, "e2", by=next_attempt(database))

    assert isinstance(found, Done)
    assert ("e1", PAID) == (found.effect.effect_id, found.effect.receipt)
    assert (["committed"], ["effect.started", "effect.committed"]) == (statuses(path), names(path))


def test_l28_on_resumption_after_a_pause_it_gives_its_receipt(database: Database) -> None:
    """The same attempt goes on under another epoch, its body from the beginning: the name is used anew."""
    database.transact(begun)
    database.transact(commit)
    database.transact(attempts.settle, attempts.end("paused"), now_us=NOW_US)
    database.transact(attempts.force, "a1", "running", epoch=2)

    assert isinstance(database.transact(begin, "e2", by=frame(epoch=2)), Done)


# -- one name, one use


@pytest.mark.parametrize("part", [None, "2"])
@pytest.mark.parametrize("key", [None, "another"])
def test_l28_one_name_twice_in_an_attempt_needs_a_part(
    database: Database, path: Path, part: str | None, key: str | None
) -> None:
    """Else the second one would be taken for a replay of the first, and not be done."""
    database.transact(begun, part=part)
    database.transact(commit)
    before = everything(path)
    with pytest.raises(InvalidArgument, match="part="):
        database.transact(begin, "e2", part=part, key=key)

    assert before == everything(path)


def test_l28_nor_may_the_next_attempt_use_it_twice(database: Database) -> None:
    """Both uses would find the same receipt there."""
    database.transact(begun)
    database.transact(commit)
    by = next_attempt(database)
    database.transact(begin, "e2", by=by)
    with pytest.raises(InvalidArgument, match="part="):
        database.transact(begin, "e3", by=by)


def test_l28_parts_are_effects_of_their_own(database: Database, path: Path) -> None:
    for effect, part in (("e1", None), ("e2", "2"), ("e3", "3")):
        database.transact(begun, effect, part=part)

    assert ["started"] * 3 == statuses(path)
    assert 3 == len({row["key"] for row in held(path)})


def test_l28_what_did_not_happen_may_be_tried_again_in_the_same_attempt(database: Database, path: Path) -> None:
    """A body may go on trying, under one name, as long as each call says that nothing was done."""
    for effect in ("e1", "e2"):
        database.transact(begun, effect)
        database.transact(effects.not_happened, frame(), effect, now_us=LATER)
    database.transact(begun, "e3")

    assert ["not_happened", "not_happened", "started"] == statuses(path)


def test_l28_what_did_not_happen_is_not_begun_again_under_its_id(database: Database) -> None:
    """It keeps its row: the next one is another effect."""
    database.transact(begun)
    database.transact(effects.not_happened, frame(), "e1", now_us=LATER)
    with pytest.raises(ConflictError, match="effect_conflict"):
        database.transact(begin)


# -- each transaction may be run again


def test_l28_the_same_begin_again_is_no_other(database: Database, path: Path) -> None:
    """Whoever was not told that it was committed asks again, and may call."""
    first = database.transact(begin)
    before = everything(path)

    assert first == database.transact(begin)
    assert before == everything(path)


def test_l28_the_same_begin_later_finds_what_became_of_it(database: Database) -> None:
    """It may be called only as long as nobody has said what the call came to."""
    database.transact(begun)
    database.transact(effects.doubt, frame(), "e1", now_us=LATER)
    assert isinstance(database.transact(begin), InDoubt)
    database.transact(commit)
    assert isinstance(database.transact(begin), Done)


@pytest.mark.parametrize("receipt", [PAID, None])
def test_l28_the_same_end_again_changes_nothing(database: Database, path: Path, receipt: Encoded | None) -> None:
    def settle(tx: Tx) -> Any:
        if receipt is None:
            return effects.not_happened(tx, frame(), "e1", now_us=LATER)
        return commit(tx)

    database.transact(begun)
    first = database.transact(settle)
    before = everything(path)

    assert first == database.transact(settle)
    assert before == everything(path)


def test_l28_another_end_is_a_conflict(database: Database, path: Path) -> None:
    """How an effect ended is never changed, nor is a receipt."""
    database.transact(begun)
    database.transact(commit)
    before = everything(path)
    others: list[Callable[[Tx], Any]] = [
        lambda tx: commit(tx, receipt=Encoded("json", b"8")),
        lambda tx: commit(tx, receipt=Encoded("msgpack", PAID.data)),
        lambda tx: effects.not_happened(tx, frame(), "e1", now_us=LATER),
        lambda tx: effects.doubt(tx, frame(), "e1", now_us=LATER),
        lambda tx: effects.again(tx, frame(), "e1", now_us=LATER),
    ]
    for other in others:
        with pytest.raises(ConflictError, match="effect_conflict"):
            database.transact(other)

    assert before == everything(path)


def test_l28_an_effect_nobody_began_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound, match="'e9'") as found:
        database.transact(commit, "e9")

    assert "effect_not_found" == found.value.code


def test_l28_a_fault_in_a_transaction_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    """Before any statement of `begin` and `commit`, and around their commits."""

    def story(path: Path, points: Points) -> list[Any]:
        database = open_database(path, connection=faulty(points))
        try:
            database.transact(attempts.begin)
            points.arm()
            database.transact(begin)
            database.transact(commit)
        finally:
            database.close()
        return everything(path)

    def broken() -> None:
        raise Broken

    dry = Points(armed=False)
    story(tmp_path / "dry.db", dry)
    for at in range(1, len(dry.passed) + 1):
        path = tmp_path / f"{at}.db"
        with pytest.raises(Broken):
            story(path, Points(broken, at=at, armed=False))
        assert (statuses(path), names(path)) in STANDS


class Broken(Exception):
    """What a faulty connection raises; nobody else does."""


STANDS = [
    ([], []),
    (["started"], ["effect.started"]),
    (["committed"], ["effect.started", "effect.committed"]),
]


# -- what the tables refuse


@pytest.mark.parametrize(
    "change",
    [
        "status = 'done'",
        "status = 'committed', calling_us = NULL, ended_us = 1",
        "receipt_type = 'json', receipt = x'37'",
        "status = 'not_happened', ended_us = 1",
        "calling_us = NULL",
        "tries = 0",
        "business = 2",
    ],
)
def test_l28_the_tables_refuse_what_cannot_be(database: Database, change: str) -> None:
    """A commit without a receipt, a receipt without a commit, an end that is still being called."""
    database.transact(begun)
    with pytest.raises(StoreError):
        database.transact(lambda tx: tx._execute(f"UPDATE effect SET {change}", {}))


def test_l28_one_key_is_held_once(database: Database) -> None:
    database.transact(begun)
    database.transact(begun, "e2", name="mail")
    with pytest.raises(StoreError):
        database.transact(lambda tx: tx._execute("UPDATE effect SET key = 'same'", {}))


@pytest.mark.parametrize("status", EffectStatus)
def test_l28_one_table_says_which_moves_there_are(status: EffectStatus) -> None:
    moves = {
        "started": {"committed", "unknown", "not_happened"},
        "unknown": {"committed", "not_happened"},
        "committed": {"compensated"},
    }

    assert moves.get(status, set()) == {target for target in EffectStatus if effects.may_move(status, target)}


# -- with their threads and runs


def test_l28_a_deleted_thread_takes_its_effects_along(path: Path) -> None:
    """Theirs only; the names used are forgotten too."""
    effects_of_two_threads(path)
    with LedgerSaver(path) as saver:
        saver.delete_thread("t")

    assert ["e2"] == [row["effect_id"] for row in held(path)]
    assert 1 == len(everything(path)[1])


def test_l28_an_undone_run_takes_its_effects_along(path: Path) -> None:
    effects_of_two_threads(path)
    with LedgerSaver(path) as saver:
        saver.delete_for_runs(["run t"])

    assert ["e2"] == [row["effect_id"] for row in held(path)]
    assert 1 == len(everything(path)[1])


def effects_of_two_threads(path: Path) -> None:
    """Two threads with a run each, and an effect in each."""
    with LedgerSaver(path) as saver:
        for thread in ("t", "u"):
            meta = metadata(-1, run_id=f"run {thread}", source="input")
            where: Any = config(thread)
            where["configurable"]["__pregel_runtime"] = True
            saver.put(where, checkpoint(HERE, {"a": 1}, {"a": 1}), meta, {"a": 1})
        numbers = {run["thread_id"]: run["run"] for run in saver.database.read(lambda tx: tx.all("runs_page", **PAGE))}
        for effect, attempt, thread in (("e1", "a1", "t"), ("e2", "a2", "u")):
            run = numbers[thread]
            saver.database.transact(attempts.begin, attempt, thread=thread, run=run)
            saver.database.transact(begun, effect, by=frame(attempt, run=run), key=effect)


PAGE: dict[str, Any] = {"before": 2**62, "size": 9}


# -- compare-and-set


class Overtaken:
    """A transaction in which another writer comes first, as some databases allow, just before a row is changed."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def run(self, name: str, /, **params: object) -> int:
        if name in ("effect_move", "effect_doubt", "effect_retry"):
            self._tx._execute("UPDATE effect SET status = 'not_happened', calling_us = NULL, ended_us = 1", {})
        return self._tx.run(name, **params)


OVERTAKEN: dict[str, Callable[[Any], Any]] = {
    "commit": commit,
    "doubt": lambda tx: effects.doubt(tx, frame(), "e1", now_us=LATER),
    "resolve": lambda tx: effects.resolve(tx, "e2", receipt=PAID, now_us=LATER),
    "again": lambda tx: effects.again(tx, frame(), "e2", now_us=LATER),
}


@pytest.mark.parametrize("act", OVERTAKEN)
def test_l28_who_is_overtaken_overwrites_nothing(database: Database, path: Path, act: str) -> None:
    """Every move is made on a row that stands where it was read, whatever other writers a database allows."""
    database.transact(begun)
    database.transact(begun, "e2", name="mail")
    database.transact(effects.doubt, frame(), "e2", now_us=NOW_US)
    before = everything(path)
    with pytest.raises(ConflictError, match="effect_conflict"):
        database.transact(lambda tx: OVERTAKEN[act](Overtaken(tx)))

    assert before == everything(path)
