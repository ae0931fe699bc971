"""S7: a run whose process is killed at any durable boundary goes on in another one and ends as if nothing had been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import children
from tests.faults.children import NODES, RUN, noted
from tests.support.faults import KINDS, every, full, run

APPS = [("sync", "sync"), ("async", "sync"), ("async", "async")]
MORE_APPS = [("sync", "async"), ("sync", "exit"), ("async", "exit")]

Folder = Callable[[str], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A new folder for a database and what its processes note."""

    def make(name: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        return made

    return make


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "durability"), APPS + (MORE_APPS if full() else []))
def test_s7_a_crash_at_any_boundary_of_a_run_loses_nothing(
    folder: Folder, form: str, durability: str, kind: str, part: int
) -> None:
    """Twelve nodes, killed before a statement, before a commit or after it, each commit in turn: the final state is
    that of an undisturbed run, acknowledged checkpoints are there, no node whose result was stored runs again."""
    state, points = run(children.start, str(folder("dry")), form, durability, "", 0).value()
    assert state == RUN
    chosen = every(points.count(kind), sample=points.count("before") if (form, durability) == APPS[0] else 6)[part::2]
    killed = [check_point(str(folder(str(at))), form, durability, kind, at) for at in chosen]

    assert sum(killed) >= len(chosen) * 0.5  # who shares a commit with whom differs from run to run


def check_point(folder: str, form: str, durability: str, kind: str, at: int) -> bool:
    """Kill a run at one point and resume it; whether the point was reached."""
    ended = run(children.start, folder, form, durability, kind, at)
    ran_before, acknowledged = noted(f"{folder}/log"), noted(f"{folder}/acks")
    report = run(children.resume, folder, form, durability).value()
    again = Counter(noted(f"{folder}/log")) - Counter(ran_before)

    assert report["state"] == RUN
    assert [] == [name for name in report["committed"] if again[name]], f"a stored result was computed again at {at}"
    assert set(acknowledged) <= set(report["stored"]) <= set(report["after"])
    assert set(NODES) == set(noted(f"{folder}/log"))
    assert max(Counter(ran_before).values(), default=0) <= 1 == max(again.values(), default=1)
    return ended.killed


def test_s7_a_run_that_is_killed_again_and_again_ends(folder: Folder) -> None:
    """Each process is killed at its third commit, so each brings the run a little further; none brings it back."""
    place = str(folder("again"))
    for _ in range(40):
        if not run(children.start_or_go_on, place, 3).killed:
            break
    report = run(children.resume, place, "sync", "sync").value()

    assert report["state"] == RUN
    assert set(NODES) == set(report["committed"])
    assert max(Counter(noted(f"{place}/log")).values()) <= 2
