"""Several processes on one thread of an attached graph (scenarios 2 and 19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.testing import EffectLog
from tests.support import attached, faults
from tests.support.processes import at_once


def history(folder: Path) -> Any:
    """The thread's log, and how many children each of its checkpoints has at most."""
    with LedgerSaver(folder / "runs.db") as saver:
        found = list(saver.list(attached.CONFIG))
    parents = [each.parent_config["configurable"]["checkpoint_id"] for each in found if each.parent_config]
    return found[0].checkpoint["channel_values"]["log"], len(parents) == len(set(parents))


@pytest.mark.parametrize(("form", "durability"), [("sync", "sync"), ("sync", "async"), ("async", "async")])
def test_scenario_02_l12_turns_of_several_processes_wait_for_each_other(
    tmp_path: Path, form: str, durability: str
) -> None:
    """All of them are done, one after the other: no turn is lost, and no checkpoint has two children."""
    turns = [(str(tmp_path), name, 3, "wait", form, durability) for name in "xyz"]
    outcomes = [turn for answer in at_once(attached.take_turns, *turns) for turn in answer]
    log, is_line = history(tmp_path)

    assert {"done"} == {code for _, code in outcomes}
    assert sorted(name for name, _ in outcomes) == sorted(word for word in log if word != "a")
    assert ([word == "a" for word in log], is_line) == ([False, True] * 9, True)


def test_scenario_02_l12_or_are_refused_by_name(tmp_path: Path) -> None:
    """Who is refused has stored nothing."""
    turns = [(str(tmp_path), name, 4, "reject", "sync", "sync") for name in "xyz"]
    outcomes = [turn for answer in at_once(attached.take_turns, *turns) for turn in answer]
    log, is_line = history(tmp_path)

    assert {code for _, code in outcomes} <= {"done", "thread_busy"}
    assert sorted(name for name, code in outcomes if code == "done") == sorted(word for word in log if word != "a")
    assert is_line


@pytest.mark.parametrize("workers", [2, 3])
def test_scenario_19_workers_that_resume_one_run_at_once_act_once(tmp_path: Path, workers: int) -> None:
    """One goes on; the others are told that the thread is held, or find the run ended."""
    with LedgerSaver(tmp_path / "runs.db") as saver:
        app = attached.paying(saver, str(tmp_path))
        app.invoke({"log": ["in"]}, attached.CONFIG, interrupt_before=["pay"])
    codes = at_once(attached.resume, *[(str(tmp_path),)] * workers)
    counts = EffectLog(tmp_path / "effects.log").counts()
    with RunLedger(tmp_path / "runs.db") as ledger:
        (run,) = ledger.runs()
        attempts = [(each.node, each.number, str(each.status)) for each in ledger.attempts(run.run_id)]
        assert ("succeeded", []) == (run.status, ledger.verify())

    assert {"pay": 1, "note": 1} == counts
    assert [("pay", 1, "succeeded"), ("note", 1, "succeeded")] == attempts
    assert "done" in codes
    assert set(codes) <= {"done", "thread_busy"}


@pytest.mark.parametrize("what", ["writes", "put", "neither"])
def test_scenario_01_a_delayed_write_and_a_kill_repeat_no_effect(tmp_path: Path, what: str) -> None:
    """The second node's effect is on record before the process dies on its way to the next checkpoint."""
    assert faults.run(attached.three, str(tmp_path), what).killed
    with RunLedger(tmp_path / "runs.db") as ledger:
        before = [(effect.name, str(effect.status)) for effect in ledger.effects()]
    attempts = faults.run(attached.three, str(tmp_path), "").value()

    assert [("one", "committed"), ("two", "committed")] == before
    assert {"one": 1, "two": 1, "three": 1} == EffectLog(tmp_path / "effects.log").counts()
    assert {"one", "two", "three"} == {node for node, _, status in attempts if status == "succeeded"}
