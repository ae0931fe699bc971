"""Fixtures of the tests of ReAct: engines on one database, which is made once and copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import AgentGraphEngine
from langgraph_ext.testing import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    """The engines' clock, which stands still until it is told to go on."""
    return FixedClock()


@pytest.fixture
def engines(empty: Path, tmp_path: Path, clock: FixedClock) -> Iterator[Callable[..., AgentGraphEngine]]:
    """Makes engines on one file."""
    path = tmp_path / "agents.db"
    shutil.copy(empty, path)
    made: list[AgentGraphEngine] = []

    def make(**options: Any) -> AgentGraphEngine:
        made.append(AgentGraphEngine(path, clock=clock, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def engine(engines: Callable[..., AgentGraphEngine]) -> AgentGraphEngine:
    """One of them."""
    return engines()
