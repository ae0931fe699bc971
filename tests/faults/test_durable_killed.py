"""Processes that are killed inside a durable body, and what the next one makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import faults
from tests.support.killed_durable import authorize, ran, run


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_l19_l23_a_killed_attempt_is_given_up_and_followed_by_the_next(
    tmp_path: Path, form: str, durability: str
) -> None:
    """Of the same visit: admission had waited until the checkpoint was stored, so the task keeps its identity."""
    folder = str(tmp_path)
    assert faults.run(run, folder, form, durability, "none", False).killed
    code, attempts = faults.run(run, folder, form, durability, "none", True).value()

    assert ("done", ["a", "b", "b", "c"]) == (code, [name.partition(":")[0] for name in ran(folder)])
    assert [("a", 1, "succeeded"), ("b", 1, "interrupted"), ("b", 2, "succeeded"), ("c", 1, "succeeded")] == attempts
    assert 1 == len({name for name in ran(folder) if name.startswith("b:")})


@pytest.mark.parametrize("form", ["sync", "async"])
def test_l20_an_opaque_body_that_was_killed_stops_the_run_until_somebody_authorizes_it(
    tmp_path: Path, form: str
) -> None:
    """Refused as often as it is tried; the attempt is on record as interrupted; authorized, it runs once more."""
    folder = str(tmp_path)
    assert faults.run(run, folder, form, "sync", "opaque", False).killed
    for _ in range(2):
        code, attempts = faults.run(run, folder, form, "sync", "opaque", True).value()
        assert ("recovery_required", [("a", 1, "succeeded"), ("b", 1, "interrupted")]) == (code, attempts)
    authorize(folder)
    code, attempts = faults.run(run, folder, form, "sync", "opaque", True).value()

    assert ("done", ["a", "b", "b", "c"]) == (code, [name.partition(":")[0] for name in ran(folder)])
    assert ("b", 2, "succeeded") in attempts
