"""Doubts: calls of which nobody knows whether they did anything, and how that is settled (rule A10).

    dispatched ──▶ unknown ──┬─▶ told to the model (`error`)
                             ├─▶ a function finds out (`reconcile`) ──▶ completed │ called again │ a person is asked
                             └─▶ a person is asked (`ask`) ──▶ completed │ called again

Which of them it is, the tool's spec says (`on_unknown`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine import pauses
from langgraph_ext.engine.applying import Applying, OfOperation, moved, operation_of
from langgraph_ext.engine.commits import RuntimeCommit
from langgraph_ext.engine.from_outside import say
from langgraph_ext.engine.messages import told_outcome
from langgraph_ext.engine.moves import error_outcome, move_operation
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.states import OperationState
from langgraph_ext.errors import ConflictError, NotFound
from langgraph_ext.ledger.owners import Owner

__all__ = ["Doubt", "Resolve", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve(OfOperation):
    """It was found out what came of a call."""

    outcome: Any = None
    """What it came to, or that nobody will know; None: nothing was done, and it is called again."""

    def apply(self, at: Applying) -> None:
        """Take that for its outcome, or have it called again."""
        operation = operation_of(at.tx, self.operation_id)
        moved(int(operation.is_in_doubt), "operation", self.operation_id, operation.state, "in doubt")
        at.gate(operation.agent_run_id)
        if self.outcome is None:
            count = at.tx.run("agent_operation_reopen", operation_id=self.operation_id)
            moved(count, "operation", self.operation_id, operation.state, "called again")
        else:
            unknown, completed = OperationState.UNKNOWN, OperationState.COMPLETED
            move_operation(at, self.operation_id, unknown, completed, after=[], outcome=self.outcome)
        pauses.go_on(at, works=self.outcome is None)
        at.event("operation.resolved", operation_id=self.operation_id, happened=self.outcome is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt(OfOperation):
    """The function that was to find out could not tell: a person is asked."""

    def apply(self, at: Applying) -> None:
        """Note that."""
        unknown = OperationState.UNKNOWN
        count = at.tx.run("agent_operation_doubt", operation_id=self.operation_id, expected=unknown)
        moved(count, "operation", self.operation_id, "settled", "asked about")
        at.event("operation.doubted", operation_id=self.operation_id)


def resolve(
    tx: Tx,
    root_id: str,
    operation_id: str,
    *,
    happened: bool | None,
    result: Any,
    owner: Owner,
    ttl_us: int,
    lease_us: int,
    now_us: int,
    ids: Callable[[], str],
) -> None:
    """Say, from any process, what came of a call that is in doubt.

    Who drives the tree meanwhile goes on with what is said here; it is written under that worker's epoch.

    Args:
        tx: The open transaction.
        root_id: The tree.
        operation_id: The call's operation.
        happened: Whether it was done; if not, it is called again. None: nobody will find out, and the model is told.
        result: What the tool would have returned, if it was.
        owner: Who says so.
        ttl_us: Of the lease that it is written under if nobody drives the tree.
        lease_us: As `now_us`, by the database's clock.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids.

    Raises:
        NotFound: The tree has no such operation (`operation_not_found`).
        ConflictError: It is not in doubt (`operation_not_in_doubt`), something else was said of it before
            (`idempotency_conflict`; the same again changes nothing), or its run has ended (`run_closed`).
    """
    row = tx.maybe("agent_operation_get", operation_id=operation_id)
    if row is None or row["root_id"] != root_id:
        raise NotFound(
            f"agent run {root_id!r} has no operation {operation_id!r}; engine.doubts(…) lists those in doubt",
            code="operation_not_found",
            details={"agent_run_id": root_id, "operation_id": operation_id},
        )
    operation = Operation.from_row(row)
    root = tx.one("agent_run_get", agent_run_id=root_id)
    if root["status"] != "running":
        raise ConflictError(
            f"agent run {root_id!r} is {root['status']}: nothing of it is called or told any more",
            code="run_closed",
            details={"agent_run_id": root_id, "status": root["status"]},
        )
    key = f"resolve:{operation_id}:{operation.tries}"
    said = tx.maybe("agent_commit_get", root_id=root_id, commit_key=key)
    if said is None and not operation.is_in_doubt:
        under_way = " If its worker is gone, drive the run once: then it is." if operation.state == "dispatched" else ""
        raise ConflictError(
            f"operation {operation_id!r} is {operation.state}, and not in doubt.{under_way}",
            code="operation_not_in_doubt",
            details={"operation_id": operation_id, "state": str(operation.state)},
        )
    outcome = None
    if happened is None:
        outcome = error_outcome("outcome_unknown", "nobody knows whether it was done; it is not called again")
    elif happened:
        outcome = told_outcome(operation.request["id"], operation.name, result)
    wanted = RuntimeCommit(
        root_id=root_id,
        key=key,
        changes=(Resolve(operation_id=operation_id, outcome=outcome),),
    )
    say(tx, wanted, owner=owner, ttl_us=ttl_us, lease_us=lease_us, now_us=now_us, ids=ids)
