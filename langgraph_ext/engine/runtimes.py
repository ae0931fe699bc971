"""Runtimes: what a behaviour may look at, read at one point (rule E7): its own task, and nothing of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from langgraph_ext.database import Tx
from langgraph_ext.engine.batches import BatchRow, batch_of
from langgraph_ext.engine.commits import RuntimeCommit
from langgraph_ext.engine.contexts import EMPTY, Head, Steered, head_of, sizes_of, steered
from langgraph_ext.engine.releases import Live
from langgraph_ext.engine.requests import Request, request_named
from langgraph_ext.engine.rows import AgentRun, AgentTask, Operation, Tree
from langgraph_ext.ledger.encoded import Serde

__all__ = ["First", "Runtime", "Seen", "refresh"]


@dataclass(slots=True)
class Runtime:
    """What a behaviour may look at, as of the last commit."""

    task: AgentTask
    operations: Mapping[str, Operation]
    """The task's own, by purpose, but for those that are consumed."""
    spec: Any = None
    """The release's definition."""
    run: AgentRun | None = None
    """Its agent run, if the behaviour keeps a context; so is what follows but for `live`."""
    live: Live | None = None
    """The release's tools and the rest that lives, to be looked at and never called."""
    context: Head = EMPTY
    sizes: Sequence[tuple[int, str, int]] = ()
    """Seq, kind and tokens of its context's window, if that is so large that it has to be compacted."""
    batch: BatchRow | None = None
    """That its continuation names."""
    steering: Sequence[Steered] = ()
    """Messages that nobody has claimed, and those that the request of the operation has that its continuation names."""
    request: Request | None = None
    """To a person, that its continuation names."""

    def become(self, other: Runtime) -> None:
        """Show what another one shows: the behaviour keeps the one that it was given."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))


class Seen(NamedTuple):
    """What a driver looks at, at one read point."""

    tree: Tree
    runtime: Runtime | None
    """Of the task whose turn it is; None if it is none's."""
    ahead: Mapping[str, Any]
    """By operation: what its call, which is on record and was not made here yet, needs of the store."""
    end: Any = None
    """What its caller reads of a tree that has ended."""


class First(NamedTuple):
    """What a driver looks at before all else."""

    root: AgentRun
    recovered: RuntimeCommit | None
    """What has to be written before the tree is driven."""
    seen: Seen | None
    """Where it is begun, if nothing has, and it has not ended."""


def refresh(
    tx: Tx,
    agent_task_id: str,
    *,
    spec: Any,
    live: Live | None,
    serde: Serde | None,
    context: bool,
) -> Runtime:
    """Read what a behaviour may look at.

    Args:
        tx: The transaction.
        agent_task_id: Its task.
        spec: The release's definition.
        live: What lives of it.
        serde: Decodes what of the inbox is no JSON.
        context: Whether the behaviour keeps one.
    """
    task = AgentTask.from_row(tx.one("agent_task_get", agent_task_id=agent_task_id))
    rows = tx.all("agent_operations_live", root_id=task.root_id)
    own = [Operation.from_row(row) for row in rows if row["agent_task_id"] == agent_task_id]
    found = Runtime(task, {each.purpose: each for each in own}, spec, live=live)
    if context:
        _read_context(tx, found, task.continuation or {}, serde)
    return found


def _read_context(tx: Tx, runtime: Runtime, at: Mapping[str, Any], serde: Serde | None) -> None:
    task = runtime.task
    soft = runtime.spec["compaction"]["soft_tokens"]
    runtime.context = head_of(tx, task.context_id, summaries=soft is not None)
    is_large = soft is not None and at.get("phase") == "prepare_model"
    runtime.sizes = sizes_of(tx, task.context_id, runtime.context) if is_large else ()
    by_id = {each.operation_id: each for each in runtime.operations.values()}
    runtime.batch = None if at.get("batch") is None else batch_of(tx, at["batch"], by_id)
    runtime.request = None if at.get("request") is None else request_named(tx, at["request"])
    operation = runtime.operations.get(at.get("purpose") or "")
    runtime.run = AgentRun.from_row(tx.one("agent_run_get", agent_run_id=task.agent_run_id))
    runtime.steering = steered(tx, runtime.run.run, None if operation is None else operation.operation_id, serde)
