"""Scenario 4: two processes answer one question; processes that die between answer and task (L25, L26)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import Interrupt
from langgraph_ext.testing import EffectLog
from tests.support import attached, faults
from tests.support.processes import at_once

_TOLD = {"answer_conflict", "thread_busy", "interrupt_not_pending"}
"""What the other one may be told; busy, while the first one's run goes on."""


def ask(folder: Path) -> Interrupt:
    with LedgerSaver(folder / "runs.db") as saver:
        attached.approving(saver, str(folder)).invoke({"log": []}, attached.CONFIG)
        return saver.ledger.interrupts()[0]


def state(folder: Path) -> tuple[list[str], Any, dict[str, int]]:
    """The thread's log, what was answered, and how often it acted; the ledger is sound."""
    with LedgerSaver(folder / "runs.db") as saver:
        log = attached.approving(saver, str(folder)).get_state(attached.CONFIG).values["log"]
        (question,) = saver.ledger.interrupts()
        assert [] == saver.ledger.verify()
    return log, question.answer, EffectLog(folder / "effects.log").counts()


@pytest.mark.parametrize("how", ["id", "value", "ledger"])
def test_scenario_04_l25_of_two_answers_at_once_one_counts(tmp_path: Path, how: str) -> None:
    """The other process is told; what the first said is done, once. So it is after the end, for whoever comes late."""
    asked = ask(tmp_path).interrupt_id
    told = at_once(attached.answer, *[(str(tmp_path), asked, said, how) for said in ("yes", "no")])
    accepted = ["yes", "no"][told.index("done")]

    assert 1 == told.count("done")
    assert set(told) - {"done"} <= _TOLD
    assert ([accepted], accepted, {"act": 1}) == state(tmp_path)
    with LedgerSaver(tmp_path / "runs.db") as saver:
        with pytest.raises(ConflictError, match=r"given .*at 2") as late:
            saver.ledger.answer({asked: "late"})
        assert "answer_conflict" == late.value.code
        with pytest.raises(ConflictError, match=r"given .*at 2"):
            attached.approving(saver, str(tmp_path)).invoke(Command(resume="late"), attached.CONFIG)
    assert ([accepted], accepted, {"act": 1}) == state(tmp_path)


@pytest.mark.parametrize("where", ["before", "inside"])
@pytest.mark.parametrize("then", ["command", "same", "none"])
def test_l26_a_crash_between_an_answer_and_its_task_loses_nothing(tmp_path: Path, where: str, then: str) -> None:
    """Whoever goes on, by whatever call, gives the task the answer that is on record; another one is refused."""
    asked = ask(tmp_path).interrupt_id
    assert faults.run(attached.answer_and_die, str(tmp_path), asked, "yes", where).killed
    with RunLedger(tmp_path / "runs.db") as ledger:
        assert ["yes"] == [each.answer for each in ledger.interrupts(pending=False)]
        assert {asked: "yes"} == ledger.resume_command("shared").resume
        command = ledger.resume_command("shared")
    with LedgerSaver(tmp_path / "runs.db") as saver:
        app = attached.approving(saver, str(tmp_path))
        with pytest.raises(ConflictError):
            app.invoke(Command(resume="no"), attached.CONFIG)
        given: Any = {"command": command, "same": Command(resume="yes"), "none": None}[then]
        app.invoke(given, attached.CONFIG)

    assert (["yes"], "yes", {"act": 1}) == state(tmp_path)
