"""What must hold: the last paragraph of the engine's design, looked at after each transaction and when all is over.

It knows rows and calls, and nothing of the code that wrote them. What it finds is kept and ends the seed; it is never
raised where a worker could take it for an error of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.commits import RuntimeCommit, commit
from langgraph_ext.ledger.owners import Owner
from tests.support.simulated.histories import Histories
from tests.support.simulated.locks import Locking, Ref, order_of
from tests.support.simulated.loop import PROCESS

__all__ = ["Witness", "calls_of"]

_TABLES = {
    "run": ("agent_runs_of_tree", "agent_run_id", "status"),
    "task": ("agent_tasks_of_tree", "agent_task_id", "state"),
    "operation": ("agent_operations_of_tree", "operation_id", "state"),
    "ticket": ("agent_tickets_of_tree", "operation_id", "state"),
}

_TERMINAL = {
    "run": {"succeeded", "failed", "cancelled", "exhausted"},
    "task": {"succeeded", "failed", "cancelled"},
    "operation": {"completed", "cancelled", "unknown"},
    "ticket": {"consumed", "released"},
}

_ONCE = {
    "run": ("reason", "output", "deadline_us", "input_digest", "ended_us"),
    "task": ("output", "error", "behaviour", "ended_us"),
    "operation": ("purpose", "idempotency_key", "before", "raw", "after", "outcome", "ended_us"),
    "ticket": ("requested_seq",),
}
"""Columns that never change once they hold something."""

_BEGUN = {"ready", "dispatched"}

_LEVELS = {"agent_run": (1, "agent_run_id"), "agent_task": (2, "agent_task_id"), "agent_operation": (3, "operation_id")}
_LEVELS |= {"agent_ticket": (3, "operation_id"), "agent_call": (3, "operation_id")}

Snapshot = dict[tuple[str, str], dict[str, Any]]


class _NotingTx:
    """A transaction whose written rows are noted, in order."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.written: list[Ref] = []
        self.all, self.maybe, self.one, self.apart = tx.all, tx.maybe, tx.one, tx.apart
        self.repeated, self.sealer = tx.repeated, tx.sealer

    def run(self, name: str, /, **params: Any) -> int:
        table = "_".join(name.split("_")[:2])
        if table in _LEVELS and not name.endswith(("_insert", "_open")):
            level, column = _LEVELS[table]
            self.written.append((level, params.get(column) or params["root_id"]))
        return self._tx.run(name, **params)


