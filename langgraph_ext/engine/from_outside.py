"""From outside: what somebody says of a tree, in a process that need not drive it."""

from __future__ import annotations

from collections.abc import Callable

from langgraph_ext.database import Tx
from langgraph_ext.engine.commits import Held, RuntimeCommit, commit
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner

__all__ = ["say"]


def say(
    tx: Tx,
    wanted: RuntimeCommit,
    *,
    owner: Owner,
    ttl_us: int,
    lease_us: int,
    now_us: int,
    ids: Callable[[], str],
) -> None:
    """Commit it under the epoch of who drives the tree, who goes on with it then; or, if nobody does, under one's own.

    Args:
        tx: The open transaction.
        wanted: What is said.
        owner: Who says so.
        ttl_us: Of the lease that it is written under if nobody drives the tree.
        lease_us: As `now_us`, by the database's clock: leases go by that.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids.
    """
    thread_id = tx.one("agent_run_get", agent_run_id=wanted.root_id)["thread_id"]
    holder = leases.holder(tx, thread_id, now_us=lease_us)
    lease = holder or leases.acquire(tx, thread_id=thread_id, owner=owner, ttl_us=ttl_us, now_us=lease_us, whole=True)
    held = Held(lease.thread_id, lease.epoch)
    commit(tx, wanted, held, now_us=now_us, ids=ids)
    if holder is None:
        leases.release(tx, *held, now_us=lease_us)
