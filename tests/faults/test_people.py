"""Two people and a worker: they answer, cancel, steer and raise at random while it runs the graph and is killed.

python -m tests.support.people 17        one seed, told
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import faults
from tests.support.people.cast import Cast
from tests.support.people.seed import Played, play, story_of
from tests.support.people.witness import findings

SEEDS = 5000 if faults.full() else 100
CHUNK = 10


@pytest.fixture(scope="module")
def cast() -> Iterator[Cast]:
    """They serve all seeds."""
    with Cast() as made:
        yield made


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_l45_whatever_two_people_ask_while_workers_are_killed_counts_once(
    first: int, cast: Cast, tmp_path: Path, empty: Path
) -> None:
    """No answer is used twice or elsewhere, no limit is lost or doubled, and the ledger is sound: in every seed."""
    played = [_played(seed, cast, tmp_path, empty) for seed in range(first, first + CHUNK)]

    assert sum(each.kills > 0 for each in played) >= CHUNK / 2
    for kind in ("answer", "steer", "raise"):
        assert sum(each.accepted(kind) for each in played) > 0


def test_a_seed_chooses_the_same_each_time() -> None:
    assert [story_of(seed) for seed in range(50)] == [story_of(seed) for seed in range(50)]


def _played(seed: int, cast: Cast, folder: Path, empty: Path) -> Played:
    played = play(story_of(seed), cast, folder / str(seed), empty)
    if found := findings(played):
        pytest.fail(played.told(found))
    shutil.rmtree(played.folder)
    return played
