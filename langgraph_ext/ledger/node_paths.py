"""Node paths: which node a task ran, and inside which others.

A call says where its task stands in its own graph (the task path). What encloses that graph comes from the visit that
runs it: the put of a subgraph names the enclosing task, and its metadata the checkpoint at which that task stands. A
namespace is compared and never taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.records import VisitKind
from langgraph_ext.ledger.task_paths import task_of

__all__ = ["KEPT", "NodePaths", "Placed", "Stood"]

KEPT = "kept:"
"""How the names begin under which deleted threads are kept (keeping.py). A thread may be called so, too."""

UNKNOWN = "?"
"""Stands in a node path for a name that is not known."""


@dataclass(frozen=True, slots=True)
class Stood:
    """Where a task stood."""

    kind: VisitKind
    node: str | None
    node_path: str
    scope: str | None
    place: int | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A stored checkpoint, as far as the tasks at it are concerned."""

    run: int | None
    seq: int
    """From when on it is known to which run its tasks belong: it is stored, and so is the root checkpoint above it."""
    inside: str | None
    sends: tuple[str, ...]
    prefix: str
    """The enclosing node paths, each with a `/` behind it."""


class NodePaths:
    """Node paths and runs, looked up in one snapshot; what was looked up is kept as long as this object."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._placed: dict[tuple[str, str, str], Placed | None] = {}
        self._names: dict[int, str | None] = {}
        self._threads: dict[str, str] = {}

    def placed(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Placed | None:
        """The checkpoint; None if it, or the root checkpoint above it, is not stored."""
        key = (thread_id, checkpoint_ns, checkpoint_id)
        if key not in self._placed:
            self._placed[key] = self._look_up(*key)
        return self._placed[key]

    def stood(self, placed: Placed | None, task_path: str) -> Stood:
        """Where the task of this path stood, at this checkpoint."""
        task = task_of(task_path)
        name = task.name
        if placed is None:
            return Stood(task.kind, name, name or UNKNOWN, None, task.send)
        if task.send is not None and task.send < len(placed.sends):
            name = placed.sends[task.send]
        return Stood(task.kind, name, placed.prefix + (name or UNKNOWN), placed.inside, task.send)

    def run_id(self, run: int | None) -> str | None:
        """The name of a run; None if there is no such run."""
        if run is None:
            return None
        if run not in self._names:
            tx = self._tx
            row = tx.maybe("run_get", run=run)
            self._names[run] = None if row is None else row["run_id"]
        return self._names[run]

    def name_of(self, thread_id: str) -> str:
        """What a thread is called; of one that was deleted, and of which the ledger was kept, what it was called."""
        if not thread_id.startswith(KEPT):
            return thread_id
        if thread_id not in self._threads:
            tx = self._tx
            row = tx.maybe("kept_name", kept_id=thread_id)
            self._threads[thread_id] = thread_id if row is None else row["thread_id"]
        return self._threads[thread_id]

    def task_path(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str, task_id: str) -> str | None:
        """The task path of a task that has made a call."""
        where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
        tx = self._tx
        row = tx.maybe("call_of_task", **where, task_id=task_id)
        return None if row is None else row["task_path"]

    def _look_up(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Placed | None:
        where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
        tx = self._tx
        row = tx.maybe("place_get", **where)
        if row is None:
            return None
        sends = tuple(canonical.decode(row["sends"])) if row["sends"] else ()
        if not checkpoint_ns or row["root_id"] is None:
            return Placed(row["run"], row["seq"], None, sends, "")
        root = self.placed(thread_id, "", row["root_id"])
        if root is None:
            return None
        return Placed(root.run, max(root.seq, row["seq"]), row["inside"], sends, self._prefix(thread_id, row))

    def _prefix(self, thread_id: str, row: Row) -> str:
        """The node path of the task that runs this subgraph, as far as it is known: it may not have made a call yet."""
        parents = canonical.decode(row["metadata"]).get("parents") or {}
        if not parents or row["inside"] is None:
            return f"{UNKNOWN}/"
        checkpoint_ns, checkpoint_id = list(parents.items())[-1]
        task_path = self.task_path(thread_id, checkpoint_ns, checkpoint_id, row["inside"])
        around = self.placed(thread_id, checkpoint_ns, checkpoint_id)
        if task_path is None:
            return f"{around.prefix if around else ''}{UNKNOWN}/"
        return f"{self.stood(around, task_path).node_path}/"
