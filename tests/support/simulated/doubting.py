"""Somebody who is asked what came of calls, and says so, now and then, as it was."""

from __future__ import annotations

from collections.abc import Callable

from langgraph_ext.database import Tx
from langgraph_ext.engine.doubts import resolve
from langgraph_ext.engine.rows import read_tree
from tests.support.simulated.witness import Witness
from tests.support.simulated.working import TTL_US, owner_of

__all__ = ["tell"]


def tell(tx: Tx, root_id: str, witness: Witness, amount: float, *, now_us: int, ids: Callable[[], str]) -> None:
    """Say what came of one of the calls that are in doubt, unless it is under way yet somewhere.

    Args:
        tx: The open transaction.
        root_id: The tree.
        witness: Knows what was done.
        amount: From 0 to 1; chooses the call.
        now_us: Now.
        ids: Makes ids.
    """
    tree = read_tree(tx, root_id)
    calls = [each.operation_id for each in tree.operations.values() if each.is_in_doubt]
    known = [each for each in calls if not witness.is_flying(each)]
    if not known or tree.root.status != "running":
        return
    operation_id = known[int(amount * 1000) % len(known)]
    happened = bool(witness.acted[operation_id])
    resolve(
        tx,
        root_id,
        operation_id,
        happened=happened,
        result="it was done" if happened else None,
        owner=owner_of(0, "tells"),
        ttl_us=TTL_US,
        lease_us=now_us,
        now_us=now_us,
        ids=ids,
    )
    witness.see(tx, root_id, f"resolve:{operation_id}")
