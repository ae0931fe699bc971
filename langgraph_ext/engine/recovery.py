"""Recovery: what a worker does first with a tree that another one has driven, or itself before (rules E29 and E30).

Nobody drives a tree beside the holder of its lease, so whatever is under way in its rows is nobody's: running tasks
are abandoned, and dispatched calls are lost. What is stored is checked before anything is called, and repaired by
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.engine.applying import Applying, Change, OfTask, Ref, moved
from langgraph_ext.engine.commits import RuntimeCommit
from langgraph_ext.engine.moves import wake
from langgraph_ext.engine.operation_changes import LoseCall
from langgraph_ext.engine.outcomes import PROTOCOL
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.rows import Tree
from langgraph_ext.engine.states import OperationState, TaskState, TicketState
from langgraph_ext.errors import AdmissionError, RecoveryRequired

__all__ = ["Abandon", "LookAgain", "check", "take_over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon(OfTask):
    """An activation that nobody goes on with: its task is ready, and goes on from its continuation."""

    def apply(self, at: Applying) -> None:
        """Make it ready."""
        count = at.tx.run("agent_task_abandon", agent_task_id=self.agent_task_id, ready_seq=at.next_seq())
        moved(count, "task", self.agent_task_id, "driven", "abandoned")
        at.event("task.abandoned", agent_task_id=self.agent_task_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAgain(OfTask):
    """A waiting task's condition is looked at again."""

    def apply(self, at: Applying) -> None:
        """Make it ready if its condition is met."""
        wake(at, self.agent_task_id)


def take_over(tree: Tree, epoch: int) -> RuntimeCommit | None:
    """What has to be written before a tree is driven under this epoch; None if nothing has."""
    changes: list[Change] = []
    for task in tree.tasks.values():
        if task.state is TaskState.RUNNING:
            changes.append(Abandon(agent_task_id=task.agent_task_id))
        elif task.state is TaskState.WAITING:
            changes.append(LookAgain(agent_task_id=task.agent_task_id))
    for operation in tree.operations.values():
        if operation.state is OperationState.DISPATCHED:
            changes.append(LoseCall(operation_id=operation.operation_id, number=operation.tries))
    if not changes:
        return None
    # Not the root's revision alone: under one epoch a tree may be taken over again, by a driver whose database failed.
    rows: list[Any] = [tree.root, *tree.tasks.values(), *tree.operations.values()]
    stands = ".".join(str(each.revision) for each in rows)
    key = f"recover:{tree.root.root_id}:{epoch}:{stands}"
    expected = {Ref.task(each.agent_task_id): each.revision for each in tree.tasks.values()}
    return RuntimeCommit(root_id=tree.root.root_id, key=key, changes=tuple(changes), expected=expected)


def check(tree: Tree, program: Program, release: str) -> None:
    """See that a tree can be driven with this code, before anything is called; reads only.

    Raises:
        AdmissionError: A behaviour (`node_abi_unavailable`), a continuation's protocol (`node_protocol_unsupported`)
            or the definition (`definition_changed`) is not here.
        RecoveryRequired: What is stored contradicts itself (`recovery_invariant`).
    """
    root_id = tree.root.root_id
    if tree.root.release != release:
        raise AdmissionError(
            f"agent run {root_id!r} was started with another definition ({tree.root.release}) "
            f"than this one ({release}); drive it with the one it was started with, or start another run",
            code="definition_changed",
            details={"agent_run_id": root_id, "started_with": tree.root.release, "given": release},
        )
    for task in tree.tasks.values():
        if task.state.ended:
            continue
        program.behaviour(task.behaviour, task.version)
        protocol = PROTOCOL if task.continuation is None else task.continuation.get("protocol")
        if protocol != PROTOCOL:
            raise AdmissionError(
                f"task {task.agent_task_id!r} stands at protocol {protocol!r}, and this code knows {PROTOCOL}; "
                "nothing was changed. Drive it with the version that wrote it",
                code="node_protocol_unsupported",
                details={"agent_task_id": task.agent_task_id, "protocol": protocol},
            )
    for why in _contradictions(tree):
        raise RecoveryRequired(
            f"agent run {root_id!r} contradicts itself: {why}; nothing was changed, please report it",
            code="recovery_invariant",
            details={"agent_run_id": root_id, "why": why},
        )


def _contradictions(tree: Tree) -> list[str]:
    found = []
    for run in tree.runs.values():
        own = [each for each in tree.tickets.values() if run.is_root or each.agent_run_id == run.agent_run_id]
        for state, counted in ((TicketState.CONSUMED, run.consumed), (TicketState.RESERVED, run.reserved)):
            tickets = sum(each.state is state for each in own)
            if tickets != counted:
                found.append(f"{run.agent_run_id!r} counts {counted} tickets as {state}, and there are {tickets}")
    for operation in tree.operations.values():
        ticket = tree.tickets.get(operation.operation_id)
        waits = ticket is not None and ticket.state is TicketState.WAITING
        if waits != (operation.state is OperationState.ASKED):
            found.append(f"operation {operation.operation_id!r} is {operation.state}, and its ticket is not")
    return found
