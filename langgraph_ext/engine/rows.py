"""Rows: what the engine keeps of a tree, as a transaction read it. Values are plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState, TicketState
from langgraph_ext.errors import NotFound
from langgraph_ext.ledger.agent_threads import thread_of
from langgraph_ext.ledger.records import CancelMode

__all__ = [
    "AgentRun",
    "AgentTask",
    "Operation",
    "Ticket",
    "Tree",
    "decoded",
    "encoded",
    "read_root",
    "read_tree",
]


def encoded(value: Any, what: str) -> bytes:
    """A value as it is stored.

    Raises:
        TypeError: JSON cannot hold it.
    """
    return canonical.encode_plain(value, where=what)


def decoded(data: bytes | str | None) -> Any:
    """What `encoded` was given; None for null."""
    return None if data is None else canonical.decode(data.encode() if isinstance(data, str) else data)


class _Members(dict[Any, Any]):
    """What an enumeration has for each value; an enumeration itself takes its time to find a member."""

    def __init__(self, kind: Callable[[Any], Any]) -> None:
        self._kind = kind

    def __missing__(self, value: Any) -> Any:
        found = self[value] = self._kind(value)
        return found


class _Reader:
    """Reads the fields of a record from a row: columns by their names, `input` for `input_data`.

    Args:
        names: The fields.
        json: Those that are JSON.
        states: The enumerations of others.
    """

    def __init__(self, names: Sequence[str], *json: str, **states: Callable[[Any], Any]) -> None:
        self._columns = [name.removesuffix("_data") for name in names]
        members = {name: _Members(kind).__getitem__ for name, kind in states.items()}
        self._reads = [(names.index(name), read) for name, read in (dict.fromkeys(json, decoded) | members).items()]
        self._picks: dict[tuple[str, ...], Callable[[Row], tuple[Any, ...]]] = {}
        """By the columns that a query gives: what takes these by position. For a name, a row looks through them all."""

    def __call__(self, row: Row) -> list[Any]:
        given = tuple(row.keys())
        pick = self._picks.get(given)
        if pick is None:
            pick = self._picks[given] = itemgetter(*map(given.index, self._columns))
        values = list(pick(row))
        for place, read in self._reads:
            if (value := values[place]) is not None:
                values[place] = read(value)
        return values


class AgentRun(NamedTuple):
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
    """The most that it may use, by dimension, and whether a person is asked there (limits.py); None: any amount."""
    deadline_us: int | None
    paused_us: int | None
    """Since when nothing but a person is waited for; its clocks stand."""
    revision: int
    created_us: int
    ended_us: int | None

    @classmethod
    def from_row(cls, row: Row) -> AgentRun:
        """The one that a row holds."""
        return cls._make(_RUN(row))

    @property
    def input(self) -> Any:
        """What it was started with."""
        return decoded(self.input_data)

    @property
    def output(self) -> Any:
        """What it has come to; None unless it succeeded."""
        return decoded(self.output_data)

    @property
    def asks(self) -> bool:
        """Whether a person is asked at its limits, which else end it."""
        return bool(self.limits) and self.limits.get("on_limit") == "ask"

    @property
    def is_root(self) -> bool:
        """Whether it has no parent."""
        return self.parent_id is None

    def is_late(self, now_us: int) -> bool:
        """Whether its active time is over."""
        return self.deadline_us is not None and self.paused_us is None and now_us >= self.deadline_us


class AgentTask(NamedTuple):
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
    context: str | None
    """The task whose history it goes on with; None: its own."""
    context_from: int
    """The last row of that before its own."""

    @classmethod
    def from_row(cls, row: Row) -> AgentTask:
        """The one that a row holds."""
        return cls._make(_TASK(row))

    @property
    def context_id(self) -> str:
        """Under which its history is stored."""
        return self.context or self.agent_task_id

    @property
    def input(self) -> Any:
        """What it begins with."""
        return decoded(self.input_data)


class Operation(NamedTuple):
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

    @classmethod
    def from_row(cls, row: Row) -> Operation:
        """The one that a row holds."""
        return cls._make(_OPERATION(row))

    @property
    def is_in_doubt(self) -> bool:
        """Whether nobody knows how its call ended, and that is to be found out."""
        return self.state is OperationState.UNKNOWN and self.on_unknown in ("ask", "reconcile")


class Ticket(NamedTuple):
    """One unit of the loop limit, for one operation."""

    operation_id: str
    agent_run_id: str
    root_id: str
    state: TicketState
    reason: str | None
    requested_seq: int

    @classmethod
    def from_row(cls, row: Row) -> Ticket:
        """The one that a row holds."""
        return cls._make(_TICKET(row))


_RUN = _Reader(AgentRun._fields, "limits", status=AgentStatus)
_TASK = _Reader(AgentTask._fields, "continuation", "condition", "output", "error", state=TaskState)
_OPERATION = _Reader(Operation._fields, "request", "before", "raw", "after", "outcome", state=OperationState)
_TICKET = _Reader(Ticket._fields, state=TicketState)


class Stop(NamedTuple):
    """What somebody has asked of a tree that is to end."""

    reason: str
    """Empty if they did not say."""
    mode: CancelMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A root agent run and what belongs to it, at one read point: of its operations, those that are not consumed."""

    root: AgentRun
    runs: dict[str, AgentRun]
    tasks: dict[str, AgentTask]
    operations: dict[str, Operation]
    tickets: dict[str, Ticket]
    """By operation."""
    stop: Stop | None
    """That it is to stop, if somebody has asked for it, and nobody has seen to that."""
    held: frozenset[str] = frozenset()
    """Agent runs in which nothing more is called before a person has decided on a limit."""

    def holds(self, operation: Operation) -> bool:
        """Whether an operation is in one of these, or below it."""
        return bool(self.held & {operation.agent_run_id, self.root.agent_run_id})


def first_task(tx: Tx, root_id: str) -> AgentTask:
    """The task that a root has begun with."""
    tasks = map(AgentTask.from_row, tx.all("agent_tasks_of_tree", root_id=root_id))
    return next(each for each in tasks if each.agent_run_id == root_id and each.parent_operation is None)


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
    asked = tx.all("agent_requests_open", root_id=root_id) if any(each.asks for each in runs) else ()
    return Tree(
        root=root,
        runs={each.agent_run_id: each for each in runs},
        tasks={each.agent_task_id: each for each in tasks},
        operations={each.operation_id: each for each in operations},
        tickets={each.operation_id: each for each in held},
        stop=_stop(tx, root),
        held=frozenset(row["agent_run_id"] for row in asked if row["kind"] == "limit"),
    )


def _stop(tx: Tx, root: AgentRun) -> Stop | None:
    """A cancel that nobody has seen to."""
    asked = tx.maybe("inbox_waiting", thread_id=thread_of(root.agent_run_id), run=root.run, root_id=None)
    return None if asked is None else Stop(asked["reason"] or "", CancelMode(asked["mode"]))
