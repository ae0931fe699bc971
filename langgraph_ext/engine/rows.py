"""Rows: what the engine keeps of a tree, as a transaction read it. Values are plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState, TicketState
from langgraph_ext.errors import NotFound

__all__ = ["AgentRun", "AgentTask", "Operation", "Ticket", "Tree", "decoded", "encoded", "read_root", "read_tree"]


def encoded(value: Any, what: str) -> bytes:
    """A value as it is stored.

    Raises:
        TypeError: JSON cannot hold it.
    """
    return canonical.encode_plain(value, where=what)


def decoded(data: bytes | str | None) -> Any:
    """What `encoded` was given; None for null."""
    return None if data is None else canonical.decode(data.encode() if isinstance(data, str) else data)


class _Record:
    """A frozen dataclass that is made of a row: columns by their names, JSON decoded, states as their enumerations."""

    _json: ClassVar[frozenset[str]] = frozenset()
    _states: ClassVar[dict[str, Any]] = {}

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The record that a row holds."""
        readers = _readers(cls)  # type: ignore[arg-type]  # a class can be hashed
        return cls(**{name: row[column] if read is None else read(row[column]) for name, column, read in readers})


@cache
def _readers(cls: type[_Record]) -> tuple[tuple[str, str, Callable[[Any], Any] | None], ...]:
    """How each field is made of its column, `input_data` of `input`; None: as it is."""
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # a dataclass, all of them
    return tuple(
        (name, name.removesuffix("_data"), decoded if name in cls._json else cls._states.get(name)) for name in names
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun(_Record):
    """One invocation of a release."""

    agent_run_id: str
    root_id: str
    parent_id: str | None
    parent_operation: str | None
    run: int
    """The ledger's run; its number."""
    thread_id: str
    """Under whose lease it is driven."""
    key: str | None
    release: str
    """The digest of its release."""
    input_digest: str
    input_data: bytes
    """Canonical JSON; decoded by who needs it, as this is read at every step."""
    status: AgentStatus
    reason: str | None
    """Code of what closed it."""
    message: str | None
    output_data: bytes | None
    loop_limit: int
    consumed: int
    reserved: int
    model_calls: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    limits: Any
    """The most that it may use, by dimension (limits.py); None: any amount."""
    deadline_us: int | None
    paused_us: int | None
    """Since when nothing but a person is waited for; its clocks stand."""
    revision: int
    created_us: int
    ended_us: int | None

    _json = frozenset({"limits"})
    _states = {"status": AgentStatus}  # noqa: RUF012 - a ClassVar of the base

    @property
    def input(self) -> Any:
        """What it was started with."""
        return decoded(self.input_data)

    @property
    def output(self) -> Any:
        """What it has come to; None unless it succeeded."""
        return decoded(self.output_data)

    @property
    def is_root(self) -> bool:
        """Whether it has no parent."""
        return self.parent_id is None

    def is_late(self, now_us: int) -> bool:
        """Whether its active time is over."""
        return self.deadline_us is not None and self.paused_us is None and now_us >= self.deadline_us


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask(_Record):
    """The durable unit that a role runs as."""

    agent_task_id: str
    agent_run_id: str
    root_id: str
    parent_operation: str | None
    """The operation that started it; None in the first task of its agent run."""
    role: str
    behaviour: str
    version: int
    state: TaskState
    ready_seq: int
    epoch: int | None
    revision: int
    input_data: bytes
    """As of an agent run."""
    continuation: Any
    condition: Any
    output: Any
    error: Any

    _json = frozenset({"continuation", "condition", "output", "error"})
    _states = {"state": TaskState}  # noqa: RUF012

    @property
    def input(self) -> Any:
        """What it begins with."""
        return decoded(self.input_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(_Record):
    """One logical call of a model or a tool."""

    operation_id: str
    agent_task_id: str
    agent_run_id: str
    root_id: str
    purpose: str
    kind: str
    name: str
    policy: str
    idempotency_key: str
    state: OperationState
    revision: int
    tries: int
    request: Any
    before: Any
    raw: Any
    after: Any
    outcome: Any
    on_unknown: str | None
    """What is done when nobody knows how its call ended: `ask`, `error` or `reconcile`; None: what waits is told."""

    _json = frozenset({"request", "before", "raw", "after", "outcome"})
    _states = {"state": OperationState}  # noqa: RUF012

    @property
    def is_in_doubt(self) -> bool:
        """Whether nobody knows how its call ended, and that is to be found out."""
        return self.state is OperationState.UNKNOWN and self.on_unknown in ("ask", "reconcile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket(_Record):
    """One unit of the loop limit, for one operation."""

    operation_id: str
    agent_run_id: str
    root_id: str
    state: TicketState
    reason: str | None
    requested_seq: int

    _states = {"state": TicketState}  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A root agent run and what belongs to it, at one read point: of its operations, those that are not consumed."""

    root: AgentRun
    runs: dict[str, AgentRun]
    tasks: dict[str, AgentTask]
    operations: dict[str, Operation]
    tickets: dict[str, Ticket]
    """By operation."""
    stop: str | None
    """Why it is to stop, if somebody has asked for that; "" if they did not say."""


def read_root(tx: Tx, root_id: str) -> AgentRun:
    """Read the root of a tree, and nothing below it.

    Raises:
        NotFound: There is no such root (`agent_run_not_found`).
    """
    row = tx.maybe("agent_run_get", agent_run_id=root_id)
    if row is None or row["root_id"] != root_id:
        raise _no_root(root_id)
    return AgentRun.from_row(row)


def _no_root(root_id: str) -> NotFound:
    return NotFound(
        f"agent run {root_id!r} is not on record; list them with engine.runs()",
        code="agent_run_not_found",
        details={"agent_run_id": root_id},
    )


def read_tree(tx: Tx, root_id: str, *, whole: bool = True) -> Tree:
    """Read a tree.

    If not whole, as a driver goes by it: without tickets, of which there are as many as decisions, and without the
    contents of operations that have ended.

    Raises:
        NotFound: There is no such root (`agent_run_not_found`).
    """
    runs = [AgentRun.from_row(row) for row in tx.all("agent_runs_of_tree", root_id=root_id)]
    root = next((each for each in runs if each.is_root), None)
    if root is None:
        raise _no_root(root_id)
    tasks = map(AgentTask.from_row, tx.all("agent_tasks_of_tree", root_id=root_id))
    of_tree = {"root_id": root_id}
    rows = tx.all("agent_operations_live", **of_tree) if whole else tx.all("agent_operations_driven", **of_tree)
    operations = map(Operation.from_row, rows)
    held = map(Ticket.from_row, tx.all("agent_tickets_of_tree", root_id=root_id)) if whole else ()
    return Tree(
        root=root,
        runs={each.agent_run_id: each for each in runs},
        tasks={each.agent_task_id: each for each in tasks},
        operations={each.operation_id: each for each in operations},
        tickets={each.operation_id: each for each in held},
        stop=_stop(tx, root),
    )


def _stop(tx: Tx, root: AgentRun) -> str | None:
    """A cancel that nobody has seen to."""
    asked = tx.maybe("inbox_waiting", thread_id=root.thread_id, run=root.run, root_id=None)
    return None if asked is None else asked["reason"] or ""
