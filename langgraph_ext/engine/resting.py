"""Resting: a worker has nothing more to do for a tree, and leaves it to whoever comes next."""

from __future__ import annotations

from collections.abc import Callable

from langgraph_ext.database import Tx
from langgraph_ext.engine.commits import Held, RuntimeCommit, commit
from langgraph_ext.engine.driver import has_something_to_do
from langgraph_ext.engine.pauses import Pause, waits_for
from langgraph_ext.engine.rows import AgentRun, read_root, read_tree
from langgraph_ext.ledger import leases

__all__ = ["rest"]


def rest(
    tx: Tx, root_id: str, held: Held, *, ids: Callable[[], str], now_us: int, goes_on: bool, is_left: bool = False
) -> AgentRun | None:
    """See that a tree may be left. If it waits for nothing but a person, its clocks stand until that one has decided.

    Args:
        tx: The open transaction.
        root_id: The tree.
        held: The lease that it was driven under.
        ids: Makes ids.
        now_us: Microseconds since the epoch, UTC.
        goes_on: Whether its worker goes on with what there is to do, or leaves it to another.
        is_left: Whether an earlier try of this transaction was committed, and the lease is given back.

    Returns:
        The root as it is then; None if the tree is to be driven on: something was asked or said meanwhile.

    Raises:
        LeaseError: It was lost (`lease_lost`).
    """
    tree = read_tree(tx, root_id, whole=False)
    root = tree.root
    if root.status.ended or is_left:
        return root
    leases.check(tx, *held)  # if it is another worker's by now, this one cannot say how it stands
    is_idle = not has_something_to_do(tree)
    if goes_on and not is_idle:
        return None
    if is_idle and root.paused_us is None and waits_for(tx, root_id) is not None:
        pause = Pause(agent_run_id=root_id)
        wanted = RuntimeCommit(root_id=root_id, key=f"pause:{root_id}:{root.revision}", changes=(pause,))
        commit(tx, wanted, held, now_us=now_us, ids=ids)
        return read_root(tx, root_id)
    return root
