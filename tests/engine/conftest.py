"""Fixtures of the engine's tests: a bench, and a way to make more of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bench import Bench


@pytest.fixture
def benches(tmp_path: Path, prepared: Callable[[Path], Path]) -> Iterator[Callable[..., Bench]]:
    """Makes benches, of one database file unless another name is given."""
    made: list[Bench] = []

    def make(name: str = "runs", **options: Any) -> Bench:
        made.append(Bench(str(prepared(tmp_path / f"{name}.db")), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def bench(benches: Callable[..., Bench]) -> Bench:
    """A bench on a new database."""
    return benches()
