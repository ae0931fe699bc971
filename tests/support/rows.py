"""Rows of the ledger written by hand, as a saver would write them, or as it never would."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import open_database
from tests.support.build import cid

NOW_US = 1_700_000_000_000_000

PULL, PUSH = "~__pregel_pull, ", "~__pregel_push, "


class Rows:
    """A connection that writes rows to a database file, which it makes if there is none. Checkpoints are numbers."""

    def __init__(self, path: Path) -> None:
        database = open_database(path)
        database.open()
        database.close()
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def close(self) -> None:
        self.connection.close()

    def insert(self, table: str, **columns: Any) -> int:
        """One row; returns its number."""
        marks = ", ".join("?" * len(columns))
        done = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", list(columns.values())
        )
        assert done.lastrowid is not None
        return done.lastrowid

    def run(
        self, number: int = 1, *, first: int = 1, status: str = "running", thread: str = "t", **columns: Any
    ) -> str:
        """A run, without its events; returns its id."""
        ended = NOW_US + 9 if status in ("succeeded", "cancelled", "budget_exhausted") else None
        name = columns.pop("run_id", f"run {number}")
        where = {"thread_id": thread, "first_id": cid(first), "last_id": cid(first), "status": status}
        times = {"started_us": NOW_US, "changed_us": NOW_US, "ended_us": ended}
        self.insert("run", run=number, run_id=name, **{**where, **times, **columns})
        return name

    def put(self, id: int, *, parent: int | None = None, thread: str = "t", ns: str = "", **columns: Any) -> int:
        """A checkpoint."""
        parents, sends = columns.pop("parents", {}), columns.pop("sends", None)
        row = {
            "listed": 1,
            **_where(thread, ns, id),
            "parent_id": cid(parent) if parent else None,
            "metadata": canonical.encode({"parents": {key: cid(value) for key, value in parents.items()}}),
            "sends": json.dumps(sends) if sends else None,
            **_BLOBS,
            **columns,
        }
        return self.insert("checkpoint_log", **row)

    def nested(self, id: int, *, ns: str, root: int, inside: str, above: tuple[str, int], **columns: Any) -> int:
        """A subgraph's checkpoint: its root checkpoint, the enclosing task, and where that one stands."""
        parents = {"": root, above[0]: above[1]}
        return self.put(id, ns=ns, root_id=cid(root), inside=inside, parents=parents, **columns)

    def call(
        self, id: int, task: str, path: str = "", how: str | None = "succeeded", *, ns: str = "", **columns: Any
    ) -> int:
        """What a task wrote at a checkpoint; `path` is a node's name, or a task path."""
        thread, error = columns.pop("thread", "t"), columns.pop("error", None)
        details = json.dumps({"error_type": error[0], "error_message": error[1]}) if error else None
        task_path = path if path.startswith("~") else PULL + (path or task)
        event = None if how is None else f"visit.{how}"
        row = {**_where(thread, ns, id), "task_id": task, "task_path": task_path, "event": event, "details": details}
        return self.insert("checkpoint_log", **{**row, **_BLOBS, **columns})

    def event(self, name: str, run: int | None = 1, *, id: int = 1, thread: str = "t", **details: Any) -> int:
        """An event of its own."""
        text = json.dumps(details) if details else None
        row = {**_where(thread, "", id), "event": name, "run": run, "details": text, **_BLOBS}
        return self.insert("checkpoint_log", **row)

    def interrupt(self, name: str, run: int = 1, *, id: int = 1, task: str = "ask", **columns: Any) -> None:
        """A question."""
        status = columns.get("status", "pending")
        row = {
            **_where(columns.pop("thread", "t"), columns.pop("ns", ""), id),
            "interrupt_id": name,
            "run": run,
            "root_id": cid(id),
            "task_id": task,
            "task_path": PULL + task,
            "ordinal": 0,
            "value_type": "json",
            "value": b'"?"',
            "status": status,
            "requested_us": NOW_US,
            "closed_us": None if status == "pending" else NOW_US,
        }
        self.insert("interrupt", **{**row, **columns})

    def visit(self, task_id: str, run: int = 1) -> None:
        """A visit in which a durable body began, at the first checkpoint."""
        row = {"thread_id": "t", "checkpoint_id": cid(1), "task_id": task_id, "run": run, "kind": "node"}
        row |= {"node_path": task_id, "scope": "", "place": -1, "ordinal": 1, "iteration_path": "1"}
        self.insert("visit", **row)

    def attempt(self, name: str, run: int = 1, *, number: int = 1, writes: bytes | None = b"w", **columns: Any) -> None:
        """An attempt that succeeded, with a sound marker; without writes, none."""
        marker = writes and canonical.encode({"outcome": "succeeded", "writes": canonical.digest(writes)})
        row = {
            "attempt_id": name,
            "run": run,
            "thread_id": "t",
            "checkpoint_ns": "",
            "checkpoint_id": cid(1),
            "task_id": "task",
            "ordinal": 0,
            "number": number,
            "epoch": 1,
            "status": "succeeded",
            "marker": marker,
            "digest": marker and canonical.digest(marker),
            "writes": writes,
            "started_us": NOW_US,
            "ended_us": NOW_US,
        }
        self.insert("attempt", **{**row, **columns})

    def effect(self, name: str, run: int = 1, *, id: int = 1, **columns: Any) -> None:
        """An effect, without its events; committed unless it is said otherwise."""
        status = columns.get("status", "committed")
        paid = status in ("committed", "compensated")
        row = {
            **_where(columns.pop("thread", "t"), "", id),
            "effect_id": name,
            "attempt_id": "a",
            "run": run,
            "task_id": "task",
            "ordinal": 0,
            "node_path": "pay",
            "iteration_path": "2/1",
            "epoch": 1,
            "name": "charge",
            "key": f"key of {name}",
            "business": 0,
            "payload_digest": "sha256:00",
            "status": status,
            "tries": 1,
            "started_us": NOW_US,
            "calling_us": NOW_US if status == "started" else None,
            "ended_us": None if status in ("started", "unknown") else NOW_US + 9,
            "receipt_type": "json" if paid else None,
            "receipt": b'{"paid":7}' if paid else None,
        }
        self.insert("effect", **{**row, **columns})

    def begun(self, number: int = 1, *, first: int = 1, status: str = "running", **columns: Any) -> str:
        """A run with its first checkpoint and the event that says so."""
        name = self.run(number, first=first, status=status, **columns)
        where = {"thread": columns["thread"]} if "thread" in columns else {}
        self.put(first, run=number, **where)
        self.event("run.started", number, id=first, **where)
        return name


_BLOBS: dict[str, Any] = {"body": b"", "data": b"", "stored_us": NOW_US}


def _where(thread: str, ns: str, id: int) -> dict[str, Any]:
    return {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": cid(id)}
