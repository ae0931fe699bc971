"""What the crash harness compares: effects' facts, doubts, states; and what says that nothing was tested."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing import CrashProgress, CrashReport, crash_at_every_commit

ROOT = Path(__file__).resolve().parents[2]

Crash = Callable[..., CrashReport]


@pytest.fixture
def crash(tmp_path: Path) -> Crash:
    """The harness, on a scenario of `tests.support.crashing_ends`; "try" may happen often."""

    def go(name: str, **options: Any) -> CrashReport:
        options = {"at_most": {"try": None}, "points": ["before"]} | options
        module = options.pop("module", "tests.support.crashing_ends")
        return crash_at_every_commit(f"{module}:{name}", db=tmp_path / "crash.db", **options)

    return go


def found(report: CrashReport) -> set[tuple[str, str]]:
    return {(finding.code, finding.message) for finding in report.findings}


# -- values


def test_another_amount_is_found(crash: Crash) -> None:
    """Though the effect happened once; a time among its facts, which differs anyway, is no finding and is named."""
    report = crash("charges_another_amount")
    said = "effect 'charge' happened with of.cents=800; undisturbed with of.cents=700"
    assert {("effect_differs", said)} == found(report)
    assert ("'at_us' of effect 'charge'",) == report.varying
    assert "not compared, as it differs between two undisturbed runs: 'at_us' of effect 'charge'" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [["of"], ["*"]])
def test_a_fact_may_be_left_out(crash: Crash, ignored: list[str]) -> None:
    crash("charges_another_amount", ignore_facts=ignored).assert_sound()


def test_another_state_is_found(crash: Crash) -> None:
    report = crash("keeps_another_value")
    said = "'tries' in the state of thread 'trip' is 2; undisturbed it is 1"
    assert {("state_differs", said)} == found(report)
    assert () == report.varying


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [["tries"], ["*"]])
def test_a_channel_may_be_left_out(crash: Crash, ignored: list[str]) -> None:
    crash("keeps_another_value", ignore_state=ignored).assert_sound()


@pytest.mark.slow
def test_a_message_is_compared_but_for_its_id(crash: Crash) -> None:
    """LangGraph makes one up where there is none."""
    report = crash("says_something_else")
    said = "'messages[0].content' in the state of thread 'trip' is 'try 2'; undisturbed it is 'try 1'"
    assert {("state_differs", said)} == found(report)
    assert ("'messages[0].id' in the state of thread 'trip'",) == report.varying


def test_an_effect_left_in_doubt_is_found(crash: Crash) -> None:
    """Although the run has succeeded."""
    report = crash("leaves_in_doubt")
    said = "effect 'charge' of 'book/pay' is left in doubt; undisturbed it is not"
    assert ("effect_in_doubt", said) in found(report)
    assert "run_status" not in {code for code, _ in found(report)}


@pytest.mark.slow
def test_a_key_that_is_another_one_each_time_is_found_undisturbed(crash: Crash) -> None:
    report = crash("has_another_key_each_time")
    assert (0, {"effect_unexpected", "effect_missing"}) == (report.kills, {code for code, _ in found(report)})


# -- nothing tested


@pytest.mark.slow
def test_a_scenario_that_never_commits_is_found(crash: Crash) -> None:
    report = crash("commits_nothing", module="tests.support.crashing")
    assert [("no_boundaries", (0, "undisturbed"))] == [(each.code, each.only) for each in report.findings]
    with pytest.raises(AssertionError, match="committed nothing to db_url"):
        report.assert_sound()


@pytest.mark.slow
@pytest.mark.parametrize("only", [(99, "before"), (99, "inside"), (1, "inside:99")])
def test_a_kill_that_nobody_came_to_is_found(crash: Crash, only: tuple[int, str]) -> None:
    report = crash("sound", module="tests.support.crashing", only=only)
    assert (0, ["nothing_killed"]) == (report.kills, [finding.code for finding in report.findings])
    assert f"{report.boundaries} boundaries" in report.findings[0].message


@pytest.mark.slow
def test_a_run_that_stops_at_its_question_is_named(crash: Crash) -> None:
    """It is as sound as the question can tell."""
    report = crash("stops_at_its_question")
    report.assert_sound()
    assert {"trip": "paused"} == report.ended
    assert "undisturbed, the run of thread 'trip' ends as paused" in str(report)


# -- in words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("boundary", "words"),
    [
        (1, "taking the thread"),
        (2, "run.started, the first checkpoint"),
        (5, "the first checkpoint of book"),
        (8, "attempt.started book/pay"),
        (9, "effect.started book/pay 'charge'"),
        (10, "effect.committed book/pay 'charge'"),
        (11, "visit.succeeded book/pay, attempt.succeeded book/pay"),
        (12, "the checkpoint behind book/pay"),
        (13, "visit.succeeded book"),
        (14, "run.succeeded, the checkpoint behind book"),
        (15, "giving the thread back"),
    ],
)
def test_what_was_killed_is_said_in_words(crash: Crash, boundary: int, words: str) -> None:
    report = crash("always_wrong", only=(boundary, "before"))
    assert {words} == {finding.transaction for finding in report.findings}


# -- what a run printed


@pytest.mark.slow
def test_a_traceback_shows_the_users_lines(crash: Crash) -> None:
    """And of LangGraph's only that there are some."""
    first = crash("raises_in_a_node").first_broken
    assert first is not None
    lines = first.output.splitlines()
    assert "ValueError: no seats" in lines
    assert 'raise ValueError("no seats")' in first.output
    assert "of LangGraph, Python and others" in first.output
    assert len(lines) < 20
    assert not any("pregel" in line or "testing/server" in line for line in lines)


