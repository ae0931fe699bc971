"""S9: who stood still until his lease had lapsed, and whose thread was deleted meanwhile, leaves nothing behind."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import interrupt

from langgraph_ext import Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.database import open_database
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel
from tests.support.apps import CONFIG, State, line, says

LEFT = {"migration", "lease", "definition", "tombstone"}
"""Tables that may have rows; and the log has the event of the deletion."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    with LedgerSaver(path) as saver:
        line(saver, a=says("a")).invoke({"log": []}, CONFIG)  # something is stored, under "exit" too
        yield saver


def delete(path: Path, keep_ledger: bool) -> None:
    """As another process does, when no lease is live any more."""
    with LedgerSaver(open_database(path, clock_us=lambda: time.time_ns() // 1000 + 10**9)) as later:
        later.delete_thread("t", keep_ledger=keep_ledger)


def told(app: Any, durability: Any) -> str:
    try:
        app.invoke({"log": []}, CONFIG, durability=durability)
    except LangGraphExtError as error:
        return error.code
    return "nothing"


def left(path: Path) -> list[str]:
    """What is there of the thread under its own name."""
    with sqlite3.connect(path) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [table for table in tables if connection.execute(f"SELECT 1 FROM {table}").fetchone()]
        rows = connection.execute("SELECT event FROM checkpoint_log WHERE thread_id = 't'").fetchall()
    return sorted({*found} - LEFT) + [row[0] for row in rows]


def acts(frame: Frame, did: list[str]) -> dict[str, Callable[[], Any]]:
    """What a node may do next."""
    model = ScriptedChatModel(script=["hello"])
    return {
        "calls a model": lambda: model.invoke("hello"),
        "has an effect": lambda: frame.once("pay", {}, lambda key: did.append(key) or {}),  # type: ignore[func-returns-value]
        "keeps a memo": lambda: frame.memo.__setitem__("note", "kept"),
        "asks": lambda: interrupt("sure?"),
        "returns": lambda: None,
    }


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("what", ["calls a model", "has an effect", "keeps a memo", "asks", "returns"])
def test_s9_a_durable_node_that_overslept_the_deletion_is_refused(
    saver: LedgerSaver, path: Path, attached: bool, durability: str, what: str
) -> None:
    """Whatever it does next; no effect of it happens."""
    did: list[str] = []

    @durable(effect="write")
    def node(state: State, frame: Frame) -> Any:
        delete(path, keep_ledger=False)
        acts(frame, did)[what]()
        return {"log": ["late"]}

    app = line(saver, a=says("a"), node=node, b=says("b"))
    code = told(with_ledger(app) if attached else app, durability)

    assert code in ("thread_deleted", "lease_lost", "attempt_mismatch")
    assert ([], ["checkpoint_log", "thread.deleted"], []) == (did, left(path), saver.ledger.verify())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("keep_ledger", [False, True])
def test_s9_an_attached_graph_that_overslept_the_deletion_is_refused(
    saver: LedgerSaver, path: Path, durability: str, keep_ledger: bool
) -> None:
    """Nothing is added to what was kept of its ledger."""
    model = ScriptedChatModel(script=["hello"])
    kept: list[Any] = []

    def node(state: State) -> Any:
        delete(path, keep_ledger)
        kept.append(saver.ledger.runs())
        return {"log": [model.invoke("hello").text]}

    code = told(with_ledger(line(saver, a=says("a"), node=node, b=says("b"))), durability)

    assert code in ("thread_deleted", "lease_lost")
    assert ([saver.ledger.runs()], []) == (kept, saver.ledger.verify())
    if not keep_ledger:
        assert ["checkpoint_log", "thread.deleted"] == left(path)
