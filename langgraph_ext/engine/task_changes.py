"""Task changes: how an agent task is activated, goes on, waits and ends (rule E7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.engine import closing
from langgraph_ext.engine.applying import Applying, OfTask, moved, task_of
from langgraph_ext.engine.conditions import is_met
from langgraph_ext.engine.rows import AgentTask, encoded
from langgraph_ext.engine.states import TaskState

__all__ = ["Activate", "EndTask", "GoOn", "WaitFor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(OfTask):
    """A worker begins to drive a task that is ready."""

    def apply(self, at: Applying) -> None:
        """Mark it running under this epoch."""
        task = task_of(at.tx, self.agent_task_id)
        at.gate(task.agent_run_id)
        count = at.tx.run("agent_task_activate", agent_task_id=self.agent_task_id, epoch=at.epoch)
        moved(count, "task", self.agent_task_id, task.state, "activated")
        at.event("task.activated", agent_task_id=self.agent_task_id, epoch=at.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn(OfTask):
    """The task has reached its next phase, and goes on."""

    continuation: Any

    def apply(self, at: Applying) -> None:
        """Store where it stands."""
        task = _running(at, self.agent_task_id)
        _go_on(at, task, TaskState.RUNNING, self.continuation, None, task.ready_seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFor(OfTask):
    """The task waits, and its worker is let go."""

    continuation: Any
    condition: Any

    def apply(self, at: Applying) -> None:
        """Let it wait; it is ready at once if what it waits for has come already."""
        task = _running(at, self.agent_task_id)
        if is_met(at.tx, self.agent_task_id, self.condition):
            _go_on(at, task, TaskState.READY, self.continuation, None, at.next_seq())
        else:
            _go_on(at, task, TaskState.WAITING, self.continuation, self.condition, task.ready_seq)
            at.event("task.waited", agent_task_id=self.agent_task_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTask(OfTask):
    """The task has its result; once."""

    output: Any = None
    error: Any = None
    """`{"code", "message"}`, if it failed."""
    continuation: Any = None

    def apply(self, at: Applying) -> None:
        """End it; a failed one closes its agent run."""
        task = _running(at, self.agent_task_id)
        target = TaskState.SUCCEEDED if self.error is None else TaskState.FAILED
        count = at.tx.run(
            "agent_task_end",
            agent_task_id=self.agent_task_id,
            target=target,
            continuation=None if self.continuation is None else encoded(self.continuation, "continuation"),
            output=encoded(self.output, "output") if self.error is None else None,
            error=None if self.error is None else encoded(self.error, "error").decode(),
            now_us=at.now_us,
        )
        moved(count, "task", self.agent_task_id, task.state, "ended")
        at.result["task"] = {"id": self.agent_task_id, "state": str(target)}
        at.event(f"task.{target}", agent_task_id=self.agent_task_id, **({} if self.error is None else self.error))
        if self.error is not None:
            closing.close(at, task.agent_run_id, self.error["code"], self.error["message"])


def _running(at: Applying, agent_task_id: str) -> AgentTask:
    """A task that this epoch's worker drives, in a scope that is open.

    Raises:
        ConflictError: It is not (`revision_conflict`), or its scope closes (`scope_closed`).
    """
    task = task_of(at.tx, agent_task_id)
    at.gate(task.agent_run_id)
    mine = task.state is TaskState.RUNNING and task.epoch == at.epoch
    moved(int(mine), "task", agent_task_id, f"{task.state} under epoch {task.epoch}", "driven")
    return task


def _go_on(at: Applying, task: AgentTask, target: TaskState, continuation: Any, condition: Any, ready_seq: int) -> None:
    count = at.tx.run(
        "agent_task_go_on",
        agent_task_id=task.agent_task_id,
        target=target,
        continuation=encoded(continuation, "continuation"),
        condition=None if condition is None else encoded(condition, "condition").decode(),
        ready_seq=ready_seq,
    )
    moved(count, "task", task.agent_task_id, task.state, f"moved to {target}")
    at.result["task"] = {"id": task.agent_task_id, "state": str(target), "revision": task.revision + 1}
