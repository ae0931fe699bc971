"""L4, L5, L6, L8: an attempt's end is one transaction with what its task wrote, is checked, and never changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import canonical
from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.errors import ConflictError, StoreError
from langgraph_ext.ledger import attempts
from langgraph_ext.ledger.attempts import AttemptStatus, interrupt_left
from langgraph_ext.ledger.settlement import FORMAT, Staged, check, write
from langgraph_ext.saver.staging import beside
from tests.support import faults
from tests.support.attempts import (
    HERE,
    NOW_US,
    begin,
    end,
    events,
    force,
    rows,
    settle,
    settle_and_be_killed,
    status_of,
    store_writes,
)
from tests.support.faults import Points, every, faulty

LATER = NOW_US + 1


@pytest.fixture
def database(database: Database) -> Database:
    """A database with one running attempt, a1."""
    database.transact(begin)
    return database


def refused(database: Database, path: Path, *staged: Staged) -> str:
    """The code that settling them is refused with, and nothing is written."""
    before = rows(path)
    with pytest.raises(ConflictError) as found:
        database.transact(store_writes, *staged)
    assert before == rows(path)
    return found.value.code


def forged(staged: Staged, **content: Any) -> Staged:
    """The same end with another content in its marker, under a digest that matches."""
    marker = canonical.encode(canonical.decode(staged.marker) | content)
    return replace(staged, marker=marker, digest=canonical.digest(marker))


# -- L4: one transaction, and no other way


@pytest.mark.parametrize(("outcome", "ended_us"), [("succeeded", LATER), ("paused", None)])
def test_l4_writes_end_and_event_are_stored_together(
    database: Database, path: Path, outcome: str, ended_us: int | None
) -> None:
    """Storing a task's writes settles the end it staged, and an event says so, at the place of the task."""
    database.transact(store_writes, end(outcome))
    found = database.read(attempts.find, "a1")

    assert found is not None
    assert (outcome, end(outcome).digest, ended_us) == (found.status, found.digest, found.ended_us)
    assert [(f"attempt.{outcome}", 7, "", HERE, LATER)] == events(path)
    assert 1 == sum(row[6] == "task" for row in rows(path)["checkpoint_log"])


def test_l4_an_event_names_the_attempt(database: Database, path: Path) -> None:
    """Who reads events need not guess whose end it was."""
    database.transact(settle, end(), now_us=LATER)
    connection = sqlite3.connect(path)
    [(details,)] = connection.execute("SELECT details FROM checkpoint_log WHERE event IS NOT NULL")
    connection.close()

    assert {"attempt_id": "a1", "task_id": "task", "ordinal": 0, "number": 1} == canonical.decode(details)


def test_l4_a_call_that_stores_nothing_settles_nothing(database: Database, path: Path) -> None:
    """A put that has to be made again, another way, settles when it is stored."""
    before = rows(path)
    database.transact(beside, lambda _: None, [end()], now_us=LATER, is_stored=lambda stored: stored is not None)

    assert before == rows(path)


@pytest.mark.parametrize("status", ["succeeded", "paused"])
def test_l4_without_a_marker_no_attempt_succeeds_or_pauses(database: Database, path: Path, status: str) -> None:
    """The tables themselves refuse it."""
    before = rows(path)
    with pytest.raises(StoreError):
        database.transact(force, "a1", status)

    assert before == rows(path)


def test_l4_a_paused_attempt_may_succeed(database: Database, path: Path) -> None:
    """Running ⇄ paused → succeeded; each end with its event."""
    database.transact(settle, end("paused"), now_us=NOW_US)
    database.transact(settle, end("succeeded"), now_us=LATER)

    assert "succeeded" == status_of(database)
    assert ["attempt.paused", "attempt.succeeded"] == [name for name, *_ in events(path)]


@pytest.mark.parametrize("status", AttemptStatus)
def test_l4_who_has_ended_moves_no_more(status: AttemptStatus) -> None:
    """One table says which moves there are: none leads back to itself, and one corrects why a body was cancelled."""
    moves = {target for target in AttemptStatus if attempts.may_move(status, target)}
    corrected = {AttemptStatus.TIMED_OUT} if status is AttemptStatus.CANCELLED else set()

    assert (corrected if status.ended else set(AttemptStatus) - {status}) == moves


def test_l4_what_is_left_is_interrupted_by_the_next_admission(database: Database, path: Path) -> None:
    """Attempts that an earlier epoch left running on this thread are given up; those of the present one run on."""
    database.transact(begin, "a2", task="other", epoch=2)
    database.transact(begin, "a3", task="elsewhere", thread="another thread")

    assert ("a1",) == database.transact(interrupt_left, "t", epoch=2, now_us=LATER)
    assert () == database.transact(interrupt_left, "t", epoch=2, now_us=LATER)
    assert ["interrupted", "running", "running"] == [status_of(database, each) for each in ("a1", "a2", "a3")]
    assert [("attempt.interrupted", 7, "", HERE, LATER)] == events(path)


