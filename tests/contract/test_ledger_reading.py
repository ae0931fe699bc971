"""RunLedger: listings of runs and questions, snapshots, opening and closing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.database import open_database
from langgraph_ext.errors import InvalidArgument, NotFound, StoreError
from langgraph_ext.ledger import InterruptStatus, RunStatus, VisitStatus
from langgraph_ext.ledger.order import behind
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.reader import Reader
from tests.support.rows import NOW_US, Rows

STATUSES = ["running", "paused", "idle", "failed", "succeeded", "cancelled"]


def many_runs(rows: Rows) -> None:
    """Twelve runs on two threads, two of each status."""
    for number in range(1, 13):
        rows.run(number, first=number, thread="tu"[number % 2], status=STATUSES[number % 6])


def ids(found: list[Any]) -> list[int]:
    """Numbers of runs."""
    return [int(run.run_id.removeprefix("run ")) for run in found]


NARROWED: dict[str, tuple[dict[str, Any], list[int]]] = {
    "all": ({}, list(range(12, 0, -1))),
    "of a thread": ({"thread_id": "t"}, [12, 10, 8, 6, 4, 2]),
    "with a status": ({"status": "paused"}, [7, 1]),
    "with a status, by its member": ({"status": RunStatus.PAUSED}, [7, 1]),
    "of a thread with a status": ({"thread_id": "u", "status": "paused"}, [7, 1]),
    "of a thread with a status it never has": ({"thread_id": "t", "status": "paused"}, []),
    "of a thread that is not there": ({"thread_id": "x"}, []),
    "the newest": ({"limit": 2}, [12, 11]),
    "a page": ({"before": "run 5", "limit": 2}, [4, 3]),
    "a page of a thread": ({"before": "run 5", "limit": 2, "thread_id": "u"}, [3, 1]),
    "a page with a status": ({"before": "run 7", "status": "paused"}, [1]),
    "behind the last": ({"before": "run 1"}, []),
}


@pytest.mark.parametrize("case", NARROWED)
def test_runs_are_listed_newest_first(rows: Rows, reader: Reader, case: str) -> None:
    many_runs(rows)
    asked, expected = NARROWED[case]

    assert expected == ids(reader.runs(**asked))


def test_pages_of_runs_give_each_run_once(rows: Rows, reader: Reader) -> None:
    many_runs(rows)
    found = reader.runs(limit=5)
    while more := reader.runs(limit=5, before=found[-1].run_id):
        found += more

    assert list(range(12, 0, -1)) == ids(found)


def test_a_run_says_how_it_stands(rows: Rows, reader: Reader) -> None:
    rows.run(1, status="succeeded", fork_of="other", error_type="E", error_message="m", last_id=cid(9))
    run = reader.run("run 1")

    assert [run] == reader.runs()
    assert ("t", RunStatus.SUCCEEDED, True, "other") == (run.thread_id, run.status, run.status.ended, run.fork_of)
    assert (cid(1), cid(9), "E", "m") == (
        run.first_checkpoint_id,
        run.last_checkpoint_id,
        run.error_type,
        run.error_message,
    )
    assert NOW_US == round(run.started_at.timestamp() * 1e6)
    assert 9 == (run.ended_at - run.started_at).microseconds


def questions(rows: Rows) -> None:
    """Three runs on two threads, two questions each, one of them answered."""
    for number, thread in ((1, "t"), (2, "t"), (3, "u")):
        rows.begun(number, first=number, thread=thread)
        where = {"id": number, "thread": thread, "run": number}
        rows.interrupt(f"{number}a", **where, status="answered", requested_us=number * 10, kind="approval")
        rows.interrupt(f"{number}b", **where, requested_us=number * 10, ordinal=1)


ASKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all": ({}, ["1a", "1b", "2a", "2b", "3a", "3b"]),
    "of a run": ({"run_id": "run 2"}, ["2a", "2b"]),
    "of a thread": ({"thread_id": "t"}, ["1a", "1b", "2a", "2b"]),
    "of a run and another thread": ({"run_id": "run 2", "thread_id": "u"}, []),
    "of a run and its thread": ({"run_id": "run 2", "thread_id": "t"}, ["2a", "2b"]),
    "pending": ({"pending": True}, ["1b", "2b", "3b"]),
    "pending of a kind": ({"pending": True, "kind": "approval"}, []),
    "pending of a thread": ({"pending": True, "thread_id": "t"}, ["1b", "2b"]),
    "pending of a run": ({"pending": True, "run_id": "run 1"}, ["1b"]),
    "not pending": ({"pending": False}, ["1a", "2a", "3a"]),
    "not pending of a thread": ({"pending": False, "thread_id": "u"}, ["3a"]),
    "not pending of a run": ({"pending": False, "run_id": "run 1"}, ["1a"]),
    "of a kind": ({"kind": "approval"}, ["1a", "2a", "3a"]),
    "the first": ({"limit": 3}, ["1a", "1b", "2a"]),
    "a page": ({"after": "1b", "limit": 3}, ["2a", "2b", "3a"]),
    "a page of a thread": ({"after": "1b", "thread_id": "t"}, ["2a", "2b"]),
    "a page of a run": ({"after": "1a", "run_id": "run 1"}, ["1b"]),
    "a page of those pending": ({"after": "1b", "pending": True, "limit": 1}, ["2b"]),
}


@pytest.mark.parametrize("case", ASKED)
def test_questions_are_listed_oldest_first(rows: Rows, reader: Reader, case: str) -> None:
    questions(rows)
    asked, expected = ASKED[case]

    assert expected == [each.interrupt_id for each in reader.interrupts(**asked)]


def test_a_question_says_who_asked_what(rows: Rows, reader: Reader) -> None:
    rows.begun()
    rows.put(2, run=1, sends=["left", "right"])
    rows.interrupt("q", id=2, task_path="~__pregel_push, 0000000001, 0000000000", kind="k", value=b'{"kind":"k"}')
    [asked] = reader.interrupts()

    assert ("q", "run 1", "t", "", cid(2)) == (
        asked.interrupt_id,
        asked.run_id,
        asked.thread_id,
        asked.checkpoint_ns,
        asked.checkpoint_id,
    )
    assert ("right", 0, "k", {"kind": "k"}) == (asked.node, asked.ordinal, asked.kind, asked.value)
    assert (InterruptStatus.PENDING, None) == (asked.status, asked.closed_at)


def test_a_payload_that_is_no_json_needs_a_serde(
    rows: Rows, reader: Reader, form: Any, loop: asyncio.AbstractEventLoop
) -> None:
    """Without one, the question is listed all the same."""

    class Serde:
        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return ["decoded", *data]

    rows.begun()
    rows.interrupt("q", value_type="msgpack", value=b"\x01")
    with RunLedger(rows.path, serde=Serde()) as ledger:
        [decoded] = Reader(ledger, form, loop).interrupts()
        pending = Reader(ledger, form, loop).snapshot("run 1").pending
    [plain] = reader.interrupts()

    assert (["decoded", "msgpack", b"\x01"], None) == (decoded.value, plain.value)
    assert (decoded,) == pending
    assert "msgpack" == plain.value_type


def test_a_snapshot_counts_what_there_is(rows: Rows, reader: Reader) -> None:
    rows.begun(status="paused")
    rows.call(1, "a")
    rows.call(1, "b", "b", "failed")
    rows.call(1, "c")
    rows.call(1, "d", "d", "paused")
    rows.interrupt("q", task="d")
    rows.interrupt("old", status="answered")
    last = rows.event("interrupt.requested", interrupt_id="q")
    seen = reader.snapshot("run 1")

    assert (reader.run("run 1"), behind(last), 4) == (seen.run, seen.cursor, seen.transitions)
    assert {VisitStatus.SUCCEEDED: 2, VisitStatus.FAILED: 1, VisitStatus.PAUSED: 1} == seen.visits
    assert ["q"] == [each.interrupt_id for each in seen.pending]
    assert [] == reader.events("run 1", after=seen.cursor)


def test_a_snapshot_of_a_run_without_anything(rows: Rows, reader: Reader) -> None:
    rows.run()
    seen = reader.snapshot("run 1")

    assert (0, 0, {}, ()) == (seen.cursor, seen.transitions, seen.visits, seen.pending)


# -- what is refused


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a run's status that is none": ("runs", {"status": "asleep"}),
    "no runs at all": ("runs", {"limit": 0}),
    "a thread that is no text": ("runs", {"thread_id": 5}),
    "half a character": ("runs", {"before": "\ud800"}),
    "no questions at all": ("interrupts", {"limit": -1}),
    "neither pending nor not": ("interrupts", {"pending": "yes"}),
    "a kind that is no text": ("interrupts", {"kind": b"k"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_never_be_asked_is_refused(reader: Reader, case: str) -> None:
    method, given = REFUSED[case]
    with pytest.raises(InvalidArgument):
        getattr(reader, method)(**given)


MISSING: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "a run": ("run", ("x",), {}, "run_not_found"),
    "a snapshot": ("snapshot", ("x",), {}, "run_not_found"),
    "runs before one": ("runs", (), {"before": "x"}, "run_not_found"),
    "questions of a run": ("interrupts", (), {"run_id": "x"}, "run_not_found"),
    "questions behind one": ("interrupts", (), {"after": "x"}, "interrupt_not_found"),
    "a run to verify": ("verify", ("x",), {}, "run_not_found"),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_not_there_is_said_so(reader: Reader, case: str) -> None:
    method, args, given, code = MISSING[case]
    with pytest.raises(NotFound, match="'x'") as caught:
        getattr(reader, method)(*args, **given)

    assert code == caught.value.code


# -- life


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, form: Any, loop: asyncio.AbstractEventLoop) -> None:
    """A mistyped path is an error, not an empty ledger."""
    path = tmp_path / "typo.db"
    reader = Reader(RunLedger(path), form, loop)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"typo\.db") as caught:
            reader.runs()
        assert ("store_missing", False) == (caught.value.code, caught.value.retryable)
    with pytest.raises(StoreError):
        reader.follow()

    assert [] == list(tmp_path.iterdir())
    reader.close()


def test_a_ledger_reads_the_file_once_it_is_there(tmp_path: Path) -> None:
    with RunLedger(tmp_path / "runs.db") as ledger:
        with pytest.raises(StoreError):
            ledger.runs()
        with LedgerSaver(tmp_path / "runs.db") as saver:
            saver.setup()

        assert [] == ledger.runs()


def test_a_url_names_a_ledger_as_well(rows: Rows) -> None:
    rows.begun()
    with RunLedger(f"sqlite:///{rows.path}") as ledger:
        assert ["run 1"] == [run.run_id for run in ledger.runs()]


def test_what_names_no_database_is_refused() -> None:
    for url in ("postgresql://x", "", 7):
        with pytest.raises(InvalidArgument):
            RunLedger(url)  # type: ignore[arg-type]


def test_a_ledger_closes_what_it_opened(rows: Rows, reader: Reader) -> None:
    reader.runs()
    for _ in range(2):
        reader.close()
    with pytest.raises(StoreError) as caught:
        reader.runs()

    assert "closed" == caught.value.code


def test_a_ledger_leaves_a_database_open_that_it_was_given(
    tmp_path: Path, form: Any, loop: asyncio.AbstractEventLoop
) -> None:
    database = open_database(tmp_path / "runs.db")
    reader = Reader(RunLedger(database), form, loop)
    reader.close()

    assert [] == reader.runs()
    database.close()


async def test_a_ledger_is_closed_by_leaving_its_block(rows: Rows) -> None:
    async with RunLedger(rows.path) as ledger:
        assert [] == await ledger.aruns()
    with pytest.raises(StoreError):
        await ledger.aruns()


def test_a_ledger_beside_a_saver_sees_what_it_has_acknowledged(
    tmp_path: Path, form: Any, loop: asyncio.AbstractEventLoop
) -> None:
    """On the saver's own database, and on the file from outside."""
    with LedgerSaver(tmp_path / "runs.db") as saver, RunLedger(tmp_path / "runs.db") as outside:
        inside = RunLedger(saver.database)
        saver.put(config(), checkpoint(cid(1), {"a": 1}), metadata(), {"a": 1})
        seen = [Reader(ledger, form, loop).events() for ledger in (inside, outside)]

        assert seen[0] == seen[1]
