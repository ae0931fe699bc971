"""Chat: turns through an AgentNode beside those of LangChain's `create_agent`: `python -m bench.chat`.

A turn is a message, a model that asks for one tool, that tool, and an answer; model and tool answer at once, so that
what is measured is what lies around them. All turns are of one thread. Every side has an empty SQLite file of its own
and is as strict: what is acknowledged is committed and synced (`durability="sync"`).

Only ratios are claimed: as in bench.run, the numbers of one round are divided with each other alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.driver import config_of
from bench.ratios import paired
from bench.react import FILE, at_least, caveats, look
from bench.savers import bytes_in
from langgraph_ext import AgentNode, LedgerSaver

__all__ = ["MEASURES", "SIDES", "main"]

_THREAD = "chat"


class Talkative(BaseChatModel):
    """Answers at once: a message by asking for the tool, a result by saying so."""

    @property
    def _llm_type(self) -> str:
        return "talkative"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools  # it knows which it has
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if messages[-1].type == "human":
            call = {"name": "look", "args": {"number": len(messages)}, "id": f"call-{len(messages)}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage(f"I have looked at {len(messages) - 2}.")
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


@dataclass(frozen=True, slots=True)
class Side:
    """What a chat is held with, and where it is stored."""

    label: str
    open: Callable[[Path], AbstractAsyncContextManager[Any]]
    """Opens its graph on a database in the given folder."""


@asynccontextmanager
async def _agent_node(folder: Path) -> AsyncIterator[Any]:
    async with LedgerSaver(folder / FILE) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node(AgentNode(name="agent", model=Talkative(), tools=[look]))
        builder.add_edge(START, "agent")
        yield builder.compile(checkpointer=saver)


@asynccontextmanager
async def _create_agent(folder: Path) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        yield create_agent(Talkative(), [look], checkpointer=saver)


OURS, PEER = SIDES = (Side("AgentNode", _agent_node), Side("create_agent", _create_agent))

MEASURES = {
    "turn, of the whole chat": (1e3, "ms"),
    "turn, of its first tenth": (1e3, "ms"),
    "turn, of its last tenth": (1e3, "ms"),
    "CPU of a turn": (1e3, "ms"),
    "on disk, of a turn": (1e-3, "kB"),
}
"""What a round gives for a side: by what to multiply it to show it, and its unit then."""


async def measure(side: Side, folder: Path, turns: int) -> dict[str, float]:
    """One chat: a value for each of `MEASURES`, in seconds and bytes. Both tenths are medians, the whole is a mean."""
    took, tenth = [], max(1, turns // 10)
    async with side.open(folder) as app:
        await _say(app, 0)  # what is imported late is
        cpu = process_time()
        for number in range(1, turns + 1):
            begun = perf_counter()
            await _say(app, number)
            took.append(perf_counter() - begun)
        cpu = process_time() - cpu
    values = (
        sum(took) / turns,
        median(took[:tenth]),
        median(took[-tenth:]),
        cpu / turns,
        bytes_in(folder) / (turns + 1),
    )
    return dict(zip(MEASURES, values, strict=True))


async def _say(app: Any, number: int) -> None:
    given = {"messages": [HumanMessage(f"This is turn {number}.")]}
    final = await app.ainvoke(given, config_of(_THREAD), durability="sync")
    answer, asked = final["messages"][-1].content, 4 * number + 1
    assert answer == f"I have looked at {asked}.", f"turn {number} was answered {answer!r}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratios, and progress on stderr."""
    options = _parse(arguments)
    measured: dict[str, list[dict[str, float]]] = {side.label: [] for side in SIDES}
    for number in range(options.rounds):
        for side in SIDES[:: 1 if number % 2 == 0 else -1]:
            gc.collect()
            os.sync()  # what others left to be written is not paid for by the syncs of this one
            with TemporaryDirectory(dir=options.dir, prefix="bench-") as folder:
                measured[side.label].append(asyncio.run(measure(side, Path(folder), options.turns)))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    told = [*_table(measured, options.turns), *(f"warning: {caveat}" for caveat in caveats(options))]
    print("\n".join(told))
    return 0


def _table(measured: dict[str, list[dict[str, float]]], turns: int) -> list[str]:
    """A line for each measure: the ratio and its spread, and the medians of both for context."""
    lines = [f"a chat of {turns} turns: AgentNode on LedgerSaver divided by create_agent on AsyncSqliteSaver"]
    for name, (factor, unit) in MEASURES.items():
        found = paired(*([numbers[name] for numbers in measured[side.label]] for side in SIDES))
        ratio = f"{found.ratio:.2f} ({found.low:.2f} – {found.high:.2f})"
        medians = "".join(f"{f'{value * factor:,.3g} {unit}':>14}" for value in (found.ours, found.peer))
        lines.append(f"  {name:28}{ratio:>22}{medians}")
    return lines


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.chat", description="Turns of chats, side by side.")
    parser.add_argument("--rounds", type=at_least(1), default=7, help="default: %(default)s")
    parser.add_argument("--turns", type=at_least(2), default=200, help="of a chat; default: %(default)s")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the databases are; default: %(default)s"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
