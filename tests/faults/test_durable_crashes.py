"""Durable nodes that act, killed at every durable boundary of their run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.testing import crash_at_every_commit
from tests.support.faults import full


def test_the_durable_payment_of_the_examples_is_sound(tmp_path: Path) -> None:
    """Killed around its charge; `make faults` kills it everywhere."""
    at: Any = {"points": ("before", "after")} if full() else {"only": (12, "after")}
    report = crash_at_every_commit("examples.durable_payment:scenario", db=tmp_path / "c.db", **at)

    report.assert_sound()
    assert {"order-7": "succeeded"} == report.ended
    assert () == report.varying


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_l28_l30_l4_killed_at_every_boundary_no_effect_is_repeated_and_none_is_forgotten(tmp_path: Path) -> None:
    """Of a run of 39 boundaries and more; every doubt is named, and resolved by what the outside knows."""
    points = ("before", "inside", "after") if full() else ("before", "after")
    report = crash_at_every_commit("tests.support.durable_story:scenario", db=tmp_path / "c.db", points=points)

    report.assert_sound()
    assert report.boundaries >= 39
