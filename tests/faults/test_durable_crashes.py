"""Durable nodes that act, killed at every durable boundary of their run."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext.testing import crash_at_every_commit
from tests.support.faults import full


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_l28_l30_l4_killed_at_every_boundary_no_effect_is_repeated_and_none_is_forgotten(tmp_path: Path) -> None:
    """Of a run of 40 boundaries and more; every doubt is named, and resolved by what the outside knows."""
    points = ("before", "inside", "after") if full() else ("before", "after")
    report = crash_at_every_commit("tests.support.durable_story:scenario", db=tmp_path / "c.db", points=points)

    report.assert_sound()
    assert report.boundaries >= 40
