"""Closing: how a scope stops, whatever the reason (rules E27 and E28).

    gate shut ─▶ what has not begun is cancelled ─▶ what runs comes to its end, or is given up ─▶ terminal result

The first reason that is committed wins. A root's close is the tree's; a child's is its own.
"""

from __future__ import annotations

from langgraph_ext.engine import pauses
from langgraph_ext.engine.applying import Applying, agent_run_of
from langgraph_ext.engine.batches import close_batches
from langgraph_ext.engine.limits import REASONS
from langgraph_ext.engine.moves import error_outcome, move_operation
from langgraph_ext.engine.rows import AgentRun, Operation, encoded
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState
from langgraph_ext.engine.tickets import EXHAUSTED, settle_unused
from langgraph_ext.ledger import slices
from langgraph_ext.ledger.records import InboxKind, RunStatus

__all__ = ["STOPPED", "cancel", "close", "end", "finish", "succeed"]

STOPPED = "stopped"

_STATUS_OF = {STOPPED: AgentStatus.CANCELLED} | dict.fromkeys((EXHAUSTED, *REASONS.values()), AgentStatus.EXHAUSTED)
"""How a scope ends that closed for a reason; failed, if it is another one."""

_RUN_STATUS = {
    AgentStatus.SUCCEEDED: RunStatus.SUCCEEDED,
    AgentStatus.CANCELLED: RunStatus.CANCELLED,
    AgentStatus.EXHAUSTED: RunStatus.BUDGET_EXHAUSTED,
    AgentStatus.FAILED: RunStatus.FAILED,
}

_NOT_BEGUN = (OperationState.PREPARED, OperationState.ASKED, OperationState.READY)


def close(at: Applying, agent_run_id: str, reason: str, message: str) -> bool:
    """Shut a scope's gate, cancel what has not begun in it, and settle the tickets of that.

    Returns:
        Whether this was the first reason.
    """
    closed = [each for each in _scope(at, agent_run_id) if _shut(at, each, reason, message)]
    for each in closed:
        _cancel_operations(at, each)
    return any(each.agent_run_id == agent_run_id for each in closed)


def cancel(at: Applying, operation: Operation) -> None:
    """An operation that was not dispatched never will be."""
    settle_unused(at, operation.operation_id)
    outcome = error_outcome("cancelled", "it was stopped before it began")
    move_operation(at, operation.operation_id, operation.state, OperationState.CANCELLED, outcome=outcome)


def finish(at: Applying, agent_run_id: str) -> bool:
    """End a closing scope, if nothing of it is under way any more: its tasks are cancelled, and it has its result.

    Returns:
        Whether it has ended.
    """
    scope = [each for each in _scope(at, agent_run_id) if each.status is AgentStatus.CLOSING]
    if any(_is_busy(at, each) for each in scope):
        return False
    for each in reversed(scope):  # children before their root
        _leave_nothing(at, each)
        assert each.reason is not None
        end(at, each, _STATUS_OF.get(each.reason, AgentStatus.FAILED))
    return True


def succeed(at: Applying, agent_run_id: str, output: object) -> bool:
    """End a scope that has its output, if nothing of it is under way: what its task has left behind is cancelled.

    Returns:
        Whether it has ended.
    """
    run = agent_run_of(at.tx, agent_run_id)
    if _is_busy(at, run):
        return False
    _leave_nothing(at, run)
    end(at, run, AgentStatus.SUCCEEDED, output=output)
    return True


