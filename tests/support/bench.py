"""A bench for the engine's core: a database, workers on it, commits made by hand, and what came of them, as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langgraph_ext.database import Tx, open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.engine.applying import Change, Ref
from langgraph_ext.engine.commits import Committed, Held, RuntimeCommit, commit
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.rows import AgentTask, Operation, Ticket, Tree, read_tree
from langgraph_ext.engine.starting import start
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.working import Work
from langgraph_ext.ledger import control, leases
from langgraph_ext.ledger.agent_threads import thread_of
from langgraph_ext.ledger.leases import DEFAULT_TTL_US
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.renewal import Renewal
from langgraph_ext.testing import FixedClock, fixed_ids
from tests.support.agents import RELEASE, Stub, entry_of

__all__ = ["Bench", "Once", "Strike", "StrikingStore", "Traces", "commit_of", "opened", "raises", "traced"]


Strike = Callable[[RuntimeCommit, str], None]
"""What happens beside a commit: it is given the commit, and `before` or `after`; it does something, or raises."""


class StrikingStore(Store):
    """A store in which something may happen beside a commit."""

    strikes: list[Strike]

    async def commit(self, wanted: RuntimeCommit, *rest: Any, **more: Any) -> Committed:
        for strike in self.strikes:
            strike(wanted, "before")
        committed = await super().commit(wanted, *rest, **more)
        for strike in self.strikes:
            strike(wanted, "after")
        return committed


class Once:
    """A strike at the first commit of a kind, or the nth.

    Args:
        where: `before` or `after` it.
        kind: What its key begins with.
        act: What happens.
        at: Which of them.
    """

    def __init__(self, where: str, kind: str, act: Callable[[], Any], *, at: int = 1) -> None:
        self.where, self.kind, self.act, self.left = where, kind, act, at

    def __call__(self, wanted: RuntimeCommit, where: str) -> None:
        if where == self.where and wanted.key.startswith(self.kind):
            self.left -= 1
            if self.left == 0:
                self.act()


class Bench:
    """One database file, with the engine's core on it and nothing above.

    Args:
        path: The file.
        store: The class of its store.
        connection: The class of its write connection.
        clock_us: Its clock; by default one that stands still.
        ids: Its source of ids.
    """

    def __init__(
        self,
        path: str,
        *,
        store: type[StrikingStore] = StrikingStore,
        connection: type[WriteConnection] = WriteConnection,
        clock_us: FixedClock | None = None,
        ids: Callable[[], str] | None = None,
    ) -> None:
        self.path = path
        self.clock = clock_us or FixedClock()
        self.database = open_database(path, fsync="normal", clock_us=self.clock, connection=connection)
        self.store = store(self.database, clock_us=self.clock, ids=ids or fixed_ids())
        self.renewal = Renewal(self.database)
        self.store.strikes = []
        self._commits = 0

    def close(self) -> None:
        self.renewal.close()
        self.database.close()

    # -- what an engine does

    def start(self, behaviour: str = "echo", input: Any = None, *, key: str | None = None, **entry: Any) -> str:
        """Begin a root agent run."""
        wanted = entry_of(behaviour, **entry)
        return self.database.transact(start, wanted, input, key=key, now_us=self.clock(), ids=self.store.ids)

    def hold(self, root_id: str, who: str = "worker") -> Held:
        """Take a root's lease; another owner gets it once the one before has expired."""
        lease = leases.take(self.database, thread_id=thread_of(root_id), owner=Owner.here(who))
        return Held(lease.thread_id, lease.epoch)

    def take_over(self, root_id: str, who: str = "another") -> Held:
        """As `hold`, of a lease whose owner says nothing any more."""
        self.clock.advance(us=DEFAULT_TTL_US + 1)
        return self.hold(root_id, who)

    async def drive(self, root_id: str, program: Program | None = None, who: str = "worker") -> Tree:
        """Drive a root as a worker does, with a lease from its beginning to its end."""
        return await self.work(root_id, program, who).drive()

    def work(self, root_id: str, program: Program | None = None, who: str = "worker") -> Work:
        """A worker's stretch with a root."""
        return Work(self.store, self.renewal, Owner.here(who), program or Stub(), RELEASE, root_id)

    def driver(self, root_id: str, held: Held, program: Program | None = None, **options: Any) -> Driver:
        """A driver under a lease that is held already."""
        return Driver(self.store, program or Stub(), RELEASE, root_id, held, **options)

    def commit(
        self,
        held: Held,
        *changes: Change,
        key: str | None = None,
        expected: Mapping[Ref, int] | None = None,
        then: RuntimeCommit | None = None,
    ) -> Committed:
        """Make a commit by hand, by default under a key of its own."""
        wanted = commit_of(held, *changes, key=key or self._next_key(), expected=expected)
        return self.database.transact(commit, wanted, held, now_us=self.clock(), ids=self.store.ids, then=then)

    def stop(self, root_id: str, reason: str = "enough") -> None:
        """Ask a root to end, as `ledger.cancel` does."""
        self.database.transact(control.ask_to_cancel(root_id, "now", reason, self.clock()))

    def strike(self, where: str, kind: str, act: Callable[[], Any], *, at: int = 1) -> None:
        """Let something happen before or after the nth commit whose key begins so."""
        self.store.strikes.append(Once(where, kind, act, at=at))

    # -- what is stored

    def tree(self, root_id: str) -> Tree:
        return self.database.read(read_tree, root_id)

    def task(self, root_id: str) -> AgentTask:
        """A root's only task."""
        (found,) = self.tree(root_id).tasks.values()
        return found

    def operation(self, root_id: str, purpose: str = "business-model:1") -> Operation:
        (found,) = (each for each in self.tree(root_id).operations.values() if each.purpose == purpose)
        return found

    def ticket(self, root_id: str, purpose: str = "business-model:1") -> Ticket:
        return self.tree(root_id).tickets[self.operation(root_id, purpose).operation_id]

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query of one's own finds."""
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def write(self, sql: str, *values: Any) -> None:
        """Change rows behind everybody's back."""
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                connection.execute(sql, values)
        finally:
            connection.close()

    def commit_keys(self, kind: str = "") -> list[str]:
        """The keys of the commits of one kind, in their order."""
        found = self.all("SELECT commit_key FROM agent_commit ORDER BY rowid")
        return [key for (key,) in found if key.startswith(kind)]

    def events(self, name: str = "%") -> list[str]:
        """The names of events, in their order."""
        found = self.all("SELECT event FROM checkpoint_log WHERE event LIKE ? ORDER BY seq", name)
        return [event for (event,) in found]

    def everything(self) -> list[Any]:
        """All rows of the engine's tables: the same before and after what writes nothing."""
        tables = ("run", "task", "operation", "call", "ticket", "commit")
        return [self.all(f"SELECT * FROM agent_{table} ORDER BY 1, 2") for table in tables] + [self.events()]

    def child(
        self, root_id: str, agent_run_id: str, *, loop_limit: int = 100, behaviour: str = "rounds", seq: int = 1
    ) -> str:
        """An agent run below a root, with a ready task of its own; returns the task."""
        agent_task_id = f"task-of-{agent_run_id}"
        self.database.transact(
            _insert_child, root_id, agent_run_id, agent_task_id, behaviour, loop_limit, seq, self.clock()
        )
        return agent_task_id

    def _next_key(self) -> str:
        self._commits += 1
        return f"by-hand:{self._commits}"


