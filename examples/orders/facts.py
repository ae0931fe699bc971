"""Facts: what a killed run did and what it kept, taken from its work log and its database.

A task of the fan-out meets one of three fates:

    finished and saved          before the kill   must not run again
    finished, not yet saved     before the kill   runs again: nobody but the dead process knew its result
    begun, not finished         at the kill       runs again

Whether a task was saved is read from the database while no process of the run is alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from examples.orders.graph import OrdersState
from examples.orders.worker import THREAD
from examples.orders.worklog import Entry, Event
from langgraph_ext import LedgerSaver, RunLedger

FAN_OUT = "price"

# LangGraph stores a human's answer like a task's result, under the id no task has.
_ANSWER_ID = str(UUID(int=0))

_FIELDS = frozenset(OrdersState.__annotations__)
_CONFIG: RunnableConfig = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The newest checkpoint of a run, as a reader finds it."""

    state: dict[str, Any]
    """The fields of the application's state; LangGraph's own channels are left out."""
    tasks: frozenset[str]
    """Tasks of the fan-out whose results are stored beside the checkpoint."""

    @property
    def comparable(self) -> dict[str, Any]:
        """The state without the bank's numbers, which are others in every run."""
        payments = [{**payment, "receipt": "?"} for payment in self.state.get("payments", [])]
        return {**self.state, "payments": payments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One line of the thread's history."""

    checkpoint_id: str
    saved_at: float
    step: int
    source: str
    changed: tuple[str, ...]
    """Fields of the state that are new in it."""
    results: int
    """How many tasks have their results stored beside it."""
    answered: bool
    """Whether a human's answer is stored beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """The fates of the fan-out's tasks; every set holds task ids."""

    total: int
    orders: dict[str, str]
    """The order of each task."""
    finished: frozenset[str]
    """Finished by the killed process, by its work log."""
    saved: frozenset[str]
    """Stored in the database when the process was dead."""
    begun_later: frozenset[str]
    """Begun by any later process."""

    @property
    def kept(self) -> frozenset[str]:
        """Saved and not run again."""
        return self.saved - self.begun_later

    @property
    def repeated(self) -> frozenset[str]:
        """Saved and yet run again; a checkpointer that keeps its word leaves this empty."""
        return self.saved & self.begun_later

    @property
    def lost(self) -> frozenset[str]:
        """Finished, but killed before the result was saved."""
        return self.finished - self.saved

    @property
    def cut_off(self) -> frozenset[str]:
        """Begun, but not finished when the process was killed."""
        return frozenset(self.orders) - self.finished - self.saved

    @property
    def hit(self) -> bool:
        """Whether the kill fell into the fan-out: some tasks were saved and some not."""
        return 0 < len(self.saved) < self.total


def fan_out(entries: list[Entry], *, killed_pid: int, at_kill: Saved) -> FanOut:
    """Compare the work log with what the database held after the kill."""
    tasks = [entry for entry in entries if entry.node == FAN_OUT]
    return FanOut(
        total=len(at_kill.state["orders"]),
        orders={task.task_id: str(task.order_id) for task in tasks if task.pid == killed_pid},
        finished=frozenset(t.task_id for t in tasks if t.pid == killed_pid and t.event is Event.END),
        saved=at_kill.tasks,
        begun_later=frozenset(t.task_id for t in tasks if t.pid != killed_pid and t.event is Event.BEGIN),
    )


def read_saved(db: Path) -> Saved:
    """Read the newest checkpoint of the run in a database; the run must have begun."""
    with LedgerSaver(db) as saver:
        found = saver.get_tuple(_CONFIG)
    assert found is not None, f"{db} holds no checkpoint of thread {THREAD!r}"
    return Saved(
        state={name: value for name, value in found.checkpoint["channel_values"].items() if name in _FIELDS},
        tasks=frozenset(task_id for task_id, channel, _ in found.pending_writes or [] if channel == "priced"),
    )


def read_run(db: Path) -> tuple[str, bool]:
    """The id of the thread's one run, and whether the ledger finds nothing wrong with it."""
    with RunLedger(db) as ledger:
        (run,) = ledger.runs(thread_id=THREAD)
        return run.run_id, not ledger.verify(run.run_id)


def read_history(db: Path) -> list[Checkpoint]:
    """The checkpoints of the run in a database, oldest first."""
    with LedgerSaver(db) as saver:
        return list(_checkpoints(saver))[::-1]


def database_bytes(db: Path) -> int:
    """Bytes on disk, SQLite's companion files included."""
    files = [db.with_name(db.name + suffix) for suffix in ("", "-wal", "-shm")]
    return sum(file.stat().st_size for file in files if file.exists())


def _checkpoints(saver: LedgerSaver) -> Iterator[Checkpoint]:
    for found in saver.list(_CONFIG):
        changed = found.checkpoint.get("updated_channels") or []
        writers = {task_id for task_id, _, _ in found.pending_writes or []}
        yield Checkpoint(
            checkpoint_id=found.checkpoint["id"],
            saved_at=datetime.fromisoformat(found.checkpoint["ts"]).timestamp(),
            step=found.metadata["step"],
            source=found.metadata["source"],
            changed=tuple(sorted(_FIELDS.intersection(changed))),
            results=len(writers - {_ANSWER_ID}),
            answered=_ANSWER_ID in writers,
        )