@pytest.mark.slow
def test_what_was_printed_is_cut_between_lines(crash: Crash) -> None:
    report = crash("prints_much")
    first = report.first_broken
    assert first is not None
    before, following, *_ = first.output.splitlines()
    assert before.endswith(" characters before …")
    assert "a long line of no interest" == following
    with pytest.raises(AssertionError) as raised:
        report.assert_sound()
    assert f"all of it is in {first.database}.output" in str(raised.value)
    assert len(str(raised.value).splitlines()) < 60


# -- how it is run


@pytest.mark.slow
def test_progress_is_told_before_the_first_kill_and_behind_each(crash: Crash) -> None:
    told: list[CrashProgress] = []
    report = crash("keeps_another_value", on_progress=told.append)
    assert [*range(report.boundaries + 1)] == [each.done for each in told]
    assert {report.boundaries} == {each.planned for each in told}
    assert 0 < told[-1].broken == len(report.findings)
    assert (None, 0) == (told[0].seconds_left, told[-1].seconds_left)


@pytest.mark.slow
def test_kills_side_by_side_find_the_same_in_the_same_order(crash: Crash) -> None:
    alone, together = (crash("keeps_another_value", workers=workers) for workers in (1, 2))
    assert len(alone.findings) > 0
    assert alone.findings == together.findings
    assert (alone.boundaries, alone.kills) == (together.boundaries, together.kills)


@pytest.mark.slow
def test_an_error_ends_workers_at_once(crash: Crash) -> None:
    """Ctrl-C, or an `on_progress` that raises: nobody waits for a run that hangs."""

    def fail(at: CrashProgress) -> None:
        if at.done:
            raise ZeroDivisionError

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        crash("hangs_behind_one_commit", points=["after"], workers=2, timeout_seconds=600, on_progress=fail)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "options",
    [
        {"points": []},
        {"points": "before"},
        {"points": ["between"]},
        {"only": (0, "before")},
        {"only": (1, "between")},
        {"only": (1, "after:2")},
        {"only": (1, "inside:x")},
        {"timeout_seconds": 0},
        {"resumes": 0},
        {"max_broken": 0},
        {"workers": 0},
        {"ignore_facts": "at"},
        {"ignore_state": "log"},
    ],
)
def test_arguments_that_mean_nothing_are_refused(crash: Crash, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        crash("keeps_another_value", **options)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.slow
def test_pytest_shows_the_message_and_not_the_harness(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MINE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "no_boundaries" in ran.stdout
    assert "def assert_sound" not in ran.stdout


MINE = """\
from langgraph_ext.testing import crash_at_every_commit

def scenario(url, effects):
    effects.record("done")

def test_mine(tmp_path):
    crash_at_every_commit(f"{__name__}:scenario", db=tmp_path / "crash.db").assert_sound()
"""


def test_a_file_is_no_module(tmp_path: Path) -> None:
    for target in ("trip.py:scenario", "trip.py"):
        with pytest.raises(InvalidArgument, match="write 'trip:scenario'"):
            crash_at_every_commit(target, db=tmp_path / "crash.db")
    with pytest.raises(InvalidArgument, match=r"write 'apps\.trip:go'"):
        crash_at_every_commit("apps/trip.py:go", db=tmp_path / "crash.db")
