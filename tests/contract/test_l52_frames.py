"""L52: every act of a frame looks, in its own transaction, whether its attempt still runs, of this run and epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database, Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.frames import FrameKey, check_frame
from tests.support import attempts
from tests.support.attempts import HERE, NOW_US, force
from tests.support.effects import PAID, begin, begun, everything, frame


@pytest.fixture
def database(database: Database) -> Database:
    """A database with one running attempt, a1 of run 7 under epoch 1, that has begun the effect e1."""
    database.transact(attempts.begin)
    database.transact(begun)
    return database


ACTS: dict[str, Callable[[Tx, FrameKey], Any]] = {
    "begin": lambda tx, by: begin(tx, "e2", by=by, name="mail"),
    "replay": lambda tx, by: begin(tx, "e1", by=by),
    "again": lambda tx, by: effects.again(tx, by, "e1", now_us=NOW_US),
    "commit": lambda tx, by: effects.commit(tx, by, "e1", receipt=PAID, now_us=NOW_US),
    "not happened": lambda tx, by: effects.not_happened(tx, by, "e1", now_us=NOW_US),
    "doubt": lambda tx, by: effects.doubt(tx, by, "e1", now_us=NOW_US),
    "look": check_frame,
}

FRAMES = {
    "an attempt that nobody began": frame("a9"),
    "an attempt of another run": frame(run=8),
    "the epoch before": frame(epoch=0),
    "the epoch after": frame(epoch=2),
}


def refused(database: Database, tmp_path: Path, act: str, by: FrameKey) -> ConflictError:
    """The error that an act ends with, which wrote nothing."""
    before = everything(tmp_path / "runs.db")
    with pytest.raises(ConflictError) as found:
        database.transact(ACTS[act], by)
    assert before == everything(tmp_path / "runs.db")
    return found.value


@pytest.mark.parametrize("other", FRAMES)
@pytest.mark.parametrize("act", ACTS)
def test_l52_a_frame_that_is_not_the_attempts_does_nothing(
    database: Database, tmp_path: Path, act: str, other: str
) -> None:
    """Who was taken over, or never was admitted, writes nothing; the error names the attempt, the run and the epoch."""
    found = refused(database, tmp_path, act, FRAMES[other])

    assert "attempt_mismatch" == found.code
    assert {"attempt_id", "run", "epoch"} == set(found.details)


@pytest.mark.parametrize("status", ["succeeded", "paused", "failed", "cancelled", "timed_out", "interrupted"])
@pytest.mark.parametrize("act", ACTS)
def test_l52_an_attempt_that_runs_no_more_does_nothing(
    database: Database, tmp_path: Path, act: str, status: str
) -> None:
    """A late worker's answer is refused once its attempt has ended, or was given up."""
    if status in ("succeeded", "paused"):
        database.transact(attempts.settle, attempts.end(status), now_us=NOW_US)
    else:
        database.transact(force, "a1", status)

    assert "attempt_mismatch" == refused(database, tmp_path, act, frame()).code


def test_l52_a_frame_of_a_deleted_thread_does_nothing(database: Database, tmp_path: Path) -> None:
    """There is nothing left that it could belong to."""
    database.transact(lambda tx: tx.run("attempts_delete", thread_id="t"))

    assert "attempt_mismatch" == refused(database, tmp_path, "begin", frame()).code


def test_l52_a_running_attempt_is_given_to_its_frame(database: Database) -> None:
    """The check answers with the attempt, as the transaction read it."""
    found = database.transact(check_frame, frame())

    assert ("a1", 7, "t", HERE, "task") == (
        found.attempt_id,
        found.run,
        found.thread_id,
        found.checkpoint_id,
        found.task_id,
    )
