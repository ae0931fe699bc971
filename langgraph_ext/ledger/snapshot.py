"""A snapshot: how a run stands, its visits counted, what it used, and its open questions, all read at one point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from langgraph_ext.database import Tx
from langgraph_ext.ledger.call_listing import usage_of
from langgraph_ext.ledger.encoded import Serde
from langgraph_ext.ledger.listing import Asked, given_out, pending_of
from langgraph_ext.ledger.order import keys_of_run
from langgraph_ext.ledger.records import Run, Snapshot, VisitStatus
from langgraph_ext.ledger.rows import run_named, run_record, text_or_none
from langgraph_ext.ledger.usage_records import Usage
from langgraph_ext.ledger.visits import visits_of

__all__ = ["Seen", "ask_snapshot", "developed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read, payloads not yet decoded."""

    run: Run
    cursor: int
    visits: Mapping[VisitStatus, int]
    usage: Usage
    pending: list[Asked]


def ask_snapshot(run_id: str, now_us: int) -> Callable[[Tx], Seen]:
    """A run at one point, ready to be read."""
    return partial(_look, run_id=text_or_none(run_id, "run_id") or "", now_us=now_us)


def _look(tx: Tx, run_id: str, now_us: int) -> Seen:
    run = run_named(tx, run_id)
    keys = keys_of_run(tx, run)
    return Seen(
        run=run_record(run),
        cursor=max(keys[-1].cursor if keys else 0, run["gone_upto"]),
        visits=Counter(visit.status for visit in visits_of(tx, run, keys=keys)),
        usage=usage_of(tx, run, now_us=now_us),
        pending=pending_of(tx, run),
    )


def developed(seen: Seen, serde: Serde | None) -> Snapshot:
    """The snapshot as it is given out."""
    return Snapshot(
        run=seen.run,
        cursor=seen.cursor,
        transitions=sum(seen.visits.values()),
        visits=dict(seen.visits),
        usage=seen.usage,
        pending=tuple(given_out(seen.pending, serde)),
    )
