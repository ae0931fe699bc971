"""The work log: one line each time a node really begins or ends, whichever process runs it.

Checkpoints tell what was saved; this file tells what was done, and only both together show what a crash cost.
A line is synced before the node goes on, so a killed process cannot take its lines along.  It is written from
LangChain's callbacks: the graph does not know that it is watched.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphBubbleUp


class Event(StrEnum):
    """What happened to a task."""

    BEGIN = "begin"
    END = "end"
    PAUSE = "pause"
    """The node asked a human and gave way."""
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the work log."""

    at: float
    """Seconds since the epoch, by the clock of the process that wrote the line."""
    pid: int
    event: Event
    node: str
    task_id: str
    """LangGraph's id; under durability="sync" a task keeps it when another process runs it again."""
    order_id: str | None
    """The order, for a task of the fan-out."""


def read_log(path: Path) -> list[Entry]:
    """Every whole line that is there now; a line still being written is left for the next call."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [_entry(json.loads(line)) for line in lines]


class WorkLog(BaseCallbackHandler):
    """Appends to the work log of one run; give it to `invoke` as a callback."""

    raise_error = True

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._running: dict[UUID, Entry] = {}

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note that a node begins; chains inside a node carry its metadata but not its name."""
        where = metadata or {}
        if kwargs.get("name") != where.get("langgraph_node"):
            return
        self._running[run_id] = Entry(
            at=time.time(),
            pid=os.getpid(),
            event=Event.BEGIN,
            node=where["langgraph_node"],
            task_id=where["langgraph_checkpoint_ns"].rpartition(":")[2],
            order_id=inputs.get("order_id"),
        )
        self._write(self._running[run_id])

    def on_chain_end(
        self, outputs: dict[str, Any], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Note that a node ended; LangGraph saves its result after this line."""
        self._finish(run_id, Event.END)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Note that a node failed, or paused by `interrupt`, which travels as an exception."""
        self._finish(run_id, Event.PAUSE if isinstance(error, GraphBubbleUp) else Event.FAIL)

    def _finish(self, run_id: UUID, event: Event) -> None:
        begun = self._running.pop(run_id, None)
        if begun is not None:
            self._write(replace(begun, at=time.time(), event=event))

    def _write(self, entry: Entry) -> None:
        os.write(self._file, (json.dumps(asdict(entry)) + "\n").encode())
        os.fsync(self._file)


def _entry(line: Mapping[str, Any]) -> Entry:
    return Entry(**{**line, "event": Event(line["event"])})
