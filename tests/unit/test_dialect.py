"""PostgreSQL's spelling: every query and migration is PostgreSQL as well, long before a server runs it."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError

from langgraph_ext.database.dialect import for_postgres
from langgraph_ext.database.migrations import all_migrations, statements
from langgraph_ext.database.queries import load_queries

QUERIES = load_queries("postgres")
STATEMENTS = {
    f"{migration.name}#{number}": statement
    for migration in all_migrations()
    for number, statement in enumerate(statements(migration.sql), start=1)
}
EVERYTHING = {**QUERIES, **STATEMENTS}

KINDS = (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Alter)

IN_BOTH = {
    "COALESCE",
    "COUNT",
    "MAX",
    "MIN",
    "SUM",
    "ABS",
    "LOWER",
    "UPPER",
    "LENGTH",
    "REPLACE",
    "SUBSTR",
    "EXISTS",
    "POSITION",
}
"""Functions that PostgreSQL has; all but POSITION, which for_postgres writes for INSTR, mean the same in SQLite."""

SQLITE_ONLY = re.compile(
    r"\b(AUTOINCREMENT|STRICT|ROWID|BLOB|PRAGMA|GLOB|IFNULL|INDEXED BY|OR (REPLACE|IGNORE))\b|(?<!:):\w", re.I
)


def parse(sql: str) -> exp.Expression:
    """The one statement of `sql`, as PostgreSQL; what sqlglot does not understand is an error, not a `Command`."""
    [tree] = sqlglot.parse(sql, read="postgres", error_level=ErrorLevel.RAISE)
    assert isinstance(tree, KINDS), f"not understood as a statement of ours, but as {type(tree).__name__}: {sql}"
    assert not list(tree.find_all(exp.Command)), f"partly understood only: {sql}"
    return tree


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_statement_parses_as_postgresql(name: str) -> None:
    parse(for_postgres(EVERYTHING[name]))


@pytest.mark.parametrize("name", EVERYTHING)
def test_nothing_of_sqlites_own_spelling_is_left(name: str) -> None:
    """Words that sqlglot would let pass and a server would not."""
    sql = re.sub(r"--.*", "", for_postgres(EVERYTHING[name]))

    assert None is SQLITE_ONLY.search(sql)


@pytest.mark.parametrize("name", QUERIES)
def test_every_function_exists_in_both_databases(name: str) -> None:
    """A parser takes any name for a function; a server does not."""
    sql = re.sub(r"--.*|'[^']*'", "", for_postgres(QUERIES[name]))
    called = {found.upper() for found in re.findall(r"\b([a-z]\w*)\((?!s\))", sql)}

    assert set() == called - IN_BOTH


@pytest.mark.parametrize(
    "nonsense", ["SELEC 1", "SELECT a FROM", "VACUUM", "PRAGMA journal_mode", "SELECT 1; SELECT 2"]
)
def test_a_statement_that_is_none_is_noticed(nonsense: str) -> None:
    """The parser's own leniency (a `Command` for what it does not know) does not let the tests above pass."""
    with pytest.raises((ParseError, AssertionError, ValueError)):
        parse(nonsense)


@pytest.mark.parametrize("option", ["STRICT", "WITHOUT ROWID"])
def test_a_table_option_that_is_left_is_noticed(option: str) -> None:
    assert SQLITE_ONLY.search(f"CREATE TABLE t (a INTEGER) {option}")
    assert not SQLITE_ONLY.search(for_postgres(f"CREATE TABLE t (a INTEGER) {option}"))


def test_types_parameters_and_options_are_rewritten() -> None:
    sql = "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c TEXT NOT NULL, d BLOB) STRICT"

    assert (
        "CREATE TABLE t (a BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b BIGINT, "
        'c TEXT COLLATE "C" NOT NULL, d BYTEA)' == for_postgres(sql)
    )
    assert "CREATE TABLE t (a BIGINT)" == for_postgres("CREATE TABLE t (a INTEGER) STRICT, WITHOUT ROWID")
    assert "SELECT a FROM t WHERE b = %(b)s AND c::BYTEA = %(c_1)s" == for_postgres(
        "SELECT a FROM t WHERE b = :b AND c::BLOB = :c_1"
    )
