"""L39: a child run is given a slice of its parent's budget, which is settled once, in full."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext import Budget
from langgraph_ext.database import Database
from langgraph_ext.errors import AdmissionError, BudgetExhausted, ConflictError, InvalidArgument
from langgraph_ext.ledger import Dimension, slices
from langgraph_ext.ledger.verify_calls import calls_of_run
from tests.support.spending import NOW_US, RUN, begun, limited, start, totals

GIVEN = {Dimension.TURNS: 3, Dimension.TOKENS: 60}


@pytest.fixture
def database(database: Database) -> Database:
    """A database with a run that may start child runs."""
    begun(database)
    limited(database, Budget(turns=5, tokens=100, spawns=2))
    return database


def give(database: Database, slice_id: str = "child", given: Any = GIVEN) -> None:
    database.transact(slices.start_slice, slice_id, run=RUN, given=given, now_us=NOW_US)


def end(database: Database, turns: int, tokens: int, slice_id: str = "child") -> Any:
    used = {Dimension.TURNS: turns, Dimension.TOKENS: tokens}
    return database.transact(slices.settle_slice, slice_id, used=used, now_us=NOW_US)


def counted(database: Database) -> tuple[dict[str, int], dict[str, int]]:
    """Used and reserved, as far as there is some."""
    found = totals(database)
    return tuple(  # type: ignore[return-value]
        {str(each): amount for each, amount in part.items() if amount} for part in (found.used, found.reserved)
    )


def test_l39_a_slice_is_reserved_until_the_child_has_ended(database: Database) -> None:
    """Then what it used counts instead, once; to start and to settle it again changes nothing."""
    for _ in range(2):
        give(database)
    assert ({"spawns": 1}, {"turns": 3, "tokens": 60}) == counted(database)
    assert [{}, {}] == [end(database, 2, 30) for _ in range(2)]

    assert ({"spawns": 1, "turns": 2, "tokens": 30}, {}) == counted(database)
    with pytest.raises(ConflictError) as refused:
        end(database, 2, 31)
    assert "call_conflict" == refused.value.code


def test_l39_what_a_child_was_given_its_parent_cannot_use(database: Database) -> None:
    give(database)
    with pytest.raises(BudgetExhausted) as refused:
        start(database, "c1", None, 41)
    assert ("tokens", 60) == (refused.value.details["dimension"], refused.value.details["reserved"])
    start(database, "c1", None, 40)
    with pytest.raises(BudgetExhausted):
        give(database, "other", {Dimension.TURNS: 1, Dimension.TOKENS: 1})


def test_l39_usage_over_the_slice_is_never_absorbed(database: Database) -> None:
    """It is counted in full, an event says so, and so does verify; the caller gets an error to raise."""
    give(database)
    over = end(database, 2, 75)
    error = slices.breach_of("child", over)

    assert ({Dimension.TOKENS: 15}, 75) == (over, totals(database).used[Dimension.TOKENS])
    assert error is not None
    assert "budget_invariant" == error.code
    assert ["budget_invariant"] == [code for code, _ in database.read(lambda tx: list(calls_of_run(tx, RUN)))]
    assert None is slices.breach_of("child", {})


def test_l39_children_are_counted(database: Database) -> None:
    for name in ("one", "two"):
        give(database, name, {Dimension.TURNS: 1, Dimension.TOKENS: 1})
    with pytest.raises(BudgetExhausted) as refused:
        give(database, "three", {Dimension.TURNS: 1, Dimension.TOKENS: 1})
    assert "spawns" == refused.value.details["dimension"]


def test_l39_a_child_is_bounded_where_its_parent_is(database: Database) -> None:
    with pytest.raises(AdmissionError) as refused:
        give(database, given={Dimension.TURNS: 1})
    assert ("call_unbounded", ["tokens"]) == (refused.value.code, refused.value.details["dimensions"])
    with pytest.raises(InvalidArgument):
        give(database, given={**GIVEN, Dimension.WALL_SECONDS: 1})


def test_l39_a_name_is_used_once(database: Database) -> None:
    give(database)
    with pytest.raises(ConflictError) as refused:
        give(database, given={**GIVEN, Dimension.TURNS: 2})
    assert "call_exists" == refused.value.code
