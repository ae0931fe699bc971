"""Sealed columns: every query that gives or takes one says so, and every one is there."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from langgraph_ext.database import open_database
from langgraph_ext.database.queries import load_queries
from langgraph_ext.database.sealed_columns import TABLES, named_in

QUERIES = load_queries("sqlite")

OF_THE_LOG = {"checkpoint", "event"}

SETS_NULL = {"attempt_end", "agent_member_admit", "agent_operation_reopen", "kept_runs"}
"""They take a payload away."""


def code(sql: str) -> str:
    return re.sub(r"--.*", "", sql)


def tables_of(sql: str) -> list[str]:
    """The tables that a query reads or writes."""
    return re.findall(r"(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", code(sql))


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - SETS_NULL))
def test_s6_a_query_says_whose_payloads_it_gives_or_takes(name: str) -> None:
    """One that forgets it would store them in the plain, or give out ciphertext. (Of several tables, the first.)"""
    text = code(QUERIES[name]).strip()
    first = next(iter(tables_of(QUERIES[name])), "")
    if first not in TABLES.keys() - OF_THE_LOG or text.startswith("DELETE"):
        return
    all_of_it = re.search(rf"SELECT (\*|{first}\.\*)", text) is not None
    there = {each for each in TABLES[first].columns if all_of_it or re.search(rf"(?<![\w.]):?{each}\b", text)}
    there |= {each for each in TABLES[first].columns if re.search(rf"\b{first}\.{each}\b", text)}

    assert {f"{first}.{each}" for each in there} <= {each.column for each in named_in(QUERIES[name]).values()}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_s6_what_a_query_says_is_sealed_names_its_row(name: str) -> None:
    """By columns that it gives, or parameters that it takes."""
    text = code(QUERIES[name])
    for each in named_in(QUERIES[name]).values():
        for key in each.keys:
            assert re.search(rf"\b{key}\b", text) or "*" in text, f"{name}: {each.column} by {key}"


def test_s6_every_sealed_column_is_there(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    database = open_database(path)
    database.open()
    database.close()
    with closing(sqlite3.connect(path)) as connection:
        for table, (key, columns) in TABLES.items():
            name = "checkpoint_log" if table in OF_THE_LOG else table
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
            assert {*key, *columns} <= there, table


@pytest.mark.parametrize("comment", ["effct", "effect.name", "effect (name = x)", "effect as x", "effect receipt"])
def test_a_comment_that_names_no_sealed_column_is_refused(comment: str) -> None:
    with pytest.raises(ValueError, match="sealed"):
        named_in(f"-- sealed: {comment}\nSELECT 1")
