"""`langgraph-ext budget`, and what `show` says of usage, on the file of a run whose budget is spent."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langgraph_ext import Budget, LedgerSaver
from langgraph_ext.cli.app import app
from langgraph_ext.errors import BudgetExhausted
from langgraph_ext.saver.callbacks import with_ledger
from tests.support.apps import CONFIG, State, line
from tests.support.models import scripted, used


@pytest.fixture
def db(tmp_path: Path) -> str:
    """One call that reported all, one that reported nothing, and a third that was refused."""
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
    path = str(tmp_path / "runs.db")
    telling, silent = scripted(usage=used(10, 5)), scripted(max_tokens=50)

    def node(state: State) -> Any:
        return {"log": [telling.invoke("hello").content, silent.invoke("hello").content, telling.invoke("on").content]}

    with LedgerSaver(path) as saver:
        budget = Budget(turns=2, tokens=900, tokens_per_call=100)
        graph = with_ledger(line(saver, a=node), budget=budget)
        with pytest.raises(BudgetExhausted):
            graph.invoke({"log": []}, {**CONFIG, "metadata": {"run_id": "r1"}}, durability="sync")
    return path


def ask(*args: str) -> Any:
    return CliRunner().invoke(app, list(args), env={"COLUMNS": "200"})


def test_l35_the_command_prints_what_is_used_reserved_and_allowed(db: str) -> None:
    """Where not all was reported, what is printed is the least."""
    printed = ask("budget", "r1", "--db", db).stdout.splitlines()
    shown = ask("show", "r1", "--db", db).stdout

    assert ["turns", "2", "0", "2"] == printed[1].split()
    assert ["tokens", ">=15", "58", "900"] == printed[2].split()
    assert "turns 2/2  tokens >=15/900 (+58 reserved)" in shown
    usage = json.loads(ask("budget", "r1", "--db", db, "--json").stdout)["usage"]
    assert {"limit": 900, "used": None, "known": 15, "reserved": 58} == usage["spent"]["tokens"]


def test_l34_the_command_raises_limits(db: str) -> None:
    """The run is idle then, and goes on when it is invoked again."""
    assert 0 == ask("budget", "r1", "--raise", "turns=5", "--raise", "tokens=1000", "--db", db).exit_code
    with LedgerSaver(db) as saver:
        assert "idle" == saver.ledger.run("r1").status
        assert ["5", "1000"] == [str(s.limit) for s in saver.ledger.usage("r1").spent.values() if s.limit is not None]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("calls=5", "no dimension"),
        ("turns=many", "no number"),
        ("turns=1", "only ever raised"),
        ("spawns=3", "bounded"),
    ],
)
def test_l34_what_can_be_no_raise_is_refused(db: str, wanted: str, said: str) -> None:
    ended = ask("budget", "r1", "--raise", wanted, "--db", db)
    assert (2, True) == (ended.exit_code, said in ended.stderr)