def test_l4_a_paused_attempt_waits_over_admissions(database: Database) -> None:
    """A question stays open: only what was running is given up."""
    database.transact(settle, end("paused"), now_us=NOW_US)

    assert () == database.transact(interrupt_left, "t", epoch=2, now_us=LATER)
    assert "paused" == status_of(database)


def test_l4_an_attempt_that_goes_on_and_is_lost_keeps_no_marker(database: Database, path: Path) -> None:
    """Who is interrupted has no result, not even that of an earlier pause."""
    database.transact(settle, end("paused"), now_us=NOW_US)
    database.transact(force, "a1", "running", epoch=2)
    database.transact(interrupt_left, "t", epoch=3, now_us=LATER)

    assert ["interrupted", None, None, None] == [rows(path)["attempt"][0][at] for at in (9, 10, 13, 14)]


def test_l4_the_next_attempt_of_a_visit_counts_on(database: Database) -> None:
    """Attempts of one visit are numbered from 1; beginning the same one again is no other attempt."""
    database.transact(interrupt_left, "t", epoch=2, now_us=LATER)
    numbers = [database.transact(begin, each, epoch=2).number for each in ("a1", "a2", "a2", "a3")]

    assert [1, 2, 2, 3] == numbers


# -- L5: all of it or nothing, wherever it breaks


class Broken(Exception):
    """What a faulty connection raises; nobody else does."""


def broken() -> None:
    raise Broken("here")


def test_l5_a_fault_between_any_two_statements_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Before each statement, before and after the commit: both tables are as before or as after the settlement, and
    settling again leads where it would have led undisturbed."""
    dry = Points(armed=False)
    before, after = settle_two(tmp_path / "dry.db", dry)
    assert ["before", "after"] == dry.passed[-2:]
    assert before != after
    for at in every(len(dry.passed), sample=20):
        path = tmp_path / f"{at}.db"
        with pytest.raises(Broken):
            settle_two(path, Points(broken, at=at, armed=False))
        assert rows(path) == (after if at == len(dry.passed) else before), f"half of it is left at point {at}"
        again = open_database(path)
        again.transact(settle, *TWO, now_us=LATER)
        assert rows(path)["attempt"] == after["attempt"]
        assert len(events(path)) == len(TWO)
        again.close()


TWO = end(), end("paused", attempt="a2", task="second")


def settle_two(path: Path, points: Points) -> tuple[Any, Any]:
    """Store a task's writes and settle two ends in one transaction; what was stored before, and after."""
    database = open_database(path, connection=faulty(points), clock_us=lambda: NOW_US)
    try:
        database.transact(begin)
        database.transact(begin, "a2", task="second")
        before = rows(path)
        points.arm()
        database.transact(store_writes, *TWO)
        return before, rows(path)
    finally:
        database.close()


@pytest.mark.parametrize("kind", faults.KINDS)
def test_l5_a_process_killed_at_any_point_leaves_all_or_nothing(tmp_path: Path, kind: str) -> None:
    """SIGKILL before, between the statements of, and after the transaction."""
    ends = []
    for at in range(1, 20):
        path = tmp_path / f"{at}.db"
        made = open_database(path)
        made.transact(begin)
        made.close()
        killed = faults.run(settle_and_be_killed, str(path), kind, at).killed
        made = open_database(path)
        stored = sum(row[6] == "task" for row in rows(path)["checkpoint_log"])
        ends.append((status_of(made), len(events(path)), stored))
        made.close()
        if not killed:
            break

    assert ("succeeded", 1, 1) == ends.pop(), "the last was not killed"
    assert {("succeeded", 1, 1) if kind == "after" else ("running", 0, 0)} == set(ends)


def test_l5_the_same_settlement_again_after_an_unsure_commit_is_no_other(tmp_path: Path) -> None:
    """An error after the commit: nobody was told, so the call is made again; one row, one event."""
    path, points = tmp_path / "runs.db", Points(broken, kind="after", at=1, armed=False)
    database = open_database(path, connection=faulty(points))
    database.transact(begin)
    points.arm()
    with pytest.raises(Broken):
        database.transact(settle, end(), now_us=LATER)
    after = rows(path)
    database.transact(settle, end(), now_us=LATER + 1)

    assert after == rows(path)
    database.close()


# -- L6: a settled attempt is immutable


@pytest.mark.parametrize("outcome", ["succeeded", "paused"])
def test_l6_the_same_digest_again_changes_nothing(database: Database, path: Path, outcome: str) -> None:
    """A repeated call, or two calls that saw the same end, settle it once."""
    database.transact(settle, end(outcome), now_us=LATER)
    settled = rows(path)
    database.transact(settle, end(outcome), end(outcome), now_us=LATER + 1)

    assert settled == rows(path)


def test_l6_one_end_twice_in_one_call_is_settled_once(database: Database, path: Path) -> None:
    database.transact(settle, end(), end(), now_us=LATER)

    assert 1 == len(events(path))


@pytest.mark.parametrize("outcome", ["succeeded", "paused"])
def test_l6_another_digest_is_a_conflict(database: Database, path: Path, outcome: str) -> None:
    """The result that was stored first stays."""
    database.transact(settle, end(outcome), now_us=LATER)

    assert "terminal_conflict" == refused(database, path, end(outcome, writes=b"another"))


