"""Threads of many checkpoints, made by the database itself, and what it costs to read them.

A real put is stored through the saver and then multiplied by one INSERT, whatever its columns are; ids are those of
`cid`, each the parent of the next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph_ext import LedgerSaver
from tests.support.build import checkpoint, config, metadata

STEPS_A_CALL = 10
"""Instructions of SQLite's machine between two calls of a progress handler."""


def name(number: int) -> str:
    """The checkpoint id of this number: text that sorts by it."""
    return f"1f0b0000-0000-6000-8000-{number:012}"


def lengthen(path: Path, count: int, *, thread: str = "t", namespaces: tuple[str, ...] = ("",)) -> None:
    """Put checkpoints number 0 and 1 of a thread, and multiply the second until each namespace has `count`."""
    with LedgerSaver(path) as saver:
        for ns in namespaces:
            for number in (0, 1):
                where = config(thread, ns, name(number - 1) if number else None)
                made = checkpoint(name(number), {"a": number, "b": "same"}, {"a": number + 1, "b": 1})
                saver.put(where, made, metadata(number), {"a": number + 1, "b": 1})
                saver.put_writes(config(thread, ns, name(number)), [("a", number + 1)], "task")
    connection = sqlite3.connect(path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(checkpoint_log)")]
    fresh = {
        "seq": "NULL",
        "checkpoint_id": "printf('1f0b0000-0000-6000-8000-%012d', n.number)",
        "parent_id": "CASE WHEN parent_id IS NOT NULL THEN printf('1f0b0000-0000-6000-8000-%012d', n.number - 1) END",
    }
    connection.execute(
        f"""
        WITH RECURSIVE n (number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM n WHERE number + 1 < :count)
        INSERT INTO checkpoint_log ({", ".join(columns)})
        SELECT {", ".join(fresh.get(column, column) for column in columns)}
        FROM n CROSS JOIN checkpoint_log WHERE thread_id = :thread AND checkpoint_id = :second
        """,
        {"count": count, "thread": thread, "second": name(1)},
    )
    connection.commit()
    connection.close()


class Meter:
    """Counts what SQLite does on every connection that is opened while it stands."""

    def __init__(self) -> None:
        self.steps = 0

    def tick(self) -> int:
        """Called by SQLite every `STEPS_A_CALL` instructions."""
        self.steps += STEPS_A_CALL
        return 0

    def of(self, job: Callable[[], Any]) -> tuple[int, Any]:
        """How many instructions a job takes, and what it returns. It runs once before, to open what is opened once."""
        job()
        self.steps = 0
        answer = job()
        return self.steps, answer


@contextmanager
def metered() -> Iterator[Meter]:
    """Every connection opened in this block counts its instructions."""
    meter, connect = Meter(), sqlite3.connect

    def connect_metered(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)
        connection.set_progress_handler(meter.tick, STEPS_A_CALL)
        return connection

    sqlite3.connect = connect_metered  # type: ignore[assignment]
    try:
        yield meter
    finally:
        sqlite3.connect = connect  # type: ignore[assignment]
