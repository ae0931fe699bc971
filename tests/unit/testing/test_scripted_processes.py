"""Scripts over real processes: they end where the script says, and whoever comes next goes on from the shared log."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from langgraph_ext.testing import acts_of, calls_of
from tests.support import faults, processes
from tests.support.scripted import LETTERS, WAYS, ask, ask_many, leave, use


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "calls")


@pytest.mark.parametrize("way", list(WAYS))
def test_a_killed_process_gets_the_same_step_and_the_next_try(log: str, way: str) -> None:
    """Killed before, in the middle and after its second answer; the fourth process is given it."""
    assert "first answer" == faults.run(ask, log, way).value()
    assert [True] * 3 == [faults.run(ask, log, way, 1).killed for _ in range(3)]
    assert "second answer" == faults.run(ask, log, way, 1).value()
    assert ["raised slow", "third answer"] == [faults.run(ask, log, way, 2).value() for _ in range(2)]

    found = calls_of(log)
    outcomes = ["answered", None, None, "answered", "answered", "failed", "answered"]
    assert outcomes == [each.outcome for each in found]
    assert [(0, 1), (1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2)] == [(each.place, each.tried) for each in found]
    assert (7, False) == (len({each.pid for each in found}), os.getpid() in {each.pid for each in found})


def test_a_process_may_exit_with_a_code(log: str) -> None:
    ended = faults.run(leave, log, "exit")
    assert (7, [None]) == (ended.exitcode, [each.outcome for each in calls_of(log)])


def test_processes_that_ask_at_once_are_told_each_try_once(log: str) -> None:
    """The log says who was first."""
    said = processes.at_once(ask_many, *[(log, 4)] * 4)
    assert Counter(LETTERS) == Counter(letter for letters in said for letter in letters)
    assert list(range(1, 17)) == [each.tried for each in calls_of(log)]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_killed_tool_has_acted_or_not(log: str, form: str) -> None:
    """Not before; in the middle and after, and the call that then comes, each once: three acts under one key."""
    acted = []
    for _ in range(3):
        assert faults.run(use, log, form).killed
        acted.append(len(acts_of(log, "send")))
    assert "sent" == faults.run(use, log, form).value()

    assert ([0, 1, 2], 3) == (acted, len(acts_of(log, "send")))
    assert {'send {"to": "me"} call-0'} == {each.key for each in acts_of(log)}
    outcomes = [each.outcome for each in calls_of(log, "send", kind="tool")]
    assert [None, None, "answered", "answered"] == outcomes
