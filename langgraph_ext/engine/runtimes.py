"""Runtimes: what a behaviour may look at, read at one point (rule E7): its own task, and nothing of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.batches import BatchRow, batch_of
from langgraph_ext.engine.contexts import EMPTY, Head, Steered, head_of, sizes_of, steered
from langgraph_ext.engine.releases import Live
from langgraph_ext.engine.rows import AgentTask, Operation
from langgraph_ext.ledger.encoded import Serde

__all__ = ["Runtime", "refresh"]


@dataclass(slots=True)
class Runtime:
    """What a behaviour may look at, as of the last commit."""

    task: AgentTask
    operations: Mapping[str, Operation]
    """The task's own, by purpose, but for those that are consumed."""
    spec: Any = None
    """The release's definition."""
    live: Live | None = None
    """The release's tools and the rest that lives, to be looked at and never called."""
    context: Head = EMPTY
    sizes: Sequence[tuple[int, str, int]] = ()
    """Seq, kind and tokens of its context's window, if that is so large that it may have to be compacted."""
    batch: BatchRow | None = None
    """That its continuation names."""
    steering: Sequence[Steered] = ()
    """Messages that nobody has claimed, and those that the request of the operation has that its continuation names."""


def refresh(
    tx: Tx,
    agent_task_id: str,
    runtime: Runtime | None,
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
        runtime: Where to write it; None: a new one.
        spec: The release's definition.
        live: What lives of it.
        serde: Decodes what of the inbox is no JSON.
        context: Whether the behaviour keeps one.
    """
    task = AgentTask.from_row(tx.one("agent_task_get", agent_task_id=agent_task_id))
    rows = tx.all("agent_operations_live", root_id=task.root_id)
    own = [Operation.from_row(row) for row in rows if row["agent_task_id"] == agent_task_id]
    found = Runtime(task, {each.purpose: each for each in own}, spec, live) if runtime is None else runtime
    found.task, found.operations = task, {each.purpose: each for each in own}
    if context:
        _read_context(tx, found, task.continuation or {}, serde)
    return found


def _read_context(tx: Tx, runtime: Runtime, at: Mapping[str, Any], serde: Serde | None) -> None:
    task = runtime.task
    runtime.context = head_of(tx, task.agent_task_id)
    soft = runtime.spec["compaction"]["soft_tokens"]
    is_large = soft is not None and runtime.context.tokens > soft // 2
    runtime.sizes = sizes_of(tx, task.agent_task_id, runtime.context) if is_large else ()
    runtime.batch = None if at.get("batch") is None else batch_of(tx, at["batch"])
    operation = runtime.operations.get(at.get("purpose") or "")
    run = tx.one("agent_run_get", agent_run_id=task.agent_run_id)["run"]
    runtime.steering = steered(tx, run, None if operation is None else operation.operation_id, serde)
