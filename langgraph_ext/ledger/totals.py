"""Totals: what a run has used, what is reserved for it, and what nobody knows (rules L35, L38, L39)."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.dimensions import Amounts, Dimension
from langgraph_ext.ledger.records import RunStatus

__all__ = ["Totals", "totals_of", "totals_so_far"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the calls of a run and over what its child runs were given, in stored units."""

    used: Amounts
    """As far as it was reported."""
    reserved: Amounts
    """For calls without an answer, for what was not reported, and for child runs."""
    unknown: Amounts
    """In how many calls that are over it was not, or not fully, reported: the totals are lower bounds then."""
    calls: int
    open: int
    tokens_in: int
    tokens_out: int
    cache_read: int
    cache_written: int


def totals_of(tx: Tx, run: Row, *, now_us: int, held_us: int | None = None) -> Totals:
    """Those of a run, now.

    Args:
        tx: The open transaction.
        run: Its row.
        now_us: Microseconds since the epoch, UTC.
        held_us: Since when the invocation that runs it has held its thread, if the caller knows that one does.
    """
    live_us = _live(tx, run, now_us) if held_us is None else max(now_us - held_us, 0)
    slices = tx.one("slices_of_run", run=run["run"])
    return _totals(tx.one("usage_of_run", run=run["run"]), slices, (run["active_us"] or 0) + live_us)


def totals_so_far(tx: Tx, thread_id: str, epoch: int, *, held_us: int, now_us: int) -> Totals:
    """Those of a run that is not on record yet, and runs under a lease held since `held_us`."""
    return _totals(tx.one("usage_early", thread_id=thread_id, epoch=epoch), None, max(now_us - held_us, 0))


def _live(tx: Tx, run: Row, now_us: int) -> int:
    """For how long the invocation that runs it now has; what it had run before is counted already."""
    lease = tx.maybe("lease_get", thread_id=run["thread_id"])
    if RunStatus(run["status"]).ended:
        return 0
    if lease is None or lease["released_us"] is not None or not lease["whole"]:
        return 0
    head = tx.maybe("run_being_run", thread_id=run["thread_id"])
    if head is None or head["run"] != run["run"]:
        return 0
    held_us: int = min(now_us, lease["expires_us"]) - lease["acquired_us"]
    return max(held_us, 0)


def _totals(calls: Row, slices: Row | None, wall_us: int) -> Totals:
    used = {
        Dimension.TURNS: calls["settled"],
        Dimension.TOKENS: calls["tokens_in"] + calls["tokens_out"],
        Dimension.COST_USD: calls["cost_nusd"],
        Dimension.WALL_SECONDS: wall_us,
        Dimension.SPAWNS: 0,
    }
    reserved = {
        Dimension.TURNS: calls["calls"] - calls["settled"],  # a lost answer may have been given
        Dimension.TOKENS: calls["tokens_held"],
        Dimension.COST_USD: calls["cost_held"],
    }
    if slices is not None:
        for dimension, column in _OF_SLICES.items():
            used[dimension] += slices[f"{column}_used"]
            reserved[dimension] = reserved.get(dimension, 0) + slices[f"{column}_held"]
        used[Dimension.SPAWNS] += slices["spawns"]
    return Totals(
        used=used,
        reserved=reserved,
        unknown={Dimension.TOKENS: calls["tokens_unknown"], Dimension.COST_USD: calls["cost_unknown"]},
        calls=calls["calls"],
        open=calls["open"],
        tokens_in=calls["tokens_in"],
        tokens_out=calls["tokens_out"],
        cache_read=calls["cache_read"],
        cache_written=calls["cache_written"],
    )


_OF_SLICES = {
    Dimension.TURNS: "turns",
    Dimension.TOKENS: "tokens",
    Dimension.COST_USD: "cost",
    Dimension.SPAWNS: "spawns",
}
