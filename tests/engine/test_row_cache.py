"""What a commit has read of a row is not what it goes by once that row was written to."""

from __future__ import annotations

import re
from typing import Any

import pytest

from langgraph_ext.database import Tx
from langgraph_ext.database.queries import load_queries
from langgraph_ext.engine import row_cache
from langgraph_ext.engine.row_cache import RowCache
from tests.support.bench import TracedTx, opened

TABLES = ("agent_run", "agent_task", "agent_operation")


def writes() -> list[tuple[str, str, str]]:
    """Name, table and text of each statement that writes to a table of which rows are kept."""
    found = []
    for name, text in load_queries("sqlite").items():
        for _, table in re.findall(r"\b(INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", text):
            if table in TABLES:
                found.append((name, table, text))
    return found


def test_e3_whatever_writes_to_a_kept_row_is_known_by_its_name() -> None:
    """The cache goes by the names of statements: those of a table begin with the table's."""
    assert len(writes()) > 15
    for name, table, _ in writes():
        assert name.startswith(f"{table}_"), name


def test_e3_a_statement_that_has_a_rows_key_writes_to_that_row_alone() -> None:
    """Else all rows of the table are forgotten."""
    for name, table, text in writes():
        key = row_cache._KEYS[f"{table}_get"]
        if f":{key}" in text and "UPDATE" in text:
            assert f"WHERE {key} = :{key}" in text, name


@pytest.mark.parametrize(
    ("statement", "key", "more", "again"),
    [
        ("agent_run_next_seq", "agent_run_id", {}, ["one"]),
        ("agent_run_pause", "root_id", {"now_us": 1}, ["one", "other"]),
    ],
)
def test_e3_a_row_is_read_again_behind_a_write(statement: str, key: str, more: Any, again: list[str]) -> None:
    """And then is as it stands; the others are read again only if the write does not say whose row it is."""
    trace: list[tuple[str, str, dict[str, object]]] = []

    def act(tx: Tx, ids: dict[str, str]) -> None:
        cached = RowCache(TracedTx(tx, trace))
        before = [cached.one("agent_run_get", agent_run_id=each) for _ in range(2) for each in ids.values()]
        assert 2 == len(trace)
        cached.run(statement, **{key: ids["one"]}, **more)
        after = [cached.one("agent_run_get", agent_run_id=each) for each in ids.values()]
        assert [ids[each] for each in again] == [params["agent_run_id"] for verb, _, params in trace if verb == "get"][
            2:
        ]
        assert after == [tx.one("agent_run_get", agent_run_id=each) for each in ids.values()]
        assert (True, False) == (before[0] != after[0], before[1] != after[1])

    with opened(":memory:") as bench:
        bench.database.transact(act, {"one": bench.start(), "other": bench.start()})
