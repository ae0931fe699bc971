"""ReAct: turns of the engine beside those of LangChain's `create_agent`: `python -m bench.react`.

A *turn* is a model that asks for one tool, and that tool; both answer at once, so that what is measured is what lies
around them. An agent run is so many turns and a last answer. Every side has an empty SQLite file of its own and is as
strict: what is acknowledged is committed and synced (for `create_agent`, with `durability="sync"`).

Only ratios are claimed: as in bench.run, the numbers of one round are divided with each other alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.bars import JUDGED_ROUNDS
from bench.driver import Saver, config_of
from bench.machine import MEMORY_FILE_SYSTEMS, file_system
from bench.ratios import paired
from bench.savers import bytes_in
from langgraph_ext import AgentGraphEngine, AgentSpec, LedgerSaver
from langgraph_ext.engine import Limits, compile_spec

__all__ = ["ENGINE", "FILE", "MEASURES", "SIDES", "at_least", "caveats", "look", "main"]

FILE = "runs.db"
QUESTION = "What is the last number?"

Ask = Callable[[str], Awaitable[Any]]
"""Drives one agent run to its end, under the name that it is given; its answer."""

_say = partial(print, file=sys.stderr, flush=True)


class Instant(BaseChatModel):
    """Answers at once, by what it is sent: it asks for the tool until that has answered `turns` times."""

    turns: int

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools  # it knows which it has
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        done = sum(isinstance(each, ToolMessage) for each in messages)
        if done == self.turns:
            answer = AIMessage(f"It is {done}.")
        else:
            call = {"name": "look", "args": {"number": done + 1}, "id": f"call-{done + 1}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


@tool
async def look(number: int) -> str:
    """Look at a number."""
    return f"{number} was seen."


@dataclass(frozen=True, slots=True)
class Side:
    """What drives agents, and where it stores them."""

    label: str
    open: Callable[[Path, Instant], AbstractAsyncContextManager[Ask]]
    """Opens it on a database in the given folder."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much a round does."""

    turns: int
    runs: int
    at_once: int


@asynccontextmanager
async def _engine(folder: Path, model: Instant) -> AsyncIterator[Ask]:
    release = compile_spec(AgentSpec(model=model, tools=(look,), limits=Limits(loops=model.turns + 1)))
    async with AgentGraphEngine(folder / FILE) as engine:

        async def ask(name: str) -> Any:
            return (await engine.arun(release, QUESTION, key=name)).output

        yield ask


@asynccontextmanager
async def _on_sqlite_saver(folder: Path, model: Instant) -> AsyncIterator[Ask]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        yield _agent(model, saver)


@asynccontextmanager
async def _on_ledger_saver(folder: Path, model: Instant) -> AsyncIterator[Ask]:
    async with LedgerSaver(folder / FILE) as saver:
        yield _agent(model, saver)


def _agent(model: Instant, saver: Saver) -> Ask:
    agent = create_agent(model, [look], checkpointer=saver)

    async def ask(name: str) -> Any:
        final = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]}, config_of(name), durability="sync")
        return final["messages"][-1].content

    return ask


ENGINE = Side("engine", _engine)
SIDES = (Side("AsyncSqliteSaver", _on_sqlite_saver), ENGINE, Side("LedgerSaver", _on_ledger_saver))
"""The engine stands between the two that it is divided by, so that a slow moment of the machine falls on both."""

MEASURES = {
    "turn, one at a time": (1e3, "ms"),
    "CPU of a turn, one at a time": (1e3, "ms"),
    "turns, all at once": (1, "/s"),
    "CPU of a turn, all at once": (1e3, "ms"),
    "on disk, of a turn": (1e-3, "kB"),
}
"""What a round gives for a side: by what to multiply it to show it, and its unit then."""


async def measure(side: Side, folder: Path, model: Instant, size: Size) -> dict[str, float]:
    """One side once: a value for each of `MEASURES`, in seconds, turns a second and bytes."""
    took = []
    async with side.open(folder, model) as ask:
        await _asked(ask, "warm-up", size)
        cpu = process_time()
        for number in range(size.runs):
            begun = perf_counter()
            await _asked(ask, f"alone-{number}", size)
            took.append(perf_counter() - begun)
        alone_cpu = process_time() - cpu
        begun, cpu = perf_counter(), process_time()
        await asyncio.gather(*(_asked(ask, f"crowd-{number}", size) for number in range(size.at_once)))
        crowd, crowd_cpu = perf_counter() - begun, process_time() - cpu
    together = size.at_once * size.turns
    values = (
        median(took) / size.turns,
        alone_cpu / (size.runs * size.turns),
        together / crowd,
        crowd_cpu / together,
        bytes_in(folder) / ((1 + size.runs) * size.turns + together),
    )
    return dict(zip(MEASURES, values, strict=True))