def test_l6_a_success_is_not_turned_into_a_pause(database: Database, path: Path) -> None:
    database.transact(settle, end(), now_us=LATER)

    assert "terminal_conflict" == refused(database, path, end("paused"))


@pytest.mark.parametrize("status", ["failed", "cancelled", "timed_out", "interrupted"])
def test_l6_a_late_marker_for_an_attempt_that_ended_otherwise_is_a_conflict(
    database: Database, path: Path, status: str
) -> None:
    """Only a running or paused attempt can settle."""
    database.transact(force, "a1", status)

    assert "terminal_conflict" == refused(database, path, end())


@pytest.mark.parametrize("found", [0, 2, None, "1"])
def test_l6_a_marker_of_another_format_is_a_mismatch(database: Database, path: Path, found: object) -> None:
    """What another version promised is not known here."""
    assert FORMAT == canonical.decode(end().marker)["format"]
    assert "terminal_mismatch" == refused(database, path, forged(end(), format=found))


def test_l6_the_pause_of_before_changes_nothing_when_the_attempt_goes_on(database: Database, path: Path) -> None:
    """Nobody forgets that it was settled, though the attempt runs again, under a later epoch."""
    database.transact(settle, end("paused"), now_us=LATER)
    database.transact(force, "a1", "running", epoch=2)
    running = rows(path)
    database.transact(settle, end("paused"), now_us=LATER)

    assert running == rows(path)


def test_l17_an_attempt_that_goes_on_under_the_same_epoch_may_pause_again(database: Database) -> None:
    """With the marker it has: nothing in it differs."""
    for _ in range(2):
        database.transact(store_writes, end("paused"))
        assert "paused" == status_of(database)
        database.transact(lambda tx: attempts.go_on(tx, attempts.find(tx, "a1"), epoch=1, now_us=LATER))
        assert "running" == status_of(database)


def test_l6_who_moves_between_check_and_write_is_not_overwritten(database: Database, path: Path) -> None:
    """By compare-and-set, whatever other writers a database allows."""

    def overtaken(tx: Tx) -> None:
        ends = check(tx, [end()])
        force(tx, "a1", "cancelled")
        write(tx, ends, now_us=LATER)

    before = rows(path)
    with pytest.raises(ConflictError, match="terminal_conflict"):
        database.transact(overtaken)

    assert before == rows(path)


# -- L8: a marker is what it says, and this task's

BENT: dict[str, Callable[[], Staged]] = {
    "another content under its digest": lambda: replace(end(), marker=end(writes=b"another").marker),
    "another digest": lambda: replace(end(), digest=end(writes=b"another").digest),
    "other writes beside it": lambda: replace(end(), writes=b"another"),
    "no JSON": lambda: replace(end(), marker=b"{", digest=canonical.digest(b"{")),
    "no object": lambda: replace(end(), marker=b"[]", digest=canonical.digest(b"[]")),
    "an outcome that needs no marker": lambda: forged(end(), outcome="failed"),
    "no outcome": lambda: forged(end(), outcome=None),
    "an attempt nobody began": lambda: end(attempt="a9"),
    "a task's that the attempt is not of": lambda: end(task="another"),
    "a part's that the attempt is not of": lambda: end(ordinal=1),
    "the epoch's before": lambda: end(epoch=0),
    "the epoch's after": lambda: end(epoch=2),
}


@pytest.mark.parametrize("bent", BENT)
def test_l8_a_marker_that_is_not_what_it_says_is_a_mismatch(database: Database, path: Path, bent: str) -> None:
    """Nothing is written, the task's writes neither."""
    assert "terminal_mismatch" == refused(database, path, BENT[bent]())


IDS = {
    "thread_id": "another",
    "checkpoint_id": "1f0",
    "task_id": "another",
    "ordinal": 1,
    "attempt_id": "a2",
    "epoch": 2,
}


@pytest.mark.parametrize("name", IDS)
def test_l8_a_marker_with_the_ids_of_another_frame_is_a_mismatch(database: Database, path: Path, name: str) -> None:
    """A marker names one thread, checkpoint, task, part, attempt and epoch; each of them is looked at."""
    database.transact(begin, "a2", task="second")

    assert "terminal_mismatch" == refused(database, path, forged(end(), **{name: IDS[name]}))


@pytest.mark.parametrize("call", [store_writes, partial(settle, now_us=LATER)], ids=["with writes", "alone"])
def test_l8_one_bad_end_among_good_ones_settles_none(database: Database, path: Path, call: Callable[..., None]) -> None:
    """The error names the bad one, and nothing was written before, so whoever shares the commit is not disturbed."""
    database.transact(begin, "a2", task="second")
    bad = replace(end(attempt="a2", task="second"), writes=b"another")
    before = rows(path)

    def refused_and_committed(tx: Tx) -> object:
        with pytest.raises(ConflictError) as found:
            call(tx, end(), bad)
        return found.value.details["attempt_id"]

    assert ("a2", before) == (database.transact(refused_and_committed), rows(path))
