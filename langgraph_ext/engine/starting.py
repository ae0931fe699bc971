"""Starting: an agent run and its first task, under the caller's key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.engine.applying import Applying
from langgraph_ext.engine.rows import encoded
from langgraph_ext.engine.visiting import Visit
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import runs, slices
from langgraph_ext.ledger.agent_threads import thread_of

__all__ = ["Continues", "Entry", "start"]


class Entry(NamedTuple):
    """How a release's runs begin."""

    release: str
    """Its digest."""
    descriptor: bytes
    role: str
    """The role of the first task, and who runs it."""
    behaviour: str
    version: int
    loop_limit: int
    run_us: int | None
    """How long a run may be active; None: as long as it takes."""
    limits: dict[str, Any] | None = None
    """The most that it may use, and whether a person is asked there (limits.py)."""


class Continues(NamedTuple):
    """The part of a history that an agent run goes on with."""

    context_id: str
    upto: int
    """Its last row."""


def start(
    tx: Tx,
    entry: Entry,
    input: Any,
    *,
    key: str | None,
    now_us: int,
    ids: Callable[[], str],
    agent_run_id: str | None = None,
    visit: Visit | None = None,
    continues: Continues | None = None,
) -> str:
    """Begin a root agent run; one of the same key, release and input is there already.

    Args:
        tx: The open transaction.
        entry: The release.
        input: JSON.
        key: The caller's name for this run; None: it is another one each time.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids.
        agent_run_id: Its id, if it is new; by it, a transaction that is run again finds what an earlier try committed.
        visit: Which of a graph it is driven in, if it is.
        continues: The history that it goes on with; None: it begins one.

    Returns:
        The agent run's id.

    Raises:
        BudgetExhausted: The run of the visit may begin no more agent runs, or has used more than it may.
        ConflictError: The key names a run of another release or input (`idempotency_conflict`).
    """
    if visit is not None:
        visit.guard(tx)
    input_digest = canonical.digest(canonical.encode(input, where="input"))
    known = None if key is None else tx.maybe("agent_run_keyed", key=key)
    if known is not None:
        if (known["release"], known["input_digest"]) != (entry.release, input_digest):
            raise ConflictError(
                f"key {key!r} names agent run {known['agent_run_id']!r}, which has another definition or input; use "
                "another key, or ask for that run",
                code="idempotency_conflict",
                details={"key": key, "agent_run_id": known["agent_run_id"]},
            )
        return str(known["agent_run_id"])
    if agent_run_id is None:
        agent_run_id = ids()
    elif tx.repeated and tx.maybe("agent_run_get", agent_run_id=agent_run_id) is not None:
        return agent_run_id  # an earlier try was committed
    if tx.maybe("agent_release_get", digest=entry.release) is None:
        tx.run("agent_release_insert", digest=entry.release, descriptor=entry.descriptor, now_us=now_us)
    agent_task_id = ids()
    parent = None if visit is None else visit.parent
    own_thread = thread_of(agent_run_id)
    thread_id = own_thread if visit is None else visit.held.thread_id
    run = runs.begin_apart(tx, run_id=agent_run_id, thread_id=own_thread, parent=parent, now_us=now_us)
    if parent is not None:
        given_by = tx.one("run_named", run_id=parent.run_id)["run"]
        slices.start_slice(tx, agent_run_id, run=given_by, given=slices.NOTHING, now_us=now_us)
    tx.run(
        "agent_run_insert",
        agent_run_id=agent_run_id,
        root_id=agent_run_id,
        parent_id=None,
        parent_operation=None,
        run=run,
        thread_id=thread_id,
        key=key,
        release=entry.release,
        input_digest=input_digest,
        input=encoded(input, "input"),
        loop_limit=entry.loop_limit,
        limits=None if entry.limits is None else encoded(entry.limits, "limits").decode(),
        deadline_us=None if entry.run_us is None else now_us + entry.run_us,
        now_us=now_us,
    )
    at = Applying(tx, agent_run_id, run, thread_id, 0, now_us, ids)
    tx.run(
        "agent_task_insert",
        agent_task_id=agent_task_id,
        agent_run_id=agent_run_id,
        root_id=agent_run_id,
        role=entry.role,
        behaviour=entry.behaviour,
        version=entry.version,
        ready_seq=at.next_seq(),
        input=encoded(input, "input"),
        context=None if continues is None else continues.context_id,
        context_from=0 if continues is None else continues.upto,
        now_us=now_us,
    )
    at.event("agent.started", agent_run_id=agent_run_id, release=entry.release)
    at.event("task.prepared", agent_task_id=agent_task_id, role=entry.role)
    return agent_run_id