async def _asked(ask: Ask, name: str, size: Size) -> None:
    answer = await ask(name)
    assert answer == f"It is {size.turns}.", f"agent run {name!r} answered {answer!r}"


def commits_of_a_turn(folder: Path) -> float:
    """Commits that the engine makes in a turn: from one batch of results that is consumed to the next."""
    with closing(sqlite3.connect(folder / FILE)) as database:
        rows = database.execute(
            "SELECT commit_key FROM agent_commit WHERE root_id = (SELECT agent_run_id FROM agent_run WHERE key = ?) "
            "ORDER BY committed_us",
            ("warm-up",),
        )
        ends = [place for place, (key,) in enumerate(rows) if key.startswith("consume-batch:")]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratios, and progress on stderr."""
    options = _parse(arguments)
    size = Size(options.turns, options.runs, options.at_once)
    model = Instant(turns=size.turns)
    measured: dict[str, list[dict[str, float]]] = {side.label: [] for side in SIDES}
    commits = 0.0
    for number in range(options.rounds):
        for side in SIDES[:: 1 if number % 2 == 0 else -1]:
            gc.collect()
            os.sync()  # what others left to be written is not paid for by the syncs of this one
            with TemporaryDirectory(dir=options.dir, prefix="bench-") as folder:
                measured[side.label].append(asyncio.run(measure(side, Path(folder), model, size)))
                if side is ENGINE:
                    commits = commits_of_a_turn(Path(folder))
        _say(f"round {number + 1} of {options.rounds}")
    told = [*_table(measured, size), f"commits of the engine in a turn: {commits:g}"]
    print("\n".join([*told, *(f"warning: {caveat}" for caveat in caveats(options))]))
    return 0


def _table(measured: dict[str, list[dict[str, float]]], size: Size) -> list[str]:
    """A line for each measure: the engine's ratios to its peers, and the medians of all for context."""
    peers = [side.label for side in SIDES if side is not ENGINE]
    lines = [f"agent runs of {size.turns} turns, {size.at_once} at once; the engine divided by create_agent on …"]
    lines.append(_line("", [f"… {peer}" for peer in peers], [ENGINE.label, *peers]))
    for name, (factor, unit) in MEASURES.items():
        ours = [numbers[name] for numbers in measured[ENGINE.label]]
        found = [paired(ours, [numbers[name] for numbers in measured[peer]]) for peer in peers]
        ratios = [f"{each.ratio:.2f} ({each.low:.2f} – {each.high:.2f})" for each in found]
        medians = [found[0].ours, *(each.peer for each in found)]
        lines.append(_line(name, ratios, [f"{value * factor:,.3g} {unit}" for value in medians]))
    return lines


def _line(name: str, ratios: Sequence[str], medians: Sequence[str]) -> str:
    return f"  {name:30}" + "".join(f"{each:>22}" for each in ratios) + "".join(f"{each:>18}" for each in medians)


def caveats(options: argparse.Namespace) -> list[str]:
    """What a run's ratios cannot be judged by."""
    found = []
    if options.rounds < JUDGED_ROUNDS:
        found.append(f"{options.rounds} rounds are too few to judge a ratio; {JUDGED_ROUNDS} are needed")
    if (kind := file_system(options.dir)) in MEMORY_FILE_SYSTEMS:
        found.append(f"the databases were on {kind}, where a sync costs nothing; name a folder on a disk with --dir")
    return found


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.react", description="Turns of agents, side by side.")
    parser.add_argument("--rounds", type=at_least(1), default=JUDGED_ROUNDS, help="default: %(default)s")
    parser.add_argument("--turns", type=at_least(2), default=20, help="of an agent run; default: %(default)s")
    parser.add_argument("--runs", type=at_least(1), default=5, help="one at a time, in a round; default: %(default)s")
    parser.add_argument("--at-once", type=at_least(1), default=200, help="default: %(default)s")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the databases are; default: %(default)s"
    )
    return parser.parse_args(arguments)


def at_least(least: int) -> Callable[[str], int]:
    """Reads a number of an option."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"it must be at least {least}")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main())
