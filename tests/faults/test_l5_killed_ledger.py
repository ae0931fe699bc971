"""L5: a process killed at any durable boundary of a run leaves a sound ledger, whose reader misses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import killed_ledger as story
from tests.support.faults import KINDS, Child, every, full, run

APPS = [("sync", "sync"), ("async", "async")]
MORE_APPS = [("sync", "async"), ("async", "sync")]

Folder = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A new folder for a database and a reader's cursor."""

    def make(name: str) -> str:
        made = tmp_path / name
        made.mkdir()
        return str(made)

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "durability"), APPS + MORE_APPS)
def test_l5_l48_a_crash_at_any_boundary_leaves_a_sound_ledger(
    folder: Folder, form: str, durability: str, kind: str
) -> None:
    """A fan-out, a task that raises once and one that asks: killed at a commit, or beside one, and gone on with in
    another process, every visit of the undisturbed run is there and succeeded, and nothing is found wrong. A reader
    with a stored cursor, killed as well, has been shown every event once."""
    points, whole = run(story.start_to_end, folder("dry"), form, durability, kind, 0).value()
    assert story.VISITS == whole
    chosen = every(points.count(kind), sample=points.count(kind) if full() else 3)
    killed = [check_point(folder(str(at)), form, durability, kind, at) for at in chosen]

    # Who shares a commit with whom differs from run to run, so the later points may not be reached.
    assert sum(killed) >= (len(chosen) / 3 if full() else 1)


def check_point(folder: str, form: str, durability: str, kind: str, at: int) -> bool:
    """Kill a run at one point, its reader in the middle of it, and go on with both; whether the point was reached."""
    reader = Child(story.read_on, folder)
    ended = run(story.start_to_end, folder, form, durability, kind, at)
    reader.end()  # SIGKILL, wherever it is
    reader = Child(story.read_on, folder)
    report = run(story.go_on_to_end, folder, form, durability).value()
    reader.say("over")
    reader.wait()

    assert [] == report["findings"]
    assert story.VISITS == report["visits"], f"killed at {kind} {at}"
    assert ["succeeded"] == report["statuses"]
    assert report["events"] == story.seen(folder)
    return ended.killed
