"""What must hold when all agent runs of a seed have ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.rows import AgentRun, Operation, Tree, read_tree
from langgraph_ext.engine.states import AgentStatus, CallState, TaskState, TicketState
from langgraph_ext.ledger.records import RunStatus
from tests.support.simulated.histories import check_transcript
from tests.support.simulated.witness import calls_of

__all__ = ["check_end"]

_RUN_STATUS = {
    AgentStatus.SUCCEEDED: RunStatus.SUCCEEDED,
    AgentStatus.CANCELLED: RunStatus.CANCELLED,
    AgentStatus.EXHAUSTED: RunStatus.BUDGET_EXHAUSTED,
    AgentStatus.FAILED: RunStatus.FAILED,
}


def check_end(tx: Tx, roots: Sequence[str], say: Callable[[str], None]) -> None:
    """Look at the trees once more."""
    for root_id in roots:
        tree = _whole(tx, root_id)
        checks = (_of_root(tx, tree.root), _of_tree(tree), _of_calls(tx, tree), _of_steering(tx, tree))
        for found in chain(*checks, check_transcript(tx, root_id)):
            say(f"{root_id} at its end: {found}")


def _whole(tx: Tx, root_id: str) -> Tree:
    """A tree with those of its operations, too, that are consumed."""
    rows = map(Operation.from_row, tx.all("agent_operations_of_tree", root_id=root_id))
    return replace(read_tree(tx, root_id), operations={each.operation_id: each for each in rows})


def _of_root(tx: Tx, root: AgentRun) -> Iterator[str]:
    if not root.status.ended:
        yield f"it is {root.status}"
        return
    run = tx.one("run_get", run=root.run)
    if run["status"] != _RUN_STATUS[root.status]:
        yield f"the agent run is {root.status} ({root.reason}), and the ledger's run {run['status']}"
    query = "SELECT commit_key, epoch FROM agent_commit WHERE root_id = :root_id ORDER BY rowid"
    epochs = [row["epoch"] for row in tx._execute(query, {"root_id": root.root_id}).fetchall()]
    if epochs != sorted(epochs):
        yield f"commits of an older epoch came behind those of a newer one: {epochs}"


def _of_tree(tree: Tree) -> Iterator[str]:
    for task in tree.tasks.values():
        if not task.state.ended:
            yield f"task {task.agent_task_id} is {task.state}"
    for operation in tree.operations.values():
        if not operation.state.ended:
            yield f"operation {operation.purpose} is {operation.state}"
    for ticket in tree.tickets.values():
        if ticket.state not in (TicketState.CONSUMED, TicketState.RELEASED):
            yield f"the ticket of {tree.operations[ticket.operation_id].purpose} is {ticket.state}"
    first = next(each for each in tree.tasks.values() if each.parent_operation is None)
    if (tree.root.status is AgentStatus.SUCCEEDED) != (
        first.state is TaskState.SUCCEEDED
    ) and tree.root.reason != "stopped":
        yield f"the agent run is {tree.root.status} ({tree.root.reason}), and its task {first.state}"
    if tree.root.status is AgentStatus.SUCCEEDED and first.behaviour != "react":
        models = [each for each in tree.operations.values() if each.kind == "model"]
        if tree.root.output != len(models) or tree.root.output != tree.root.input["rounds"]:
            yield f"its output is {tree.root.output!r}, and {len(models)} models were asked"


def _of_calls(tx: Tx, tree: Tree) -> Iterator[str]:
    models = 0
    for operation in tree.operations.values():
        calls = calls_of(tx, operation.operation_id)
        models += len(calls) if operation.kind in ("model", "compaction") else 0
        yield from _of_operation(operation, calls)
    if models != tree.root.model_calls:
        yield f"it counts {tree.root.model_calls} calls of models, and there are {models}"


def _of_operation(operation: Operation, calls: Sequence[Any]) -> Iterator[str]:
    if [each["number"] for each in calls] != [number + 1 for number in range(operation.tries)]:
        yield f"operation {operation.purpose} has had {operation.tries} tries, and {len(calls)} calls"
    states = [CallState(each["state"]) for each in calls]
    if CallState.OPEN in states or CallState.SETTLED in states[:-1]:
        yield f"the calls of {operation.purpose} are {states}"
    told = operation.on_unknown in ("ask", "reconcile")  # then somebody has said that it was not done
    if operation.policy == "once" and not told and CallState.INTERRUPTED in states[:-1]:
        yield f"{operation.purpose} may be called once, and was called again: {states}"


def _of_steering(tx: Tx, tree: Tree) -> Iterator[str]:
    """Each message is in one frozen request, whose operation has claimed it, or is handed back."""
    entries = {row["entry"]: row["attempt_id"] for row in tx.all("agent_steering_of", run=tree.root.run)}
    heard = [
        (entry, each.operation_id)
        for each in tree.operations.values()
        if each.tries or tree.tickets.get(each.operation_id)
        for entry in each.request.get("steered", each.request.get("steering", ()))
    ]
    claimed = sorted((entry, by) for entry, by in entries.items() if by is not None)
    if sorted(heard) != claimed:
        yield f"messages in requests: {sorted(heard)}; claimed: {claimed}"
    known = tx.maybe("agent_commit_get", root_id=tree.root.root_id, commit_key=f"terminal:{tree.root.root_id}")
    handed_back = json.loads(known["result"]).get("handed_back") if known else None
    left = sorted(entry for entry, by in entries.items() if by is None)
    if handed_back != left:
        yield f"handed back: {handed_back}; left: {left}"
