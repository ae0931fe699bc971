"""How many runs stand how."""

from __future__ import annotations

from langgraph_ext.database import Tx
from langgraph_ext.ledger.records import RunStatus

__all__ = ["SINCE", "runs_by_status"]

SINCE = 2
"""The schema version from which on there are runs."""


def runs_by_status(tx: Tx) -> dict[str, int]:
    """The number of runs of every status."""
    return {status.value: tx.one("runs_with_status", status=status.value)["runs"] for status in RunStatus}