class Witness:
    """Sees every transaction and every call outside, of all processes."""

    def __init__(self, rng: Random) -> None:
        self.found: list[str] = []
        self.keys: list[str] = []
        """Of the commits, in order."""
        self._locking = Locking(rng)
        self._before: dict[str, Snapshot] = {}
        self._called: dict[tuple[str, int], int] = {}
        self.acted: Counter[str] = Counter()
        """How often each tool call was done outside, by operation."""
        self._flying: set[tuple[str, int]] = set()
        self._to_be_made: dict[str, tuple[str, int]] = {}
        """Calls on record, by operation: of which tree, and by which process they are about to be made."""
        self._histories = Histories(self.say)
        self._with_history: set[str] = set()

    def say(self, what: str) -> None:
        """Something does not hold."""
        self.found.append(what)

    def watch_history(self, root_id: str) -> None:
        """A tree is one whose tasks keep histories."""
        self._with_history.add(root_id)

    # -- transactions

    @contextmanager
    def in_flight(self, wanted: RuntimeCommit) -> Iterator[None]:
        """A commit is asked for, until it is answered."""
        self._locking.takes_off(id(wanted))
        try:
            yield
        finally:
            self._locking.lands(id(wanted))

    def watched(self, fn: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
        """A transaction function that is looked at behind its last write, in the same transaction."""
        if fn is not commit:
            return fn
        wanted = args[0]

        def looked_at(tx: Tx, *args: Any, **kwargs: Any) -> Any:
            noting = _NotingTx(tx)
            done = fn(noting, *args, **kwargs)
            if not done.again:
                self._look(tx, wanted, noting.written)
            return done

        return looked_at

    def _look(self, tx: Tx, wanted: RuntimeCommit, written: Sequence[Ref]) -> None:
        waits = self._locking.written(id(wanted), order_of(wanted.locks, written))
        if waits is not None:
            self.say(f"{wanted.key}: a wait-for circle over {waits}")
        self.see(tx, wanted.root_id, wanted.key)

    def see(self, tx: Tx, root_id: str, key: str) -> None:
        """Compare a tree with what it was when it was seen last."""
        self.keys.append(key)
        now = _snapshot(tx, root_id)
        before = self._before.get(root_id, {})
        self._before[root_id] = now
        for (kind, row_id), row in now.items():
            was = before.get((kind, row_id))
            self._move(key, kind, row_id, was, row)
            if kind == "operation" and row["tries"] > (0 if was is None else was["tries"]):
                self._to_be_made[row_id] = root_id, PROCESS.get()
        for kind, row_id in before.keys() - now.keys():
            self.say(f"{key}: {kind} {row_id} is gone")
        self._gate(key, before, now)
        self._count(key, now)
        if root_id in self._with_history:
            self._histories.see(tx, root_id, key)

    def status_of(self, root_id: str) -> str:
        """Where a tree stood when it was seen last."""
        return str(self._before[root_id]["run", root_id]["status"])

    def _move(self, key: str, kind: str, row_id: str, before: dict[str, Any] | None, now: dict[str, Any]) -> None:
        """A row goes forward only."""
        if before is None:
            return
        state = _TABLES[kind][2]
        if kind == "operation" and before["state"] == "unknown" and before["on_unknown"] in ("ask", "reconcile"):
            return  # until somebody finds out what came of it
        if before[state] in _TERMINAL[kind] and now[state] != before[state]:
            self.say(f"{key}: {kind} {row_id} was {before[state]} and is {now[state]}")
        for column in _ONCE[kind]:
            is_kept = now[column] == before[column] or _waited(key, column, before, now)
            if before[column] is not None and not is_kept:
                self.say(f"{key}: {column} of {kind} {row_id} was {before[column]!r} and is {now[column]!r}")
        if kind == "operation":
            if before["state"] not in ("prepared",) and now["request"] != before["request"]:
                self.say(f"{key}: the frozen request of {row_id} has changed")
            if now["tries"] < before["tries"] or (now["tries"] > before["tries"] and before["raw"] is not None):
                self.say(f"{key}: {row_id} went from try {before['tries']} to {now['tries']}")
        if kind == "run" and now["consumed"] < before["consumed"]:
            self.say(f"{key}: consumed of {row_id} has gone down")

    def _gate(self, key: str, before: Snapshot, now: Snapshot) -> None:
        """Nothing begins where the gate was shut (rule E28)."""
        for (kind, row_id), row in now.items():
            if kind not in ("operation", "task"):
                continue
            run = before.get(("run", row["agent_run_id"]))
            was = before.get((kind, row_id))
            if run is None or run["status"] == "running" or (was is not None and was["state"] == row["state"]):
                continue
            if was is None or (kind == "operation" and row["state"] in _BEGUN) or row["state"] == "running":
                self.say(f"{key}: {kind} {row_id} has become {row['state']} while its agent run was {run['status']}")

    def _count(self, key: str, now: Snapshot) -> None:
        """Tickets are what is counted, on both levels (rule E24)."""
        tickets = [row for (kind, _), row in now.items() if kind == "ticket"]
        for run in (row for (kind, _), row in now.items() if kind == "run"):
            own = [each for each in tickets if run["parent_id"] is None or each["agent_run_id"] == run["agent_run_id"]]
            for state in ("consumed", "reserved"):
                if run[state] != (there := sum(each["state"] == state for each in own)):
                    self.say(f"{key}: {run['agent_run_id']} counts {run[state]} {state}, and there are {there}")
            if run["consumed"] + run["reserved"] > run["loop_limit"]:
                self.say(f"{key}: more tickets than the limit of {run['agent_run_id']}")

    # -- outside calls

    def takes_off(self, operation_id: str, process: int) -> None:
        """A process makes a call."""
        self._to_be_made.pop(operation_id, None)
        self._flying.add((operation_id, process))

    def lands(self, operation_id: str, process: int) -> None:
        """Its call has ended."""
        self._flying.discard((operation_id, process))

    def died(self, process: int) -> None:
        """Whatever it called, nothing more comes of it."""
        self._flying = {each for each in self._flying if each[1] != process}
        for root_id in {root_id for root_id, _ in self._to_be_made.values()}:
            self.has_left(root_id, process)

    def has_left(self, root_id: str, process: int) -> None:
        """A process drives a tree no more: what it has not called by now, it never will."""
        self._to_be_made = {key: each for key, each in self._to_be_made.items() if each != (root_id, process)}

    def is_flying(self, operation_id: str) -> bool:
        """Whether some process makes a call of it, or is about to."""
        return operation_id in self._to_be_made or any(each == operation_id for each, _ in self._flying)

    def act(self, operation_id: str, *, may_repeat: bool) -> None:
        """A tool does what it does outside."""
        self.acted[operation_id] += 1
        if not may_repeat and self.acted[operation_id] > 1:
            self.say(f"the tool of {operation_id} may act once, and has acted {self.acted[operation_id]} times")

    def called(self, tx: Tx, operation_id: str, number: int, policy: str) -> None:
        """A call is made: it is on record by now, and is made once."""
        times = self._called[operation_id, number] = self._called.get((operation_id, number), 0) + 1
        calls = {row["number"] for row in calls_of(tx, operation_id)}
        if number not in calls:
            self.say(f"call {number} of {operation_id} is made, and is not on record")
        if times > 1:
            self.say(f"{policy} operation {operation_id}: call {number} is made {times} times")

    def asked_hooks(self, tx: Tx, operation_id: str, which: str, process: int) -> None:
        """Hooks are asked: their decision is not on record, unless this process has lost the tree meanwhile."""
        row = tx.one("agent_operation_get", operation_id=operation_id)
        run = tx.one("agent_run_get", agent_run_id=row["root_id"])
        lease = tx.one("lease_get", thread_id=run["thread_id"])
        holds = lease["released_us"] is None and Owner.from_text(lease["owner"]).pid == process
        skipped = "skipped" in (row[which] or "")  # the scope was closed while they were about to be asked
        if holds and row[which] is not None and not skipped:
            self.say(f"the {which}-hooks of {operation_id} are asked, and had decided")

    def went_on(self, tx: Tx, root_id: str, key: str) -> None:
        """A behaviour goes on behind a yield: what it yielded is committed (rule E6)."""
        if tx.maybe("agent_commit_get", root_id=root_id, commit_key=key) is None:
            self.say(f"a behaviour went past a yield, and {key} is not committed")


def _waited(key: str, column: str, before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether a deadline is later because somebody was waited for, who has spoken with this commit."""
    has_spoken = column == "deadline_us" and key.startswith(("resolve:", "reconciled:"))
    return has_spoken and before[column] is not None and before[column] < now[column]


def calls_of(tx: Tx, operation_id: str) -> list[Row]:
    """The calls of an operation, in order; the engine itself never asks for them."""
    query = "SELECT * FROM agent_call WHERE operation_id = :operation_id ORDER BY number"
    return tx._execute(query, {"operation_id": operation_id}).fetchall()


def _snapshot(tx: Tx, root_id: str) -> Snapshot:
    found: Snapshot = {}
    for kind, (query, key, _) in _TABLES.items():
        for row in tx.all(query, root_id=root_id):
            found[kind, row[key]] = _plain(row)
    return found


def _plain(row: Row) -> dict[str, Any]:
    return dict(zip(row.keys(), row, strict=True))  # type: ignore[attr-defined]  # sqlite3's
