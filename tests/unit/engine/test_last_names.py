"""Names of histories, kept: a bounded memory, which reads what is new and no more."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.engine.contexts import Name
from langgraph_ext.engine.last_names import LastNames, last_names

_INSERT = """
    INSERT INTO agent_message
        (agent_task_id, seq, root_id, kind, message, message_id, said, tokens, total, created_us)
    VALUES (:context_id, :seq, 'r', 'input', :message, :id, 'said', 1, 1, 1)
"""


@pytest.fixture
def database() -> Any:
    made = open_database(":memory:")
    yield made
    made.close()


def add(database: Database, context_id: str, *seqs: int) -> None:
    """Messages, of a task that is none."""

    def insert(tx: Tx) -> None:
        for seq in seqs:
            tx._execute(_INSERT, {"context_id": context_id, "seq": seq, "id": f"m{seq}", "message": b"null"})

    database.transact(insert)


def read(database: Database, kept: LastNames, context_id: str) -> tuple[list[Name], int]:
    """The names, and how many rows were read for them."""
    rows = 0

    def counted(tx: Tx) -> list[Name]:
        class Counting(Tx):
            def all(self, name: str, /, **params: object) -> Any:
                nonlocal rows
                found = tx.all(name, **params)
                rows += len(found)
                return found

        return kept.read(Counting(tx._execute, tx._queries), context_id)

    return database.read(counted), rows


def test_names_that_are_kept_are_not_read_again(database: Database) -> None:
    kept = LastNames()
    add(database, "a", 1, 2, 3)
    first = read(database, kept, "a")
    add(database, "a", 5)
    add(database, "b", 1)

    assert (3, [1, 2, 3]) == (first[1], [each.seq for each in first[0]])
    names, rows = read(database, kept, "a")
    assert ([1, 2, 3, 5], ["m1", "m2", "m3", "m5"], 1) == ([e.seq for e in names], [e.message_id for e in names], rows)
    assert ([1], 1) == ([each.seq for each in read(database, kept, "b")[0]], 1)


def test_what_was_read_longest_ago_is_forgotten(database: Database) -> None:
    kept = LastNames(4)
    for context_id in "abc":
        add(database, context_id, 1, 2)
    for context_id in "aba":
        read(database, kept, context_id)
    read(database, kept, "c")

    assert [0, 0, 2] == [read(database, kept, context_id)[1] for context_id in "acb"]


def test_a_history_that_is_too_long_is_read_each_time(database: Database) -> None:
    kept = LastNames(2)
    add(database, "a", 1, 2, 3)
    add(database, "b", 1, 2)
    read(database, kept, "b")

    assert [3, 3, 0] == [read(database, kept, context_id)[1] for context_id in "aab"]


def test_each_database_has_its_own(database: Database) -> None:
    another = open_database(":memory:")
    assert last_names(database) is last_names(database)
    assert last_names(another) is not last_names(database)
    another.close()
