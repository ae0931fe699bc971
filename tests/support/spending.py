"""Model calls at the level of transactions: a run whose attempt a1 may make them, and what is on record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph_ext.database import Database, Tx
from langgraph_ext.ledger import budgets, invocations, leases, model_calls
from langgraph_ext.ledger.budgets import Budget
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.model_calls import Asked, Bound, Reported
from langgraph_ext.ledger.totals import Totals, totals_of
from tests.support import attempts
from tests.support.attempts import HERE, NOW_US
from tests.support.leased import here

__all__ = [
    "NOTHING",
    "NOW_US",
    "RUN",
    "asked",
    "begun",
    "columns",
    "limited",
    "reported",
    "settle",
    "start",
    "taken_over",
    "totals",
]

RUN = 7
NOTHING = Reported()

_ASKED = Asked(
    call_id="c1",
    thread_id="t",
    epoch=1,
    held_us=NOW_US,
    goes_on=False,
    root_id=None,
    checkpoint_ns="",
    checkpoint_id=HERE,
    task_id="task",
    node="agent",
    frame=FrameKey(attempt_id="a1", run=RUN, epoch=1, node_path="agent", iteration_path=(1,)),
    model="m",
    provider="p",
    prompt_bytes=5,
    context_bytes=0,
    bound=Bound(None, None),
    limits={},
    fail_fast=None,
    now_us=NOW_US + 1,
)


def begun(database: Database) -> None:
    """Run 7 on thread t, held by an invocation of this process, with attempt a1 running."""

    def begin(tx: Tx) -> None:
        where = {"run": RUN, "thread_id": "t", "checkpoint_id": HERE}
        tx.run("run_insert", **where, run_id="r", fork_of=None, now_us=NOW_US)
        leases.acquire(tx, thread_id="t", owner=here(), ttl_us=30_000_000, now_us=NOW_US, whole=True)
        attempts.begin(tx)

    database.transact(begin)


def asked(call_id: str = "c1", budget: Budget | None = None, tokens: int | None = None, **changed: Any) -> Asked:
    """A call that attempt a1 is about to make."""
    limits = {} if budget is None else budget.limits
    bound = Bound(tokens, changed.pop("cost_nusd", None))
    return replace(_ASKED, call_id=call_id, bound=bound, limits=limits, **changed)


def reported(tokens_in: int | None = 10, tokens_out: int | None = 5, **more: Any) -> Reported:
    """What a provider says."""
    return Reported(tokens_in=tokens_in, tokens_out=tokens_out, **more)


def start(database: Database, *args: Any, **changed: Any) -> None:
    """Start a call, as `asked` describes it."""
    database.transact(model_calls.start_call, asked(*args, **changed))


def settle(database: Database, said: Reported, call_id: str = "c1", attempt_id: str | None = "a1") -> None:
    """Settle a call."""
    database.transact(model_calls.settle_call, call_id=call_id, reported=said, attempt_id=attempt_id, now_us=NOW_US + 2)


def totals(database: Database, now_us: int = NOW_US) -> Totals:
    """Those of the run."""
    return database.read(lambda tx: totals_of(tx, tx.one("run_get", run=RUN), now_us=now_us))


def columns(database: Database, *names: str, call_id: str = "c1") -> tuple[Any, ...]:
    """Of a call's row."""
    row = database.read(lambda tx: tx.one("model_call_get", call_id=call_id))
    return tuple(row[name] for name in names)


def limited(database: Database, budget: Budget) -> Mapping[Any, int]:
    """Put a budget on record."""
    return database.transact(lambda tx: budgets.set_limits(tx, RUN, budget.limits, now_us=NOW_US))


def taken_over(database: Database) -> None:
    """Another invocation takes the thread."""

    def take(tx: Tx) -> None:
        leases.release(tx, "t", 1, now_us=NOW_US)
        invocations.take_up(tx, thread_id="t", owner=here("next"), ttl_us=30_000_000, now_us=NOW_US + 10, whole=True)

    database.transact(take)
