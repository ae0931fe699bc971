"""Agents: how many commits agent runs of the engine share, one at a time and many at once: `python -m bench.agents`.

There is no peer to divide by: the ratio is that of many runs at once to the same runs one after the other, in one run
of this program. A *commit* is one of the engine's; a *sync* is what the disk sees.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from langchain_core.language_models import FakeListChatModel

from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.engine import AgentGraphEngine, Behaviours, Complete, Progress

__all__ = ["main"]

STEPS = 5


class Counting(WriteConnection):
    """Counts what is synced."""

    syncs = 0

    def commit(self) -> None:
        Counting.syncs += 1
        super().commit()

    def run_alone(self, sql: str, params: Sequence[object]) -> int:
        Counting.syncs += 1
        return super().run_alone(sql, params)


class Steps:
    """Goes on a few times, and calls nothing."""

    async def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Any
    ) -> AsyncGenerator[Progress | Complete, dict[str, Any]]:
        """Go on from where the task stands."""
        del continuation, runtime
        for number in range(STEPS):
            yield Progress(continuation={"protocol": 1, "phase": f"step-{number}"})
        yield Complete(output=input, continuation={"protocol": 1, "phase": "completed"})


SPEC = {
    "kind": "react",
    "entry": "walker",
    "roles": [{"name": "walker", "role": "react", "model": "none"}],
    "bindings": [{"role": "walker", "behaviour": "steps", "version": 1}],
    "models": {"none": FakeListChatModel(responses=["it is never asked"])},
}


async def measure(folder: Path, count: int, at_once: int) -> tuple[float, int]:
    """Seconds and syncs of so many agent runs."""
    behaviours = Behaviours()
    behaviours.register("steps", 1, Steps)
    database = open_database(folder / f"{at_once}.db", connection=Counting)
    gate = asyncio.Semaphore(at_once)
    async with AgentGraphEngine(database, behaviours=behaviours) as engine:
        await engine.arun(SPEC, 0)

        async def one(number: int) -> None:
            async with gate:
                await engine.arun(SPEC, number)

        before, begun = Counting.syncs, perf_counter()
        await asyncio.gather(*(one(number) for number in range(count)))
        took = perf_counter() - begun
    await database.aclose()
    return took, Counting.syncs - before


def main() -> int:
    """Print what one run at a time costs, and two hundred at once."""
    count, commits = 200, 200 * (STEPS + 4)
    with TemporaryDirectory() as folder:
        alone, alone_syncs = asyncio.run(measure(Path(folder), count, 1))
        crowd, crowd_syncs = asyncio.run(measure(Path(folder), count, count))
    print(f"{count} agent runs of {STEPS} steps, {commits} commits of the engine")
    print(f"  one at a time   {alone_syncs / commits:5.2f} syncs a commit")
    faster = alone / crowd
    print(f"  all at once     {crowd_syncs / commits:5.2f} syncs a commit, {faster:.1f} times as many runs a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
