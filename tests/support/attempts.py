"""Attempts and their ends, as a wrapper of nodes would make them, and what the database holds of them."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.ledger import attempts, settlement
from langgraph_ext.ledger.settlement import PartKey, Staged
from langgraph_ext.saver import task_writes
from langgraph_ext.saver.bodies import Bodies
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.identity import Seen
from langgraph_ext.saver.staging import beside
from tests.support.build import cid, config, running
from tests.support.faults import Points, faulty, kill_myself

NOW_US = 1_700_000_000_000_000

HERE = cid(5)
"""The checkpoint that the tasks are executing."""


def end(
    outcome: Any = "succeeded",
    *,
    attempt: str = "a1",
    task: str = "task",
    ordinal: int = 0,
    epoch: int = 1,
    anchors: tuple[tuple[str, str], ...] = (("", HERE),),
    writes: bytes = b"result",
    **more: Any,
) -> Staged:
    """How an attempt ended."""
    key = PartKey("t", HERE, task, ordinal)
    return settlement.mark(outcome, key=key, attempt_id=attempt, epoch=epoch, anchors=anchors, writes=writes, **more)


def begin(
    tx: Tx, attempt: str = "a1", *, task: str = "task", epoch: int = 1, thread: str = "t", run: int = 7
) -> attempts.Attempt:
    """Begin an attempt of a task."""
    return attempts.start(
        tx,
        attempt_id=attempt,
        run=run,
        thread_id=thread,
        checkpoint_ns="",
        checkpoint_id=HERE,
        task_id=task,
        ordinal=0,
        epoch=epoch,
        now_us=NOW_US,
    )


def force(tx: Tx, attempt: str, status: str, *, epoch: int = 1) -> None:
    """Bring an attempt to a status that needs an admission, or a wrapper's own commit."""
    ended = None if status in ("running", "paused") else NOW_US
    cleared = "" if status == "running" else ", marker = NULL, digest = NULL, writes = NULL"
    tx._execute(
        f"UPDATE attempt SET status = :status, epoch = :epoch, ended_us = :ended{cleared} WHERE attempt_id = :attempt",
        {"status": status, "epoch": epoch, "ended": ended, "attempt": attempt},
    )


def settle(tx: Tx, *staged: Staged, now_us: int) -> None:
    """Settle ends, as the saver does beside what it stores."""
    settlement.write(tx, settlement.check(tx, staged), now_us=now_us)


def store_writes(tx: Tx, *staged: Staged) -> None:
    """What the task's `put_writes` does: store its writes and settle what it staged."""
    written = task_writes.prepare(
        Address("t", "", HERE),
        running(config(id=HERE)),
        [("out", b"value")],
        "task",
        "~",
        serde=JsonPlusSerializer(),
        dumps=JsonPlusSerializer().dumps_typed,
        sealer=tx.sealer,
        seen=Seen(),
        bodies=Bodies(),
        epoch=None,
        regular=True,
        stored_us=NOW_US,
    )
    beside(tx, partial(task_writes.store, written=written), staged, now_us=NOW_US + 1)


def status_of(database: Database, attempt: str = "a1") -> str:
    """Where an attempt stands."""
    found = database.read(attempts.find, attempt)
    assert found is not None
    return str(found.status)


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in these two tables, as another program sees it."""
    connection = sqlite3.connect(path)
    found = {
        name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
        for name in ("attempt", "checkpoint_log")
    }
    connection.close()
    return found


def events(path: Path) -> list[tuple[Any, ...]]:
    """Name, run, place and time of every event of an attempt, oldest first."""
    connection = sqlite3.connect(path)
    found = connection.execute(
        "SELECT event, run, checkpoint_ns, checkpoint_id, stored_us FROM checkpoint_log "
        "WHERE event LIKE 'attempt.%' ORDER BY seq"
    ).fetchall()
    connection.close()
    return found


def settle_and_be_killed(path: str, kind: str, at: int) -> list[str]:
    """In another process: store writes and settle, and be killed at a point; the points passed if there was none."""
    points = Points(kill_myself, kind=kind, at=at, armed=False)
    database = open_database(path, connection=faulty(points))
    database.open()
    points.arm()
    database.transact(store_writes, end())
    database.close()
    return points.passed
