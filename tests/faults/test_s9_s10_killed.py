"""S9, S10: who is killed while taking away, sweeping, copying or backing up leaves a sound database, and can go on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import killed_retention as story
from tests.support.faults import KINDS, every, full, run

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")

Folder = Callable[[str], str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database that is taken away from."""
    return story.make(str(tmp_path_factory.mktemp("made")))


@pytest.fixture
def folder(tmp_path: Path, made: str) -> Folder:
    """A folder with a copy of it."""

    def make(name: str) -> str:
        (tmp_path / name).mkdir()
        shutil.copy(made, tmp_path / name / "runs.db")
        return str(tmp_path / name)

    return make


@pytest.mark.parametrize("way", story.WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_s9_s10_a_kill_at_any_boundary_is_made_good_by_asking_again(folder: Folder, way: str, kind: str) -> None:
    """Nothing is wrong with what is left: neither for SQLite, nor for verify; threads that are there are what they
    were. Asked again, in another process, all is as if nobody had been killed."""
    dry = folder("dry")
    before = story.look(dry)
    points = run(story.take_away, dry, way, kind, 0).value()
    whole = story.look(dry)
    assert ([], []) == (before["wrong"], whole["wrong"])
    assert before["bytes"] > 0
    chosen = every(points.count(kind), sample=points.count(kind) if full() else 2)

    for at in chosen:
        there = folder(str(at))
        assert run(story.take_away, there, way, kind, at).killed, f"{kind} {at} was not reached"
        left = story.look(there)
        assert [] == left["wrong"], f"{kind} {at}"
        for place, state in left["states"].items():
            assert state in ({}, before["states"][place[0], ""]), f"{kind} {at}: {place}"
        run(story.take_away, there, way, "between", 0).value()
        assert {} == {name: found for name, found in story.look(there).items() if found != whole[name]}, f"{kind} {at}"


def test_s9_s10_a_backup_that_is_killed_leaves_nothing_under_its_name(folder: Folder) -> None:
    """And is made when asked again; what it left behind is gone then. The database is as it was."""
    there = folder("there")
    steps = run(story.copy_while_killed, folder("dry"), 0).value()
    before = story.look(there)
    for at in every(steps, sample=steps if full() else 4):
        assert run(story.copy_while_killed, there, at).killed
        assert ([], 1) == ([*Path(there).glob("copy.db")], len([*Path(there).glob("copy.db.partial-*")]))
    run(story.copy_while_killed, there, 0).value()

    assert before == story.look(there)
    assert ["copy.db"] == sorted(path.name for path in Path(there).glob("copy.db*"))
    with sqlite3.connect(f"{there}/copy.db") as copy, sqlite3.connect(f"{there}/runs.db") as runs:
        assert list(runs.iterdump()) == list(copy.iterdump())
