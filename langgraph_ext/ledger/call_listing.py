"""Listings of model calls, and what a run used of its budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import NotFound
from langgraph_ext.ledger.budgets import limits_of
from langgraph_ext.ledger.dimensions import Dimension, shown
from langgraph_ext.ledger.rows import at_least, moment, run_named, text_or_none, thread_of
from langgraph_ext.ledger.totals import Totals, totals_of
from langgraph_ext.ledger.usage_records import CallRecord, CallStatus, Spent, Usage

__all__ = ["ask_calls", "ask_usage", "usage_of"]

_BEFORE_ALL = -(2**63)


def ask_usage(run_id: str, now_us: int) -> Callable[[Tx], Usage]:
    """What a run used, ready to be read."""
    return partial(_usage, run_id=text_or_none(run_id, "run_id") or "", now_us=now_us)


def ask_calls(run_id: str, *, after: str | None, limit: int) -> Callable[[Tx], list[CallRecord]]:
    """The calls of a run, in the order in which they were made, ready to be read."""
    named, behind = text_or_none(run_id, "run_id") or "", text_or_none(after, "after")
    return partial(_calls, run_id=named, after=behind, limit=at_least(1, limit, "limit"))


def usage_of(tx: Tx, run: Row, *, now_us: int) -> Usage:
    """What a run used, as far as it is known, beside its limits."""
    totals, limits = totals_of(tx, run, now_us=now_us), limits_of(tx, run["run"])
    return Usage(
        run_id=run["run_id"],
        spent={each: _spent(each, limits.get(each), totals) for each in Dimension},
        calls=totals.calls,
        open_calls=totals.open,
        tokens_in=totals.tokens_in,
        tokens_out=totals.tokens_out,
        cache_read=totals.cache_read,
        cache_written=totals.cache_written,
    )


def _spent(dimension: Dimension, limit: int | None, totals: Totals) -> Spent:
    known = shown(dimension, totals.used.get(dimension, 0))
    return Spent(
        limit=None if limit is None else shown(dimension, limit),
        used=None if totals.unknown.get(dimension) else known,
        known=known,
        reserved=shown(dimension, totals.reserved.get(dimension, 0)),
    )


def _usage(tx: Tx, *, run_id: str, now_us: int) -> Usage:
    return usage_of(tx, run_named(tx, run_id), now_us=now_us)


def _calls(tx: Tx, *, run_id: str, after: str | None, limit: int) -> list[CallRecord]:
    run = run_named(tx, run_id)
    last: tuple[int, str] = (_BEFORE_ALL, "")
    if after is not None:
        found = tx.maybe("model_call_get", call_id=after)
        if found is None or found["run"] != run["run"]:
            raise NotFound(
                f"call {after!r} is none of run {run_id!r}; calls(run_id) lists those", code="call_not_found"
            )
        last = found["started_us"], found["call_id"]
    rows = tx.all("model_calls_of_run", run=run["run"], started_us=last[0], call_id=last[1], size=limit)
    return [_record(run, row) for row in rows]


def _record(run: Row, row: Row) -> CallRecord:
    cost = row["cost_nusd"]
    return CallRecord(
        call_id=row["call_id"],
        run_id=run["run_id"],
        thread_id=row["thread_id"] if run["deleted_thread"] is None else thread_of(run),
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        node=row["node"],
        attempt_id=row["attempt_id"],
        ordinal=row["ordinal"],
        epoch=row["epoch"],
        kind=row["kind"],
        role=row["role"],
        provider=row["provider"],
        model=row["model"],
        status=CallStatus(row["status"]),
        prompt_bytes=row["prompt_bytes"],
        context_bytes=row["context_bytes"],
        bound_tokens=row["bound_tokens"],
        reserved_tokens=row["tokens_held"],
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        cache_read=row["cache_read"],
        cache_written=row["cache_written"],
        tool_calls=row["tool_calls"],
        cost_usd=None if cost is None else shown(Dimension.COST_USD, cost),
        reserved_cost_usd=shown(Dimension.COST_USD, row["cost_held_nusd"]),
        error_type=row["error_type"],
        started_at=moment(row["started_us"]),
        ended_at=None if row["ended_us"] is None else moment(row["ended_us"]),
    )
