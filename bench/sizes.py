"""Sizes: how much each case does. FULL is what is published; SMOKE only shows that everything runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "SMOKE", "Size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Counts of all cases."""

    warm_ups: int = 2
    """Runs of A and C before the clock counts."""

    nodes: int = 50
    """A: nodes in a row, so supersteps in a run."""
    linear_runs: int = 8

    turns: int = 200
    """B: messages of the user in one thread."""

    tasks: int = 100
    """C: tasks of the fan-out."""
    fan_out_runs: int = 6

    at_once: int = 32
    """D: threads or asyncio tasks."""
    runs_each: int = 2
    crowd_nodes: int = 20

    big: int = 2000
    """E: checkpoints in the big thread."""
    threads: int = 1000
    """E: other threads in the same database, of two checkpoints each."""
    writes: int = 600
    gets: int = 300
    lists: int = 100
    filtered: int = 10
    deletes: int = 100


FULL = Size()

SMOKE = Size(
    warm_ups=1,
    nodes=3,
    linear_runs=1,
    turns=4,
    tasks=5,
    fan_out_runs=1,
    at_once=2,
    runs_each=1,
    crowd_nodes=2,
    big=12,
    threads=3,
    writes=2,
    gets=2,
    lists=1,
    filtered=1,
    deletes=2,
)
