"""The commands that ask something of a run, run as people run them: `cancel` and `steer`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from tests.support.apps import asks, line, says
from tests.support.programs import run_python


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A run that asks, and one that has ended."""
    path = tmp_path / "runs.db"
    with LedgerSaver(path) as saver:
        for name, node in (("asking", asks("sure?")), ("done", says("a"))):
            config: Any = {"configurable": {"thread_id": name}, "metadata": {"run_id": f"{name}-1"}}
            line(saver, a=node).invoke({"log": []}, config)
    return path


def ask(db: Path, *args: str, fresh: bool = False) -> tuple[int, str, str]:
    ran = run_python("-m", "langgraph_ext.cli", *args, "--db", db, cwd=db.parent, env=os.environ, fresh=fresh)
    return ran.returncode, ran.stdout, ran.stderr


def test_l45_a_run_is_cancelled_by_the_beginning_of_its_id(db: Path) -> None:
    """And its question with it; again it says the same."""
    for _ in range(2):
        assert (0, "run asking-1 is cancelled\n", "") == ask(db, "cancel", "ask", "--reason", "changed my mind")
    with RunLedger(db) as ledger:
        assert ("cancelled", []) == (ledger.run("asking-1").status, ledger.interrupts(pending=True))
        assert ["changed my mind"] == [entry.reason for entry in ledger.inbox("asking-1")]


def test_l45_programs_are_told_the_run_and_its_inbox(db: Path) -> None:
    code, out, _ = ask(db, "cancel", "asking-1", "--mode", "after_batch", "--json", fresh=True)
    told = json.loads(out)

    assert (0, "cancelled", ["after_batch"]) == (code, told["run"]["status"], [each["mode"] for each in told["inbox"]])


@pytest.mark.parametrize(("message", "options", "heard"), [("faster", [], "faster"), ("[7]", ["--json-message"], [7])])
def test_l45_a_message_is_left_for_a_run(db: Path, message: str, options: list[str], heard: Any) -> None:
    code, out, _ = ask(db, "steer", "asking", message, *options, fresh=not options)
    with RunLedger(db) as ledger:
        assert [heard] == [entry.message for entry in ledger.inbox("asking-1")]

    assert (0, True) == (code, out.startswith("run asking-1 was told"))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["cancel", "done"], "run 'done-1' is succeeded: nothing more can be asked of it"),
        (["steer", "done", "faster"], "run 'done-1' is succeeded"),
        (["steer", "asking", "{", "--json-message"], "MESSAGE is not JSON"),
        (["cancel", "nobody"], "run 'nobody' is not in this ledger"),
    ],
)
def test_l45_what_cannot_be_asked_is_one_line_and_exit_status_2(db: Path, args: list[str], said: str) -> None:
    code, out, err = ask(db, *args)

    assert (2, "", 1) == (code, out, err.count("\n"))
    assert err.startswith(f"error: {said}")
