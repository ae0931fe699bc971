"""Runs by the beginning of their id: for people, who do not type 36 characters."""

from __future__ import annotations

from langgraph_ext.database import Tx

__all__ = ["run_ids"]

_LAST = "\U0010ffff"
"""Sorts behind every other character, as UTF-8 too."""


def run_ids(tx: Tx, beginning: str, *, limit: int) -> list[str]:
    """The first ids that begin so, in their order; the id that is no longer than that comes first."""
    rows = tx.all("run_ids_beginning", beginning=beginning, end=beginning + _LAST, limit=limit)
    return [row["run_id"] for row in rows]
