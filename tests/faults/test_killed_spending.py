"""Budgets hold over crashes: what a killed call may have used stays reserved, and counts in the run it was for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import faults
from tests.support.killed_spending import agent, cancelled, early, life, one, raise_budget, spent, told
from tests.support.models import dispatches

FORMS = pytest.mark.parametrize("form", ["sync", "async"])


@FORMS
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("kind", ["plain", "durable"])
def test_l37_a_limit_of_three_calls_holds_over_four_crashes(
    tmp_path: Path, form: str, durability: str, kind: str
) -> None:
    """Each process dies inside the model. The model is dispatched three times, however often the run goes on."""
    folder = str(tmp_path)
    for _ in range(3):
        assert faults.run(one, folder, form, durability, kind).killed
    codes = [faults.run(one, folder, form, durability, kind).value() for _ in range(2)]
    found = told(folder)

    assert (["budget_exhausted"] * 2, 3) == (codes, dispatches(tmp_path / "dispatches"))
    assert (["interrupted"] * 3, (0, 3), "budget_exhausted") == (found["calls"], found["turns"], found["status"])
    assert [] == found["findings"]
    raise_budget(folder, turns=5)
    assert faults.run(one, folder, form, durability, kind).killed  # inside the fourth
    assert ("done", 5) == (
        faults.run(one, folder, form, durability, kind).value(),
        dispatches(tmp_path / "dispatches"),
    )
    assert (["interrupted"] * 4 + ["settled"], (1, 4)) == (told(folder)["calls"], told(folder)["turns"])


@FORMS
def test_l37_a_limit_of_cost_bounds_an_agent_over_crashes(tmp_path: Path, form: str) -> None:
    """What killed calls may have cost stays reserved, so the next one is not made; raised, the agent goes on where it
    was refused, and nothing that it has done is done again."""
    folder, notes = str(tmp_path), tmp_path / "notes"
    for _ in range(2):
        assert faults.run(agent, folder, form).killed
    assert "budget_exhausted" == faults.run(agent, folder, form).value()
    found = told(folder)
    assert (["interrupted"] * 2 + ["settled"], 3) == (found["calls"], dispatches(tmp_path / "dispatches"))
    assert (0.015, "budget_exhausted", "1\n") == (found["cost"].known, found["status"], notes.read_text())
    assert found["cost"].known + found["cost"].reserved <= 0.35

    raise_budget(folder, cost_usd=1.0)
    assert "done" == faults.run(agent, folder, form).value()
    found = told(folder)
    assert (5, "1\n2\n", "succeeded") == (dispatches(tmp_path / "dispatches"), notes.read_text(), found["status"])
    assert (pytest.approx(0.045), []) == (found["cost"].known, found["findings"])


def test_l37_a_call_lost_before_its_run_was_on_record_is_counted_with_it(tmp_path: Path) -> None:
    """Under durability async a model may be called before the first checkpoint of its run is stored."""
    folder = str(tmp_path)
    assert faults.run(early, folder, True).killed
    assert not (tmp_path / "late").exists()
    assert "done" == faults.run(early, folder, False).value()

    assert (["interrupted", "settled"], (1, 1)) == (told(folder)["calls"], told(folder)["turns"])


def test_l37_a_call_lost_with_a_run_that_was_cancelled_is_closed_by_who_is_refused(tmp_path: Path) -> None:
    """Nobody takes the thread for that run any more: what was left running would stay so, and its reservation too."""
    folder = str(tmp_path)
    assert faults.run(cancelled, folder, True).killed
    assert ("cancelled", ["open"]) == (told(folder)["status"], told(folder)["calls"])
    assert "cancelled" == faults.run(cancelled, folder, False).value()

    found = told(folder)
    assert (["interrupted"], (0, 1), []) == (found["calls"], found["turns"], found["findings"])


@FORMS
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_l35_one_budget_over_a_whole_life_counts_every_call_once(tmp_path: Path, form: str, durability: str) -> None:
    """Over a parent graph, two parallel subgraphs, a retry, a pause, a crash and a resume: the sum of the rows."""
    folder = str(tmp_path)
    assert "asks" == faults.run(life, folder, "new", form, durability).value()
    assert "failed" == faults.run(life, folder, "answer", form, durability).value()
    assert faults.run(life, folder, "on", form, durability).killed
    assert "done" == faults.run(life, folder, "on", form, durability).value()
    found = told(folder)

    assert (8, (7, 1), "succeeded") == (dispatches(tmp_path / "dispatches"), found["turns"], found["status"])
    assert ["interrupted"] + ["settled"] * 7 == sorted(found["calls"])
    assert (found["of rows"], (105, found["bounds"][6])) == (found["tokens"], found["tokens"])
    assert [] == found["findings"]


@FORMS
def test_l34_the_ceiling_holds_wherever_that_life_stops(tmp_path: Path, form: str) -> None:
    """With fewer turns it is refused on the way; raised by one each time, it comes to its end, and never beyond."""
    folder = str(tmp_path)
    code = faults.run(life, folder, "new", form, "sync", 1).value()
    for turns in range(2, 9):
        assert dispatches(tmp_path / "dispatches") <= turns - 1
        if code == "budget_exhausted":
            raise_budget(folder, turns=turns)
        ended = faults.run(life, folder, "answer" if code == "asks" else "on", form, "sync", 1)
        code = "killed" if ended.killed else ended.value()
    while code != "done":
        if code == "budget_exhausted":
            raise_budget(folder, turns=9)
        ended = faults.run(life, folder, "answer" if code == "asks" else "on", form, "sync", 1)
        code = "killed" if ended.killed else ended.value()
    found = told(folder)

    assert found["tokens"] == found["of rows"]
    assert (dispatches(tmp_path / "dispatches"), []) == (sum(found["turns"]), found["findings"])


@FORMS
@pytest.mark.parametrize("tokens_out", [5, 500])
def test_l34_over_that_life_the_ceiling_of_tokens_is_passed_by_broken_bounds_alone(
    tmp_path: Path, form: str, tokens_out: int
) -> None:
    """By what the calls under way have used beyond theirs: none begins behind that, and the record says so."""
    folder, held, passed = str(tmp_path), tokens_out == 5, 0
    given, code = "new", ""
    while code != "done":
        ended = faults.run(life, folder, given, form, "sync", 20, 70, tokens_out)
        code = "killed" if ended.killed else ended.value()
        given = "answer" if code == "asks" else "on"
        found = spent(folder)
        passed += found.known > found.limit
        assert found.late == 0
        assert found.known + found.reserved <= found.limit if held else found.under_way <= 1
        if code == "budget_exhausted":
            raise_budget(folder, tokens=found.known + found.reserved + 130)
    at_last = told(folder)

    assert held == (passed == 0)
    assert (at_last["tokens"], []) == (at_last["of rows"], at_last["findings"])
    assert (8, (7, 1)) == (dispatches(tmp_path / "dispatches"), at_last["turns"])
