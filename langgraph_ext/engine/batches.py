"""Batches: the tool calls of one decision, frozen in their order, and what came of each (rules E19 to E22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine import slots
from langgraph_ext.engine.applying import Applying, OfOperation, moved, operation_of, task_of
from langgraph_ext.engine.contexts import append, entry
from langgraph_ext.engine.member_results import member_result
from langgraph_ext.engine.messages import result_message
from langgraph_ext.engine.rows import Operation, encoded
from langgraph_ext.engine.states import BatchState, MemberState

__all__ = [
    "BatchRow",
    "Consume",
    "ConsumeBatch",
    "DecideBatch",
    "FreezeBatch",
    "Member",
    "batch_of",
    "close_batches",
    "result_entries",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One tool call of a batch, and its slot."""

    ordinal: int
    call_id: str
    name: str
    state: MemberState
    operation_id: str | None
    """None if it was rejected, or is queued."""
    outcome: Any
    """Of its operation, once that has ended."""
    result: dict[str, Any] | None
    """What the model is told, a plain message; None until it is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """A batch as it is stored."""

    batch_id: str
    state: BatchState
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeBatch(OfOperation):
    """A decision's tool calls become a batch, which has the operation's id; none of it changes any more.

    Members that may run side by side are admitted at once, else the first of them is; none while a person decides on
    any of them.
    """

    agent_task_id: str
    members: tuple[dict[str, Any], ...]
    """Each with `call_id`, `name` and `purpose`; and `arguments`, `policy` and `on_unknown`, or, if it is rejected, the
    `result` that the model is told."""
    serial: bool
    dispatch: bool = False
    """Whether the calls of those that are admitted are put on record with it, as there are no hooks to ask."""
    asked: tuple[str, ...] = ()
    """Call ids of the members that a person decides on."""

    def apply(self, at: Applying) -> None:
        """Store it, settle what is rejected, and begin what may begin."""
        batch_id = self.operation_id
        columns = {"batch_id": batch_id, "agent_task_id": self.agent_task_id, "root_id": at.root_id}
        at.tx.run("agent_batch_insert", **columns, size=len(self.members), serial=int(self.serial), now_us=at.now_us)
        for ordinal, member in enumerate(self.members):
            arguments = member.get("arguments")
            at.tx.run(
                "agent_member_insert",
                batch_id=batch_id,
                ordinal=ordinal,
                call_id=member["call_id"],
                name=member["name"],
                state=MemberState.ADMITTING if member["call_id"] in self.asked else MemberState.QUEUED,
                purpose=member["purpose"],
                policy=member.get("policy"),
                on_unknown=member.get("on_unknown"),
                arguments=None if arguments is None else encoded(arguments, "arguments"),
            )
        at.event("batch.frozen", batch_id=batch_id, size=len(self.members))
        for ordinal, member in enumerate(self.members):
            if "result" in member:
                slots.reject(at, batch_id, ordinal, member["result"])
        if not self.asked:
            _admit(at, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideBatch(OfOperation):
    """A person has decided on the members of a batch that they were asked about: what may begin does."""

    agent_task_id: str
    decided: tuple[dict[str, Any], ...]
    """Each with `ordinal` and `decision`; and other `arguments`, or, if it is not called, the `result` that the model
    is told instead."""
    serial: bool
    dispatch: bool = False
    """As of `FreezeBatch`."""

    def apply(self, at: Applying) -> None:
        """Note the decisions, settle what is not called, and begin what may begin."""
        for each in self.decided:
            arguments, where = each.get("arguments"), {"batch_id": self.operation_id, "ordinal": each["ordinal"]}
            count = at.tx.run(
                "agent_member_decide",
                **where,
                decision=encoded(each["decision"], "decision").decode(),
                arguments=None if arguments is None else encoded(arguments, "arguments"),
            )
            moved(count, "member", f"{self.operation_id}:{each['ordinal']}", "not asked about", "decided")
            at.event("member.decided", **where, decision=each["decision"]["type"])
            if "result" in each:
                slots.reject(at, self.operation_id, each["ordinal"], each["result"])
        _admit(at, self)


def _admit(at: Applying, batch: FreezeBatch | DecideBatch) -> None:
    """Begin the members that may: all that are queued, or the first of them."""
    while (following := at.tx.maybe("agent_member_next", batch_id=batch.operation_id)) is not None:
        slots.admit(at, following, batch.agent_task_id, dispatch=batch.dispatch)
        if batch.serial:
            break


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeBatch(OfOperation):
    """A batch's results have had their effect on their task; once."""

    def apply(self, at: Applying) -> None:
        """Note it, of the decision and of each member's operation."""
        count = at.tx.run("agent_batch_consume", batch_id=self.operation_id)
        moved(count, "batch", self.operation_id, "not settled, or consumed", "consumed")
        for member in at.tx.all("agent_members", batch_id=self.operation_id):
            if member["operation_id"] is not None:
                at.tx.run("agent_operation_consume", operation_id=member["operation_id"], now_us=at.now_us)
        at.tx.run("agent_operation_consume", operation_id=self.operation_id, now_us=at.now_us)
        at.event("batch.consumed", batch_id=self.operation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consume(OfOperation):
    """What came of an operation without a batch has had its effect on its task."""

    def apply(self, at: Applying) -> None:
        """Note it."""
        operation = operation_of(at.tx, self.operation_id)
        moved(int(operation.state.ended), "operation", self.operation_id, operation.state, "consumed")
        at.tx.run("agent_operation_consume", operation_id=self.operation_id, now_us=at.now_us)


def close_batches(at: Applying, agent_run_id: str) -> None:
    """An agent run ends: what its decisions have asked for has a result each, in its history (rules A8 and E28).

    What has ended is told as it ended; what nobody knows as that; what had not begun as cancelled.
    """
    for batch in at.tx.all("agent_batches_live", root_id=at.root_id):
        task_id = batch["agent_task_id"]
        if task_of(at.tx, task_id).agent_run_id != agent_run_id:
            continue
        batch_id = batch["batch_id"]
        for row in at.tx.all("agent_members", batch_id=batch_id):
            if row["operation_id"] is not None:
                slots.settle(at, operation_of(at.tx, row["operation_id"]))
            elif row["state"] != MemberState.SETTLED:
                slots.reject(at, batch_id, row["ordinal"], result_message(row["call_id"], row["name"], None))
        found = batch_of(at.tx, batch_id, {})
        assert found is not None, "it was read above"
        append(at, task_id, result_entries(found))
        ConsumeBatch(operation_id=batch_id).apply(at)


def result_entries(batch: BatchRow) -> tuple[dict[str, Any], ...]:
    """The results of a batch that is settled, as they are added to a context."""
    return tuple(
        entry("result", each.result or {}, operation_id=batch.batch_id, ordinal=each.ordinal) for each in batch.members
    )


def batch_of(tx: Tx, batch_id: str, operations: Mapping[str, Operation]) -> BatchRow | None:
    """A batch with its members; None if there is none. `operations`: those that were read already, by id."""
    row = tx.maybe("agent_batch_get", batch_id=batch_id)
    if row is None:
        return None
    members = tuple(_member(tx, each, operations) for each in tx.all("agent_members", batch_id=batch_id))
    return BatchRow(batch_id=batch_id, state=BatchState(row["state"]), members=members)


def _member(tx: Tx, row: Row, operations: Mapping[str, Operation]) -> Member:
    outcome, operation_id = None, row["operation_id"]
    if operation_id is not None:
        outcome = (operations.get(operation_id) or operation_of(tx, operation_id)).outcome
    is_settled = row["state"] == MemberState.SETTLED
    return Member(
        ordinal=row["ordinal"],
        call_id=row["call_id"],
        name=row["name"],
        state=MemberState(row["state"]),
        operation_id=row["operation_id"],
        outcome=outcome,
        result=member_result(row, outcome) if is_settled else None,
    )
