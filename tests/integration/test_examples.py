"""The apps of examples/apps: what they were before runs, what they have become does the same, and survives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from examples.apps import shop
from langgraph_ext import LedgerSaver
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.apps import CONFIG
from tests.support.faults import kill_myself, run

APPS = ("chat", "router", "map_reduce", "approval", "supervisor")
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
ASKS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [HumanMessage("How is it in Rome?")]},
    "router": {"messages": [HumanMessage("I want my money back.")]},
    "map_reduce": {"orders": ["a", "b", "c"]},
    "approval": {"messages": [HumanMessage("Refund a.")]},
    "supervisor": {"messages": [HumanMessage("Refund what there is no stock of.")]},
}
REFUNDS = [call("refund", {"order": "a"}), "It is refunded."]
DONE = {"chat": [], "router": ["refund a"], "approval": ["refund a"], "supervisor": ["refund a"]} | {
    "map_reduce": ["charge a", "charge b", "charge c"]
}


def models_of(app: str) -> list[Any]:
    """Each script is played by turns of its own model."""
    if app == "map_reduce":
        return []
    if app == "chat":
        return [ScriptedChatModel(script=[call("weather", {"city": "Rome"}), "Sunny."])]
    if app == "supervisor":
        boss = ["storekeeper, look", "cashier, refund it", "done"]
        return [
            ScriptedChatModel(
                script=boss, by=lambda messages: sum(each.type == "ai" and each.text in boss for each in messages)
            ),
            ScriptedChatModel(script={0: call("stock", {"article": "tea"}), 1: "There are 3."}, by=results),
            ScriptedChatModel(script={1: call("refund", {"order": "a"}), 2: "Refunded."}, by=results),
        ]
    return [ScriptedChatModel(script=REFUNDS)]


def results(messages: Any) -> int:
    return sum(each.type == "tool" for each in messages)


def built(when: str, app: str) -> Any:
    module: Any = import_module(f"examples.apps.{when}.{app}")
    return module.build(*models_of(app))


def said(final: dict[str, Any]) -> list[str]:
    """What an app came to, whoever has run it."""
    return [each.text for each in final["messages"] if each.text] if "messages" in final else [final["report"]]


def run_to_its_end(graph: Any, app: str) -> list[str]:
    final = graph.invoke(ASKS[app], CONFIG, durability="sync")
    while "__interrupt__" in final:
        final = graph.invoke(APPROVE, CONFIG, durability="sync")
    return said(final)


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shop, "BOOKS", tmp_path / "shop.log")
    return tmp_path / "shop.log"


def lines(books: Path) -> list[str]:
    return sorted(books.read_text(encoding="utf-8").splitlines()) if books.exists() else []


@pytest.mark.parametrize("app", APPS)
def test_an_app_does_what_it_did_before(app: str, tmp_path: Path, books: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "before.db")) as saver:
        before = run_to_its_end(built("before", app).compile(checkpointer=saver), app)
    assert DONE[app] == lines(books)
    books.unlink(missing_ok=True)
    with LedgerSaver(tmp_path / "after.db") as ledger:
        assert before == run_to_its_end(built("after", app).compile(checkpointer=ledger), app)
        assert [] == ledger.ledger.verify()
    assert DONE[app] == lines(books)


def die_behind(folder: str, app: str, when: str) -> None:
    """Run an app in a process that is killed when it has done the first thing to the world."""
    shop.BOOKS = Path(folder) / "shop.log"
    note: Callable[[str], None] = shop._note

    def noted(line: str) -> None:
        note(line)
        kill_myself()

    shop._note = noted
    with LedgerSaver(Path(folder) / f"{when}.db") as saver:
        run_to_its_end(built(when, app).compile(checkpointer=saver), app)


@pytest.mark.parametrize("app", [each for each in APPS if DONE[each]])
def test_an_app_that_dies_behind_what_it_did_does_not_do_it_again(app: str, tmp_path: Path, books: Path) -> None:
    """It stops there, and a person says what came of it; before, it did it again."""
    assert run(die_behind, str(tmp_path), app, "before").killed
    with LedgerSaver(tmp_path / "before.db") as saver:  # whichever: it sees nodes, and not what they do
        built("before", app).compile(checkpointer=saver).invoke(None, CONFIG, durability="sync")
    assert 2 == max(Counter(lines(books)).values())
    books.unlink()
    assert run(die_behind, str(tmp_path), app, "after").killed
    assert lines(books)  # of tasks side by side, more than one may have acted
    with LedgerSaver(tmp_path / "after.db") as saver:
        graph = built("after", app).compile(checkpointer=saver)
        if app == "map_reduce":
            with pytest.raises(Exception, match="record it") as caught:
                graph.invoke(None, CONFIG, durability="sync")
            assert "recovery_required" == getattr(caught.value, "code", None)
        else:
            (question,) = graph.invoke(None, CONFIG, durability="sync")["__interrupt__"]
            assert "doubt" == question.value["kind"]
            decision = {"type": "respond", "message": "refunded a"}
            graph.invoke(Command(resume={"decisions": [decision]}), CONFIG, durability="sync")
    assert {1} == set(Counter(lines(books)).values())
