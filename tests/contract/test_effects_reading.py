"""RunLedger.effects and resolve_effect, in both forms: what was done outside, and what a person says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import RunLedger
from langgraph_ext.database import open_database
from langgraph_ext.errors import ConflictError, InvalidArgument, NotFound
from langgraph_ext.ledger import EffectStatus, effects
from langgraph_ext.ledger.encoded import encode
from tests.support import attempts
from tests.support.build import cid
from tests.support.effects import begun
from tests.support.reader import Reader
from tests.support.rows import NOW_US, Rows


def several(rows: Rows) -> None:
    """Three runs on two threads, two effects each, one of them in doubt."""
    for number, thread in ((1, "t"), (2, "t"), (3, "u")):
        rows.begun(number, first=number, thread=thread)
        where = {"id": number, "thread": thread, "run": number, "started_us": number * 10}
        rows.effect(f"{number}a", **where)
        rows.effect(f"{number}b", **where, status="unknown")


ASKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all": ({}, ["1a", "1b", "2a", "2b", "3a", "3b"]),
    "of a run": ({"run_id": "run 2"}, ["2a", "2b"]),
    "of a thread": ({"thread_id": "t"}, ["1a", "1b", "2a", "2b"]),
    "of a run and its thread": ({"run_id": "run 2", "thread_id": "t"}, ["2a", "2b"]),
    "of a run and another thread": ({"run_id": "run 2", "thread_id": "u"}, []),
    "in doubt": ({"status": "unknown"}, ["1b", "2b", "3b"]),
    "in doubt, of a thread": ({"status": "unknown", "thread_id": "t"}, ["1b", "2b"]),
    "in doubt, of a run": ({"status": EffectStatus.UNKNOWN, "run_id": "run 1"}, ["1b"]),
    "compensated": ({"status": "compensated"}, []),
    "the first": ({"limit": 3}, ["1a", "1b", "2a"]),
    "a page": ({"after": "1b", "limit": 3}, ["2a", "2b", "3a"]),
    "a page of a thread": ({"after": "1b", "thread_id": "t"}, ["2a", "2b"]),
    "a page of a run": ({"after": "1a", "run_id": "run 1"}, ["1b"]),
    "a page of those in doubt": ({"after": "1b", "status": "unknown", "limit": 1}, ["2b"]),
}


@pytest.mark.parametrize("case", ASKED)
def test_effects_are_listed_oldest_first(rows: Rows, reader: Reader, case: str) -> None:
    several(rows)
    asked, expected = ASKED[case]

    assert expected == [each.effect_id for each in reader.effects(**asked)]


def test_an_effect_says_what_was_done_where(rows: Rows, reader: Reader) -> None:
    rows.begun()
    rows.effect("e", part="2", tries=3, business=1, compensate="shop:refund")
    [found] = reader.effects("run 1")

    assert ("e", "run 1", "t", "", cid(1), "task", "pay", (2, 1)) == (
        found.effect_id,
        found.run_id,
        found.thread_id,
        found.checkpoint_ns,
        found.checkpoint_id,
        found.task_id,
        found.node_path,
        found.iteration_path,
    )
    assert ("a", 1, "charge", "2", "key of e", True, "sha256:00") == (
        found.attempt_id,
        found.epoch,
        found.name,
        found.part,
        found.key,
        found.business,
        found.payload_digest,
    )
    assert (EffectStatus.COMMITTED, 3, {"paid": 7}, "json", "shop:refund") == (
        found.status,
        found.tries,
        found.receipt,
        found.receipt_type,
        found.compensate,
    )
    assert 9 == (found.ended_at - found.started_at).microseconds


def test_an_effect_says_whether_it_is_in_doubt(rows: Rows, reader: Reader) -> None:
    """Unknown, or started by an attempt that is over or goes on in another process; not while a call may run."""
    rows.begun()
    rows.attempt("runs", status="running", ended_us=None, epoch=2)
    rows.attempt("lost", status="interrupted", number=2, writes=None)
    rows.effect("1", attempt_id="runs", epoch=2, status="started")
    rows.effect("2", attempt_id="runs", epoch=1, status="started")
    rows.effect("3", attempt_id="lost", status="started")
    rows.effect("4", attempt_id="gone", status="started")
    rows.effect("5", attempt_id="runs", epoch=2, status="unknown")
    rows.effect("6", attempt_id="runs", epoch=2, status="unknown", calling_us=NOW_US)
    rows.effect("7", attempt_id="lost", status="unknown", calling_us=NOW_US)
    rows.effect("8", attempt_id="lost")

    assert ["2", "3", "4", "5", "7"] == [each.effect_id for each in reader.effects() if each.in_doubt]
    assert ["2", "3", "4", "5", "7"] == [
        each.effect_id for each in reader.ledger.database.read(effects.in_doubt, run=1)
    ]


def test_a_receipt_that_is_no_json_needs_a_serde(
    rows: Rows, reader: Reader, form: Any, loop: asyncio.AbstractEventLoop
) -> None:
    rows.begun()
    rows.effect("e", receipt_type="msgpack", receipt=b"\x01")
    with RunLedger(rows.path, serde=Serde()) as ledger:
        [decoded] = Reader(ledger, form, loop).effects()
    [plain] = reader.effects()

    assert (["decoded", "msgpack", b"\x01"], None) == (decoded.receipt, plain.receipt)
    assert "msgpack" == plain.receipt_type


def test_l31_what_the_serde_cannot_encode_is_no_receipt(in_doubt: Rows) -> None:
    """It is refused as what can never be stored; the effect stays in doubt."""
    with RunLedger(in_doubt.path, serde=JsonPlusSerializer()) as ledger:
        with pytest.raises(InvalidArgument, match="receipt"):
            ledger.resolve_effect("e1", receipt=print)

        assert EffectStatus.STARTED == ledger.effects()[0].status


class Serde:
    """One that shows what it was given."""

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        return ["decoded", *data]

    def dumps_typed(self, value: Any, /) -> tuple[str, bytes]:
        return "msgpack", repr(value).encode()


@pytest.mark.parametrize(
    "asked", [{"status": "asleep"}, {"limit": 0}, {"thread_id": 5}, {"run_id": 5}, {"after": "\ud800"}]
)
def test_what_can_never_be_asked_is_refused(reader: Reader, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        reader.effects(**asked)


def test_what_is_not_there_is_said_so(reader: Reader) -> None:
    with pytest.raises(NotFound, match="run_not_found"):
        reader.effects("x")
    with pytest.raises(NotFound, match="effect_not_found"):
        reader.effects(after="x")


# -- resolving


@pytest.fixture
def in_doubt(rows: Rows) -> Rows:
    """A run with an effect in doubt, e1, as a lost process leaves it."""
    rows.begun(7)
    database = open_database(rows.path)
    database.transact(attempts.begin)
    database.transact(begun)
    database.transact(attempts.force, "a1", "interrupted")
    database.close()
    return rows


@pytest.mark.parametrize("receipt", [{"paid": 7}, None, [1, "ä"], 0.5, "x"])
def test_l31_a_receipt_resolves_an_effect(in_doubt: Rows, reader: Reader, receipt: Any) -> None:
    """Any JSON, null too; the same again is the same answer, and the ledger is sound."""
    found = reader.resolve_effect("e1", receipt=receipt)

    assert (EffectStatus.COMMITTED, receipt, "json") == (found.status, found.receipt, found.receipt_type)
    assert [found] == [reader.resolve_effect("e1", receipt=receipt)] == reader.effects("run 7")
    assert NOW_US < found.ended_at.timestamp() * 1_000_000
    assert [] == reader.verify()


def test_l31_so_does_the_word_that_it_did_not_happen(in_doubt: Rows, reader: Reader) -> None:
    found = reader.resolve_effect("e1", happened=False)

    assert (EffectStatus.NOT_HAPPENED, None, None) == (found.status, found.receipt, found.receipt_type)
    assert found == reader.resolve_effect("e1", happened=False)
    assert ["effect.started", "effect.resolved"] == [each.name for each in reader.events("run 7")][1:]
    with pytest.raises(ConflictError, match="effect_conflict"):
        reader.resolve_effect("e1", receipt=1)


def test_l31_an_event_of_it_is_at_its_task(in_doubt: Rows, reader: Reader) -> None:
    """A reader of events need not know effects to see where one happened."""
    in_doubt.put(5, run=7, parent=1)
    in_doubt.call(5, "task", "pay")
    reader.resolve_effect("e1", happened=False)
    told = [each for each in reader.events("run 7") if each.name == "effect.resolved"]

    assert [("task", "pay", "e1")] == [(each.task_id, each.node, each.details["effect_id"]) for each in told]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"receipt": 1, "happened": False},
        {"happened": True},
        {"happened": 0},
        {"receipt": 1, "happened": True},
        {"receipt": 1, "happened": 0},
        {"receipt": {1}},
    ],
)
def test_l31_what_says_nothing_or_two_things_is_refused(in_doubt: Rows, reader: Reader, given: Any) -> None:
    with pytest.raises(InvalidArgument):
        reader.resolve_effect("e1", **given)

    assert EffectStatus.STARTED == reader.effects()[0].status


def test_l31_a_receipt_that_is_no_json_is_encoded_by_the_serde(
    in_doubt: Rows, form: Any, loop: asyncio.AbstractEventLoop
) -> None:
    with RunLedger(in_doubt.path, serde=Serde()) as ledger:
        found = Reader(ledger, form, loop).resolve_effect("e1", receipt={1})

    assert ["decoded", "msgpack", b"{1}"] == found.receipt


def test_l31_an_effect_that_is_not_there_is_not_resolved(reader: Reader) -> None:
    with pytest.raises(NotFound, match="effect_not_found"):
        reader.resolve_effect("x", happened=False)


def test_l31_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with RunLedger(tmp_path / "typo.db") as ledger, pytest.raises(Exception, match="store_missing"):
        ledger.resolve_effect("x", happened=False)

    assert [] == list(tmp_path.iterdir())


def test_l28_a_receipt_is_json_where_it_can_be() -> None:
    """So that every tool can read it."""
    assert ("json", b'{"b":1,"a":null}') == encode({"b": 1, "a": None}, Serde(), what="receipt")
    assert ("msgpack", b"nan") == encode(float("nan"), Serde(), what="receipt")