def commit_of(held: Held, *changes: Change, key: str, expected: Mapping[Ref, int] | None = None) -> RuntimeCommit:
    """A commit of the root that a lease is of."""
    root_id = held.thread_id.removeprefix(thread_of(""))
    return RuntimeCommit(root_id=root_id, key=key, changes=changes, expected=expected or {})


def _insert_child(
    tx: Tx,
    root_id: str,
    agent_run_id: str,
    agent_task_id: str,
    behaviour: str,
    loop_limit: int,
    ready_seq: int,
    now_us: int,
) -> None:
    root = tx.one("agent_run_get", agent_run_id=root_id)
    below = {"root_id": root_id, "agent_run_id": agent_run_id, "input": b"{}", "now_us": now_us}
    tx.run(
        "agent_run_insert",
        **below,
        parent_id=root_id,
        parent_operation=None,
        run=root["run"],
        thread_id=root["thread_id"],
        key=None,
        release=root["release"],
        input_digest="",
        loop_limit=loop_limit,
        deadline_us=None,
        limits=None,
    )
    named = {"agent_task_id": agent_task_id, "role": "react", "behaviour": behaviour, "version": 1}
    tx.run("agent_task_insert", **below, **named, ready_seq=ready_seq, context=None, context_from=0)


class TracedTx(Tx):
    """A transaction that notes its queries: `(verb, name, parameters)`."""

    __slots__ = ("trace",)

    def __init__(self, tx: Tx, trace: list[tuple[str, str, dict[str, object]]]) -> None:
        super().__init__(tx._execute, tx._queries, repeated=tx.repeated, run_apart=tx._run_apart)
        self.trace = trace

    def all(self, name: str, /, **params: object) -> Any:
        self.trace.append(("all", name, params))
        return super().all(name, **params)

    def maybe(self, name: str, /, **params: object) -> Any:
        self.trace.append(("get", name, params))
        return super().maybe(name, **params)

    def run(self, name: str, /, **params: object) -> int:
        self.trace.append(("run", name, params))
        return super().run(name, **params)


Traces = list[tuple[str, list[tuple[str, str, dict[str, object]]], tuple[Any, ...]]]


def traced(traces: Traces) -> type[StrikingStore]:
    """A class of stores that note each transaction: its function's name, its queries, and its arguments."""

    class TracedStore(StrikingStore):
        async def transact(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
            trace: list[tuple[str, str, dict[str, object]]] = []
            traces.append((fn.__name__, trace, args))

            def run(tx: Tx) -> Any:
                trace.clear()  # it may be run again
                return fn(TracedTx(tx, trace), *args, **kwargs)

            return await self.database.atransact(run)

    return TracedStore


def raises(error: Exception) -> Callable[[], None]:
    """An act that raises."""

    def act() -> None:
        raise error

    return act


@contextmanager
def opened(path: str, **options: Any) -> Iterator[Bench]:
    """A bench that is closed at the end."""
    bench = Bench(path, **options)
    try:
        yield bench
    finally:
        bench.close()
