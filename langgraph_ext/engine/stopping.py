"""Stopping: what a cancel does, from any process (rules E27 and L45).

A tree that somebody drives finds it in its inbox, at its next turn. One that nobody drives is closed at once.
"""

from __future__ import annotations

from collections.abc import Callable

from langgraph_ext.database import Tx
from langgraph_ext.engine.closing import STOPPED
from langgraph_ext.engine.commits import Held, RuntimeCommit, commit
from langgraph_ext.engine.control import Close, Finish
from langgraph_ext.engine.recovery import take_over
from langgraph_ext.engine.rows import AgentRun, Tree, read_root, read_tree
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import inbox, leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.records import CancelMode, InboxKind

__all__ = ["stop", "stop_held"]


def stop(
    tx: Tx,
    root_id: str,
    *,
    reason: str | None,
    owner: Owner,
    ttl_us: int,
    lease_us: int,
    now_us: int,
    ids: Callable[[], str],
) -> AgentRun:
    """Ask a root agent run to stop.

    Args:
        tx: The open transaction.
        root_id: Its id.
        reason: Why; for the record.
        owner: Who asks, and closes it if nobody drives it.
        ttl_us: Of the lease that it is closed under.
        lease_us: As `now_us`, by the database's clock: leases go by that.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids.

    Returns:
        The agent run as it is then: closing, or ended; or running, with the request in its inbox.

    Raises:
        NotFound: There is none (`agent_run_not_found`).
        ConflictError: It has ended (`run_closed`).
    """
    tree = read_tree(tx, root_id)
    if tree.root.status.ended:
        if tx.repeated and tree.root.reason == STOPPED:
            return tree.root  # by an earlier try of this one
        raise ConflictError(
            f"agent run {root_id!r} is {tree.root.status}: nothing more can be asked of it",
            code="run_closed",
            details={"agent_run_id": root_id, "status": str(tree.root.status)},
        )
    if leases.holder(tx, tree.root.thread_id, now_us=lease_us) is not None:
        run = tx.one("run_get", run=tree.root.run)
        inbox.add(tx, run, InboxKind.CANCEL, mode=CancelMode.NOW, reason=reason, now_us=now_us)
        return tree.root
    lease = leases.acquire(tx, thread_id=tree.root.thread_id, owner=owner, ttl_us=ttl_us, now_us=lease_us, whole=True)
    held = Held(lease.thread_id, lease.epoch)
    found = stop_held(tx, tree, held, reason or "", now_us=now_us, ids=ids)
    leases.release(tx, *held, now_us=lease_us)
    return found


def stop_held(tx: Tx, tree: Tree, held: Held, reason: str, *, now_us: int, ids: Callable[[], str]) -> AgentRun:
    """Stop a tree that nobody drives any more, under a lease: each of its tool calls has a result then."""
    root_id = tree.root.agent_run_id
    close = Close(agent_run_id=root_id, reason=STOPPED, message=reason)
    steps = [
        take_over(tree, held.epoch),
        RuntimeCommit(root_id=root_id, key=f"close:{root_id}:{tree.root.revision}", changes=(close,)),
        RuntimeCommit(root_id=root_id, key=f"terminal:{root_id}", changes=(Finish(agent_run_id=root_id),)),
    ]
    for step in steps:
        if step is not None:
            commit(tx, step, held, now_us=now_us, ids=ids)
    found = read_root(tx, root_id)
    assert found.status is not AgentStatus.RUNNING
    return found
