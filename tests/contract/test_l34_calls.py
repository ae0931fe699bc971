"""L33–L37, L52: limits, reservations, settlements and their refusals, transaction by transaction."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext import Budget
from langgraph_ext.database import Database, Tx
from langgraph_ext.errors import AdmissionError, BudgetExhausted, ConflictError, InvalidArgument, LeaseError
from langgraph_ext.ledger import Dimension, model_calls, runs
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.verify import verify
from tests.support.attempts import HERE, force
from tests.support.spending import (
    NOTHING,
    NOW_US,
    RUN,
    asked,
    begun,
    columns,
    limited,
    reported,
    settle,
    start,
    taken_over,
    totals,
)

TOKENS = Dimension.TOKENS


@pytest.fixture
def database(database: Database) -> Database:
    """A database with a run that may call models."""
    begun(database)
    return database


def price(model: str, usage: Any) -> float:
    return 0.001 * usage["input_tokens"] + 0.002 * usage["output_tokens"]


@pytest.mark.parametrize("limit", [-1, float("inf"), float("nan"), "7", True, 1.5, 10**18])
@pytest.mark.parametrize("name", ["turns", "tokens", "cost_usd", "wall_seconds", "spawns", "tokens_per_call"])
def test_l33_a_limit_is_finite_and_not_negative(name: str, limit: Any) -> None:
    """Refused where the budget is written; what is counted is whole, dollars and seconds need not be."""
    if limit == 1.5 and name in ("cost_usd", "wall_seconds"):
        return
    with pytest.raises(InvalidArgument, match=name):
        Budget(price=price, **{name: limit})


def test_l34_a_cost_limit_needs_a_price() -> None:
    """No price list comes with the package."""
    with pytest.raises(InvalidArgument, match="price"):
        Budget(cost_usd=1.0)
    assert {Dimension.COST_USD: 10**9} == Budget(cost_usd=1, price=price).limits


def test_l34_what_is_reserved_counts_before_it_is_used(database: Database) -> None:
    """Two calls of 40 fit under 100, a third does not; the refusal says why, and writes nothing."""
    budget = Budget(tokens=100)
    for call_id in ("c1", "c2"):
        start(database, call_id, budget, 40)
    with pytest.raises(BudgetExhausted) as refused:
        start(database, "c3", budget, 40)

    told = {
        "thread_id": "t",
        "run_id": "r",
        "dimension": "tokens",
        "limit": 100,
        "used": 0,
        "reserved": 80,
        "requested": 40,
    }
    assert (told, "budget_exhausted") == (refused.value.details, refused.value.code)
    assert (2, 80) == (totals(database).calls, totals(database).reserved[TOKENS])
    settle(database, reported(10, 5))
    start(database, "c3", budget, 40)
    assert (15, 80) == (totals(database).used[TOKENS], totals(database).reserved[TOKENS])


@pytest.mark.parametrize(
    ("budget", "asks", "dimension"),
    [
        (Budget(turns=0), {}, "turns"),
        (Budget(tokens=9), {"tokens": 10}, "tokens"),
        (Budget(cost_usd=0.5, price=price), {"tokens": 1, "cost_nusd": 600_000_000}, "cost_usd"),
        (Budget(wall_seconds=1.0), {"now_us": NOW_US + 1_000_000}, "wall_seconds"),
    ],
)
def test_l34_every_dimension_is_looked_at(database: Database, budget: Budget, asks: Any, dimension: str) -> None:
    with pytest.raises(BudgetExhausted) as refused:
        start(database, "c1", budget, **asks)
    assert dimension == refused.value.details["dimension"]


def test_l34_a_limit_may_be_reached(database: Database) -> None:
    """Used, reserved and requested together may be as much as the limit, and no more."""
    budget = Budget(turns=1, tokens=10, cost_usd=1.0, wall_seconds=0.000_002, price=price)
    start(database, "c1", budget, 10, cost_nusd=10**9)
    assert 10 == totals(database).reserved[TOKENS]


@pytest.mark.parametrize("budget", [Budget(tokens=100), Budget(cost_usd=1.0, price=price)])
def test_l34_under_a_limit_a_call_without_a_bound_is_refused(database: Database, budget: Budget) -> None:
    """By the name of what would bound it."""
    with pytest.raises(AdmissionError, match="tokens_per_call") as refused:
        start(database, "c1", budget)
    assert "call_unbounded" == refused.value.code
    with pytest.raises(AdmissionError, match="price"):
        start(database, "c1", Budget(cost_usd=1.0, price=price), 10)


def test_l34_limits_on_record_count(database: Database) -> None:
    """Whatever budget an invocation brings later."""
    limited(database, Budget(turns=1))
    start(database, "c1", Budget(turns=9))
    with pytest.raises(BudgetExhausted):
        start(database, "c2", Budget(turns=9))


def test_l35_a_full_report_replaces_the_reservation(database: Database) -> None:
    start(database, tokens=100, cost_nusd=500)
    settle(database, reported(10, 5, cost_nusd=300, cache_read=4, tool_calls=2))

    assert ("settled", 0, 0, 300, 2) == columns(
        database, "status", "tokens_held", "cost_held_nusd", "cost_nusd", "tool_calls"
    )
    found = totals(database)
    assert (15, 0, 0) == (found.used[TOKENS], found.reserved[TOKENS], found.unknown[TOKENS])


@pytest.mark.parametrize(
    ("said", "known", "held"), [(NOTHING, 0, 100), (reported(30, None), 30, 70), (reported(None, 130), 130, 0)]
)
def test_l35_what_is_not_reported_stays_reserved(database: Database, said: Any, known: int, held: int) -> None:
    """The totals are lower bounds then, and say so."""
    start(database, tokens=100, cost_nusd=500)
    settle(database, said)
    found = totals(database)

    assert (known, held, 1) == (found.used[TOKENS], found.reserved[TOKENS], found.unknown[TOKENS])
    assert 500 == found.reserved[Dimension.COST_USD]


def test_l36_an_id_is_used_once(database: Database) -> None:
    start(database)
    with pytest.raises(ConflictError) as refused:
        start(database)
    assert ("call_exists", 1) == (refused.value.code, totals(database).calls)


def test_l36_a_settlement_never_changes(database: Database) -> None:
    """The same again is nothing; another one is refused, and so is one of a call that was closed."""
    start(database)
    for _ in range(2):
        settle(database, reported())
    start(database, "c2")
    database.transact(model_calls.close_call, call_id="c2", error_type="Boom", now_us=NOW_US + 3)
    for call_id, said in (("c1", reported(11)), ("c2", reported()), ("c9", reported())):
        with pytest.raises(ConflictError) as refused:
            settle(database, said, call_id)
        assert "call_conflict" == refused.value.code
    assert (10, "settled") == columns(database, "tokens_in", "status")


@pytest.mark.parametrize("count", [-1, 1.5, float("inf"), True, 10**15])
@pytest.mark.parametrize("name", ["tokens_in", "tokens_out", "cache_read", "cache_written"])
def test_l36_counts_that_can_be_none_are_refused(database: Database, name: str, count: Any) -> None:
    """The call stays open, and what it may have used reserved."""
    start(database, tokens=100)
    with pytest.raises(InvalidArgument) as refused:
        settle(database, reported(**{name: count}))
    assert ("invalid_usage", ("open", 100)) == (refused.value.code, columns(database, "status", "tokens_held"))


def test_l36_a_call_keeps_what_it_was(database: Database) -> None:
    for call_id in ("c1", "c2"):
        start(database, call_id, prompt_bytes=7, context_bytes=9)
    kept = ("ordinal", "attempt_id", "node", "provider", "model", "kind", "prompt_bytes", "context_bytes")
    assert (2, "a1", "agent", "p", "m", "model", 7, 9) == columns(database, *kept, call_id="c2")


def test_l52_a_call_of_another_attempt_is_not_settled(database: Database) -> None:
    start(database)
    with pytest.raises(ConflictError) as refused:
        settle(database, reported(), attempt_id="a2")
    assert ("call_mismatch", ("open",)) == (refused.value.code, columns(database, "status"))


def test_l52_an_attempt_that_is_over_calls_nothing(database: Database) -> None:
    database.transact(force, "a1", "failed")
    with pytest.raises(ConflictError) as refused:
        start(database)
    assert ("attempt_mismatch", 0) == (refused.value.code, totals(database).calls)


def test_l37_the_next_owner_closes_open_calls_and_keeps_what_they_may_have_used(database: Database) -> None:
    """A lost answer does not prove that nothing was spent. Whoever was lost neither calls nor settles any more."""
    start(database, tokens=100)
    taken_over(database)

    assert ("interrupted", "owner_lost", 100) == columns(database, "status", "error_type", "tokens_held")
    assert (0, 1) == (totals(database).used[Dimension.TURNS], totals(database).reserved[Dimension.TURNS])
    with pytest.raises(ConflictError) as refused:
        settle(database, reported())
    assert "call_conflict" == refused.value.code
    with pytest.raises(LeaseError) as lost:
        start(database, "c2")
    assert "lease_lost" == lost.value.code


def test_l37_calls_made_before_their_run_was_on_record_are_counted_with_it(database: Database) -> None:
    """The budget holds among them already."""
    early = {"frame": None, "root_id": "not stored yet"}
    start(database, "c1", Budget(tokens=100), 60, **early)
    with pytest.raises(BudgetExhausted):
        start(database, "c2", Budget(tokens=100), 60, **early)
    assert ((None,), 0) == (columns(database, "run"), totals(database).calls)
    start(database, "c2", Budget(tokens=100), 40)

    assert ((RUN,), 2) == (columns(database, "run"), totals(database).calls)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE call SET tokens_held = 1", "call_reserved"),
        ("UPDATE call SET status = 'open', ended_us = NULL, tokens_in = NULL, tokens_out = NULL", "call_reserved"),
        ("UPDATE call SET run = 9", "call_orphan"),
    ],
)
def test_l35_verify_reckons_reservations_again(database: Database, change: str, code: str) -> None:
    """From bounds and reports: what a bug, or a hand, has changed is found."""
    start(database, tokens=100)
    settle(database, reported())
    assert [] == [each.code for each in verify(database, None) if each.code.startswith("call_")]
    database.transact(lambda tx: tx._execute(change, {}))

    assert [code] == [each.code for each in verify(database, None) if each.code.startswith("call_")]


def test_l37_verify_finds_a_call_that_was_left_open(database: Database) -> None:
    start(database, tokens=100)
    database.transact(lambda tx: tx._execute("UPDATE lease SET epoch = 2", {}))
    assert ["call_left"] == [each.code for each in verify(database, None) if each.code.startswith("call_")]


def test_l34_a_repeated_transaction_reserves_once(database: Database) -> None:
    """When nobody knows whether a commit was one, it is tried again."""

    def again(tx: Tx) -> None:
        model_calls.start_call(tx, asked(tokens=10))
        tx.repeated = True
        model_calls.start_call(tx, asked(tokens=10))

    database.transact(again)
    assert (1, 10) == (totals(database).calls, totals(database).reserved[TOKENS])


def test_l34_a_call_needs_the_thread(database: Database) -> None:
    """Under an epoch that is not the present one nothing is called."""
    for frame in (None, FrameKey(attempt_id="a1", run=RUN, epoch=2, node_path="agent", iteration_path=())):
        with pytest.raises((LeaseError, ConflictError)):
            start(database, epoch=2, frame=frame)
    assert 0 == totals(database).calls


def test_l34_a_run_that_has_ended_by_its_budget_calls_nothing(database: Database) -> None:
    """Though there is something left of it: until somebody raises it, or new input comes."""
    limited(database, Budget(turns=9))
    at = runs.At("t", HERE, NOW_US)
    database.transact(lambda tx: runs.move(tx, RUN, RunStatus.BUDGET_EXHAUSTED, at))
    with pytest.raises(BudgetExhausted, match="has ended"):
        start(database)
    assert 0 == totals(database).calls


def test_l36_a_failure_that_comes_late_changes_nothing(database: Database) -> None:
    """A call that was settled stays so, with what it used; one that another owner has closed was lost by its owner."""

    def fails(call_id: str) -> bool:
        return database.transact(model_calls.close_call, call_id=call_id, error_type="Late", now_us=NOW_US + 20)

    start(database, tokens=100)
    settle(database, reported())
    start(database, "c2", tokens=100)
    taken_over(database)
    assert [False, False] == [fails("c1"), fails("c2")]
    assert ("settled", None, 0) == columns(database, "status", "error_type", "tokens_held")
    assert ("interrupted", "owner_lost", 100) == columns(database, "status", "error_type", "tokens_held", call_id="c2")