def end(at: Applying, run: AgentRun, status: AgentStatus, *, output: object = None) -> None:
    """Give an agent run its terminal status, and the ledger's run with it if it is a root of its own."""
    ended = at.tx.run(
        "agent_run_end",
        agent_run_id=run.agent_run_id,
        expected=run.status,
        target=status,
        reason=run.reason,
        message=run.message,
        output=None if status is not AgentStatus.SUCCEEDED else encoded(output, "output"),
        now_us=at.now_us,
    )
    assert ended == 1, "nobody else writes in this transaction"
    at.result["ended"] = {"agent_run_id": run.agent_run_id, "status": str(status), "reason": run.reason}
    at.event(f"agent.{status}", agent_run_id=run.agent_run_id, reason=run.reason)
    if run.is_root:
        error = (run.reason or "", run.message or "") if status is AgentStatus.FAILED else None
        pauses.move_run(at, _RUN_STATUS[status], error=error)
        slices.settle_nothing(at.tx, run.agent_run_id, now_us=at.now_us)
        if status is AgentStatus.CANCELLED:
            at.tx.run("inbox_consume", run=run.run, kind=InboxKind.CANCEL, now_us=at.now_us)


def _scope(at: Applying, agent_run_id: str) -> list[AgentRun]:
    """An agent run, and those below it, which close with it; itself first."""
    tree = [AgentRun.from_row(row) for row in at.tx.all("agent_runs_of_tree", root_id=at.root_id)]
    found = {agent_run_id}
    while below := {each.agent_run_id for each in tree if each.parent_id in found} - found:
        found |= below
    own = agent_run_of(at.tx, agent_run_id)
    return [own, *(each for each in tree if each.agent_run_id in found and each.agent_run_id != agent_run_id)]


def _shut(at: Applying, run: AgentRun, reason: str, message: str) -> bool:
    columns = {"agent_run_id": run.agent_run_id, "reason": reason, "message": message}
    if at.tx.run("agent_run_close", **columns) == 0:
        return False
    at.event("agent.closing", **columns)
    return True


def _operations(at: Applying, run: AgentRun) -> list[Operation]:
    rows = at.tx.all("agent_operations_live", root_id=at.root_id)
    return [Operation.from_row(row) for row in rows if row["agent_run_id"] == run.agent_run_id]


def _is_busy(at: Applying, run: AgentRun) -> bool:
    """Whether a call of it is under way."""
    return any(each.state is OperationState.DISPATCHED for each in _operations(at, run))


def _cancel_operations(at: Applying, run: AgentRun) -> None:
    """Cancel what has not begun, and settle what has an answer."""
    for operation in _operations(at, run):
        if operation.state in _NOT_BEGUN:
            cancel(at, operation)
        elif operation.state is OperationState.RAW:
            _settle_raw(at, operation)


def _leave_nothing(at: Applying, run: AgentRun) -> None:
    """Cancel the tasks and operations of an agent run that have not ended, and settle every ticket."""
    for row in at.tx.all("agent_tasks_of_tree", root_id=at.root_id):
        if row["agent_run_id"] == run.agent_run_id and not TaskState(row["state"]).ended:
            _cancel_task(at, row["agent_task_id"], run.reason)
    _cancel_operations(at, run)
    close_batches(at, run.agent_run_id)
    for row in at.tx.all("agent_requests_open", root_id=at.root_id):
        if row["agent_run_id"] == run.agent_run_id:
            at.tx.run("agent_request_cancel", request_id=row["request_id"], now_us=at.now_us)
            at.event("request.cancelled", request_id=row["request_id"])
    for operation in _operations(at, run):
        settle_unused(at, operation.operation_id)


def _settle_raw(at: Applying, operation: Operation) -> None:
    """Its after-hooks had not begun: they are skipped, and it settles with what came back (rule E28)."""
    move_operation(
        at,
        operation.operation_id,
        OperationState.RAW,
        OperationState.COMPLETED,
        after={"skipped": "closing"},
        outcome=operation.raw,
    )


def _cancel_task(at: Applying, agent_task_id: str, reason: str | None) -> None:
    at.tx.run(
        "agent_task_end",
        agent_task_id=agent_task_id,
        target=TaskState.CANCELLED,
        continuation=None,
        output=None,
        error=encoded({"code": reason, "message": ""}, "error").decode(),
        now_us=at.now_us,
    )
    at.event("task.cancelled", agent_task_id=agent_task_id, reason=reason)
