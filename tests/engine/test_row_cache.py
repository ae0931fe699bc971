"""What a commit has read of a row is not what it goes by once that row was written to."""

from __future__ import annotations

import re
from typing import Any

import pytest

from langgraph_ext.database import Tx
from langgraph_ext.database.queries import load_queries
from langgraph_ext.engine import row_cache
from langgraph_ext.engine.row_cache import RowCache

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
    ("statement", "params"), [("agent_run_next_seq", {"agent_run_id": "a"}), ("agent_run_pause", {})]
)
def test_e3_a_row_is_read_again_behind_a_write(statement: str, params: dict[str, Any]) -> None:
    told: list[tuple[str, Any]] = []

    class Noting(Tx):
        def maybe(self, name: str, /, **params: object) -> Any:
            told.append((name, params["agent_run_id"]))
            return {"agent_run_id": params["agent_run_id"]}

        def run(self, name: str, /, **params: object) -> int:
            return 1

    tx = RowCache(Noting(lambda *_: None, {}))  # type: ignore[arg-type, return-value]
    for _ in range(2):
        tx.one("agent_run_get", agent_run_id="a")
        tx.one("agent_run_get", agent_run_id="b")
    assert 2 == len(told)
    tx.run(statement, **params)
    tx.one("agent_run_get", agent_run_id="a")
    tx.one("agent_run_get", agent_run_id="b")
    assert (["a"] if params else ["a", "b"]) == [key for _, key in told[2:]]
