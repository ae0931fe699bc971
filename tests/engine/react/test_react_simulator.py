"""The simulator's ReAct runs: that they go where the rules are (test_simulator.py runs them, and checks the rules)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from langgraph_ext.database import Database, Tx, open_database
from tests.support.simulated.world import events_of, has_react, simulate

SEEDS = [seed for seed in range(90, 160) if has_react(seed)]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    made = open_database(":memory:", fsync="normal")
    yield made
    made.close()


def test_a_react_seed_is_the_same_schedule_each_time(database: Database) -> None:
    seed = next(seed for seed in SEEDS if len(events_of(seed)) > 5)
    assert simulate(seed) == simulate(seed, database=database)


def test_react_seeds_come_through_everything_that_has_a_rule(database: Database) -> None:
    """Ends of each kind, slots of each kind, doubts that are settled either way, summaries, corrections, steering."""
    commits: Counter[str] = Counter()
    for seed in SEEDS:
        commits.update(key.split(":")[0] for key in simulate(seed, database=database).keys)
    commit_kinds = {"recover", "call-lost", "call-failed", "close", "cancel", "reconciled", "resolve", "consume-batch"}
    assert commit_kinds <= commits.keys()
    for query, wanted in _WANTED.items():
        assert wanted <= database.read(_found, query)


_WANTED: dict[str, set[Any]] = {
    "SELECT DISTINCT status FROM agent_run": {"succeeded", "failed", "cancelled", "exhausted"},
    "SELECT DISTINCT reason FROM agent_run": {"loops_exhausted", "model_calls_exhausted", "deadline_exceeded"},
    "SELECT DISTINCT kind FROM agent_message": {"input", "steering", "decision", "result", "feedback", "summary"},
    "SELECT DISTINCT serial FROM agent_batch": {0, 1},
    "SELECT DISTINCT operation_id IS NULL FROM agent_member": {0, 1},
    "SELECT DISTINCT policy FROM agent_operation WHERE kind = 'tool'": {"once", "repeatable", "keyed"},
    "SELECT DISTINCT on_unknown FROM agent_operation WHERE kind = 'tool'": {"ask", "error", "reconcile"},
}
"""What there is at the end, by queries."""


def _found(tx: Tx, query: str) -> set[Any]:
    return {row[0] for row in tx._execute(query, {}).fetchall()}
