"""E6, E29, E31, F01: a process killed at any commit of an agent run, and the run brought to its end by another one."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import RunLedger
from langgraph_ext.engine.rows import Tree
from langgraph_ext.engine.states import TicketState
from tests.faults.children import noted
from tests.support import killed_agents as story
from tests.support.bench import Bench, opened
from tests.support.faults import full, run


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that is migrated and holds nothing."""
    path = str(tmp_path_factory.mktemp("empty") / "runs.db")
    with opened(path) as bench:
        bench.database.open()
    return path


@pytest.fixture
def new(empty: str, tmp_path: Path) -> Callable[[str], str]:
    """A new database, by a name."""

    def make(name: str) -> str:
        path = tmp_path / f"{name}.db"
        shutil.copy(empty, path)
        return str(path)

    return make


class Left:
    """What a killed process has left."""

    def __init__(self, path: str) -> None:
        with opened(path) as bench:
            self.keys, self.events = bench.commit_keys(), bench.events()
            self.results = bench.all("SELECT commit_key, digest, result FROM agent_commit")
            named = bench.all("SELECT purpose, state, before IS NOT NULL, raw IS NOT NULL FROM agent_operation")
            self.identities = dict(bench.all("SELECT purpose, operation_id FROM agent_operation"))
        self.decided = {f"before {purpose}" for purpose, _, before, _ in named if before}
        self.answered = {f"call {purpose}" for purpose, state, _, raw in named if raw or state == "completed"}
        self.completed = {f"after {purpose}" for purpose, state, _, _ in named if state == "completed"}
        self.asked = Counter(noted(f"{path}.log"))


def shape(tree: Tree) -> Any:
    """How a story ends, whoever was killed on the way."""
    root = tree.root
    operations = sorted((each.purpose, str(each.state)) for each in tree.operations.values())
    return str(root.status), root.reason, root.output, root.consumed, root.reserved, operations


def check_rows(bench: Bench, tree: Tree) -> None:
    """One result per task, one identity per operation, no ticket consumed twice, no terminal reopened."""
    assert all(each.state.ended for each in (*tree.tasks.values(), *tree.operations.values()))
    ends = [name for name in bench.events("task.%") if name.split(".")[1] in ("succeeded", "failed", "cancelled")]
    assert len(tree.tasks) == len(ends)
    assert len(tree.operations) == len({(each.agent_task_id, each.purpose) for each in tree.operations.values()})
    consumed = [each for each in tree.tickets.values() if each.state is TicketState.CONSUMED]
    assert tree.root.consumed == len(consumed) == len(bench.events("ticket.consumed"))
    over = [f"agent.{status}" for status in ("succeeded", "failed", "cancelled", "exhausted")]
    assert 1 == sum(name in over for name in bench.events("agent.%"))
    assert [] == bench.all("SELECT * FROM agent_call WHERE state = 'open'")
    settled = bench.all("SELECT operation_id, count(*) FROM agent_call WHERE state = 'settled' GROUP BY 1")
    assert all(count == 1 for _, count in settled)
    assert [(1,)] == bench.all("SELECT count(*) FROM agent_run")


def check_kept(bench: Bench, path: str, left: Left) -> None:
    """What was committed is there as it was; what is stored was not asked for again."""
    assert left.keys == bench.commit_keys()[: len(left.keys)]
    assert set(left.results) <= set(bench.all("SELECT commit_key, digest, result FROM agent_commit"))
    assert left.events == bench.events()[: len(left.events)]
    now = dict(bench.all("SELECT purpose, operation_id FROM agent_operation"))
    assert left.identities.items() <= now.items()
    asked = Counter(noted(f"{path}.log"))
    for what in left.decided | left.answered | left.completed:
        assert left.asked[what] == asked[what], what
    (calls,) = bench.all("SELECT count(*) FROM agent_call")
    assert sum(count for what, count in asked.items() if what.startswith("call ")) <= calls[0]


def go_on(path: str, told: str, whole: Any, left: Left) -> None:
    """Bring what was left to its end, twice; the second time, nothing is left to do."""
    with opened(path) as bench:
        tree = story.drive(path, told, bench)
        assert whole == shape(tree)
        check_rows(bench, tree)
        check_kept(bench, path, left)
        before, asked = bench.everything(), noted(f"{path}.log")
        assert tree == story.drive(path, told, bench)
        assert (before, asked) == (bench.everything(), noted(f"{path}.log"))
    with RunLedger(path) as ledger:
        assert [] == ledger.verify()


def undisturbed(path: str, told: str) -> tuple[list[str], Any]:
    """The commits of a story, and how it ends."""
    with opened(path) as bench:
        tree = story.drive(path, told, bench)
        check_rows(bench, tree)
        return bench.commit_keys(), shape(tree)


def kill_at(path: str, told: str, moment: str, commit: tuple[str, int], whole: Any) -> None:
    """Kill a story at a commit and go on with it."""
    killed = run(story.drive_and_be_killed, path, told, moment, *commit).killed
    assert killed or moment == "between", commit  # which has no so many statements
    go_on(path, told, whole, Left(path))


SHOWN = {"start", "activate", "progress a", "call-failed", "call", "call-raw", "complete", "task-result"}
"""Kinds of commits that the story of rounds shows: of other stories, the full set alone kills those as well."""


@pytest.mark.parametrize("moment", ["before", "inside", "after", pytest.param("between", marks=pytest.mark.slow)])
@pytest.mark.parametrize("told", story.STORIES)
def test_e6_e29_a_kill_at_any_commit_loses_and_repeats_nothing(
    new: Callable[[str], str], told: str, moment: str
) -> None:
    """One of each kind of commit, killed before, inside and after; all of them, and between their statements too, in
    the full set. The end is that of an undisturbed run, and what was stored is never asked for again."""
    keys, whole = undisturbed(new("whole"), told)
    for kind, nth in story.commits_of(keys):
        if full() or (nth == 1 and (told == "rounds" or kind not in SHOWN)):
            kill_at(new(f"{kind}-{nth}"), told, moment, (kind, nth), whole)


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
def test_e29_f01_a_kill_while_recovering_is_recovered_from(new: Callable[[str], str], moment: str) -> None:
    """The first worker is killed while its call is under way, the second one by the commit that takes it over."""
    path = new(moment)
    _, whole = undisturbed(new("whole"), "tool")
    assert run(story.drive_and_be_killed, path, "tool", "after", "model-ready", 1).killed
    assert run(story.drive_and_be_killed, path, "tool", moment, "recover", 1).killed
    left = Left(path)
    assert (moment == "after") == any(key.startswith("recover:") for key in left.keys)
    go_on(path, "tool", whole, left)
