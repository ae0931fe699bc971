"""Queries are served by indexes, on an empty database and on a long, analysed one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from langgraph_ext.database import open_database
from langgraph_ext.database.migrations import all_migrations
from langgraph_ext.database.queries import load_queries
from tests.database.long_threads import lengthen

QUERIES = load_queries("sqlite")

MAY_SCAN = {"scan_all", "interrupts_page", "interrupts_page_pending", "interrupt_named", "effects_page"}
MAY_SCAN |= {"encryption_keys", "encryption_key_forget", "encryption_converted", "database_is_empty"}  # a row or two
MAY_SCAN |= {"log_and_pieces"}
"""Rare listings that look at every row; whatever is not named here searches."""

MAY_SORT = MAY_SCAN | {"scan_thread", "namespaces_of_run", "writes_orphans", "interrupts_of_task"}
MAY_SORT |= {"interrupts_page_of_thread", "effects_calling", "effects_in_doubt_of_visit", "effects_page_of_thread"}
MAY_SORT |= {
    "verify_attempts_of_run",
    "verify_rows",
    "verify_run_events",
    "verify_tasks",
    "run_transitions",
    "inbox_claimed",
    "agent_members_of_tree",
    "strands_of_thread",
}

PASSES = ("SCAN above", "SCAN found", "SCAN CONSTANT ROW", "SCAN (subquery-4)")
PASSES += tuple(f"{step} {rows}" for step in ("CO-ROUTINE", "SCAN") for rows in ("call", "fenced", "put"))
"""Passes over rows that were searched for before, or that an append was given."""

EXACT = {
    "put_places": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id=? AND listed>?)",
    "put_get": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id=? AND listed>?)",
    "put_data": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id=? AND listed>?)",
    "put_latest": "checkpoint_log_place (thread_id=? AND checkpoint_ns=?)",
    "scan_namespace": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id<?)",
    "puts_downwards": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id<?)",
    "writes_between": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id>? AND checkpoint_id<?)",
    "writes_of": (
        "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id=? AND listed=? AND metadata=?)"
    ),
    "writes_delete": "checkpoint_log_place (thread_id=? AND checkpoint_ns=? AND checkpoint_id=? AND listed=?)",
    "namespaces_of_run": "checkpoint_log_run (run_id=?)",
    "thread_delete": "checkpoint_log_place (thread_id=?)",
    "agent_message_summary": "agent_message_summary (agent_task_id=?)",
}
"""What hot queries search by."""

LIFE = ("SCALAR SUBQUERY 1", "SEARCH tombstone USING INDEX sqlite_autoindex_tombstone_1 (thread_id=?)")
"""What a checkpoint that is read says of its thread besides."""

STATES = ["empty", "long and analysed"]

Plan = Callable[[str, str], list[str]]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    """`plan(state, name)`: how SQLite runs a named query on a database in this state, line by line."""
    connections = {}
    for state in STATES:
        path = tmp_path_factory.mktemp("plans") / "runs.db"
        open_database(path).open()
        if state != "empty":
            lengthen(path, 5_000, namespaces=("", "sub"))
        connections[state] = sqlite3.connect(path)
        connections[state].execute("ANALYZE")

    def explain(state: str, name: str) -> list[str]:
        parameters = dict.fromkeys(re.findall(r"(?<![:\w]):(\w+)", QUERIES[name]), "x")
        return [row[3] for row in connections[state].execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", parameters)]

    yield explain
    for connection in connections.values():
        connection.close()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(QUERIES.keys() - MAY_SCAN))
def test_a_query_searches_and_never_scans(plan: Plan, name: str, state: str) -> None:
    """It looks only at rows it may need. (A recursion reads its own rows, an INSERT … SELECT its parameters.)"""
    steps = [step for step in plan(state, name) if step not in PASSES]

    assert [] == [step for step in steps if step.startswith("SCAN")]
    assert not steps or any(step.startswith("SEARCH") for step in steps)


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - MAY_SORT))
def test_a_query_finds_its_rows_in_order(plan: Plan, name: str) -> None:
    """No sorting: the first row comes without reading the last."""
    assert [] == [step for step in plan("empty", name) if "TEMP B-TREE" in step]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", EXACT)
def test_a_hot_query_uses_all_of_its_index(plan: Plan, name: str, state: str) -> None:
    """Searching by the thread alone would also be a search, and read the whole thread."""
    table = "agent_message" if name.startswith("agent_message") else "checkpoint_log"
    assert [f"SEARCH {table} USING INDEX {EXACT[name]}"] == [
        step.replace("COVERING ", "") for step in plan(state, name) if "TEMP" not in step and step not in LIFE
    ]


def test_every_index_is_needed(plan: Plan) -> None:
    """Each costs a write a row: one that no query uses is dropped."""
    script = "\n".join(migration.sql for migration in all_migrations())
    indexes = re.findall(r"^CREATE (?:UNIQUE )?INDEX (\w+)", script, re.MULTILINE)
    steps = [step for name in QUERIES for step in plan("empty", name)]

    assert indexes
    assert [] == [index for index in indexes if not any(f"INDEX {index} " in step for step in steps)]
