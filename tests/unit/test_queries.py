"""Named queries: blocks of `.sql` files, each used, each known, each one statement."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import langgraph_ext
from langgraph_ext.database import queries
from langgraph_ext.database.queries import load_queries, query_files, read_blocks

ROOT = Path(langgraph_ext.__file__).parent
BACKENDS = ["sqlite", "postgres"]
VERBS = {"all", "maybe", "one", "run"}


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose rooms `low` and `high` may own SQL; files written there are what `load_queries` reads."""
    for layer in ("low", "high"):
        (tmp_path / layer / "sql").mkdir(parents=True)
    monkeypatch.setattr(queries, "LAYERS", ("low", "high", "not built yet"))
    monkeypatch.setattr(queries, "files", lambda package: tmp_path)
    return tmp_path


def load(backend: str = "sqlite") -> dict[str, str]:
    """As `load_queries`, without its cache."""
    return dict(load_queries.__wrapped__(backend))


def parameters(sql: str) -> set[str]:
    return set(re.findall(r"(?<![:\w]):(\w+)", without_comments(sql)))


def without_comments(sql: str) -> str:
    return re.sub(r"--.*", "", sql)


def calls_of_tx() -> Iterator[tuple[str, ast.Call]]:
    """Every `tx.<verb>(…)` of the package, with the place it stands at."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="tx") | ast.Attribute(attr="tx"), attr=verb)) if (
                    verb in VERBS
                ):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def names_used() -> set[str]:
    return {call.args[0].value for _, call in calls_of_tx() if isinstance(call.args[0], ast.Constant)}  # type: ignore[misc]


def test_a_block_begins_with_its_name_and_ends_where_the_next_begins() -> None:
    """Comments before the first block belong to nobody, the last semicolon is dropped."""
    text = "-- about the file\n\n-- name: a\n-- why\nSELECT 1;\n\n-- name: b\nSELECT 2\nFROM t;\n"

    assert {("a", None): "-- why\nSELECT 1", ("b", None): "SELECT 2\nFROM t"} == read_blocks(text)


def test_a_block_for_one_backend_is_kept_apart() -> None:
    text = "-- name: a\nSELECT 1;\n-- name: a (postgres)\nSELECT 2;\n"

    assert {("a", None): "SELECT 1", ("a", "postgres"): "SELECT 2"} == read_blocks(text)


def test_a_name_in_the_middle_of_a_line_begins_no_block() -> None:
    assert {("a", None): "SELECT 1 -- name: b"} == read_blocks("-- name: a\nSELECT 1 -- name: b;\n".replace("b;", "b"))


@pytest.mark.parametrize("header", ["-- name: a", "-- name: a (postgres)"])
def test_a_name_that_stands_twice_in_a_file_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="'a'"):
        read_blocks(f"{header}\nSELECT 1;\n{header}\nSELECT 2;\n")


def test_each_backend_gets_its_own_spelling(layers: Path) -> None:
    """Its own block where there is one, the common one otherwise, and none that is another's alone."""
    (layers / "low/sql/q.sql").write_text(
        "-- name: a\nSELECT 1;\n-- name: b\nSELECT 2;\n-- name: a (postgres)\nSELECT 3;\n"
    )

    assert {"a": "SELECT 1", "b": "SELECT 2"} == load("sqlite")
    assert {"a": "SELECT 3", "b": "SELECT 2"} == load("postgres")


def test_two_rooms_may_not_use_one_name(layers: Path) -> None:
    (layers / "low/sql/q.sql").write_text("-- name: a\nSELECT 1;\n")
    (layers / "high/sql/other.sql").write_text("-- name: a\nSELECT 2;\n")
    with pytest.raises(ValueError, match="'a'"):
        load()


def test_rooms_without_sql_are_passed_over(layers: Path) -> None:
    """A room that is not built yet, a folder of migrations and other files are no queries."""
    (layers / "low/sql/migrations").mkdir()
    (layers / "low/sql/readme.txt").write_text("-- name: nothing\n")
    (layers / "high/sql/q.sql").write_text("-- name: a\nSELECT 1;\n")

    assert {"a": "SELECT 1"} == load()


def test_every_name_the_code_uses_is_in_a_file() -> None:
    """As a literal, so that this test can see it."""
    assert [] == [place for place, call in calls_of_tx() if not isinstance(call.args[0], ast.Constant)]
    assert set() == names_used() - set(load_queries("sqlite"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_block_is_used(backend: str) -> None:
    """A query that nobody runs is deleted, not kept."""
    assert set() == set(load_queries(backend)) - names_used()


def test_the_backends_know_the_same_names() -> None:
    assert set(load_queries("sqlite")) == set(load_queries("postgres"))


@pytest.mark.parametrize("name", load_queries("sqlite"))
def test_a_backends_own_block_takes_the_same_parameters(name: str) -> None:
    """The transaction that runs it does not know which of them it gets."""
    assert parameters(load_queries("sqlite")[name]) == parameters(load_queries("postgres")[name])


@pytest.mark.parametrize("name", load_queries("sqlite"))
def test_a_block_is_one_statement(name: str) -> None:
    """Drivers run one at a time; a semicolon inside would hide a second one."""
    sql = without_comments(load_queries("sqlite")[name]).strip()

    assert sql
    assert ";" not in sql
    assert sqlite3.complete_statement(f"{sql};")


def test_every_call_gives_the_parameters_its_query_takes() -> None:
    """Where they are spelt out; a forgotten one would only show when the line runs."""
    known = load_queries("sqlite")
    wrong = []
    for place, call in calls_of_tx():
        name = call.args[0].value  # type: ignore[attr-defined]
        given = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        spread = any(keyword.arg is None for keyword in call.keywords)
        missing = parameters(known[name]) - given
        if given - parameters(known[name]) or (missing and not spread):
            wrong.append((place, name, missing or given - parameters(known[name])))

    assert [] == wrong


def test_no_statement_stands_outside_the_files() -> None:
    """But for the bookkeeping of migrations, and what goes over all tables alike, SQL lives in `.sql` files."""
    looks_like_sql = re.compile(
        r"\b(SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b", re.S
    )
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and looks_like_sql.search(node.value)
    }
    assert {"database/migrations.py", "database/reencrypting.py"} == found


def test_every_file_begins_by_saying_what_it_holds() -> None:
    for entry in query_files():
        assert entry.read_text(encoding="utf-8").startswith("-- ")
