"""Scenario 24: a hundred tool calls over a long conversation, of which each turn stores and reads as much as any."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from langgraph_ext.database import Tx
from langgraph_ext.engine import AgentGraphEngine, AgentSpec, Compaction, Limits, ToolPolicy
from langgraph_ext.engine.store import Store
from langgraph_ext.testing import ScriptedChatModel, call, say

TURNS = 100
PAGE = "every word of it is worth its money. " * 220
"""What a tool returns: about 2,000 tokens, so that a hundred are 200,000."""

SOFT, HARD = 20_000, 24_000


@dataclass
class Turn:
    """What the model was sent, and what was read and stored since it was asked before."""

    sent: int
    stored: int
    rows: int
    bytes: int


class CountedTx(Tx):
    """A transaction whose queries and answers are counted."""

    __slots__ = ("counts",)

    def __init__(self, tx: Tx, counts: Counter[str]) -> None:
        super().__init__(tx._execute, tx._queries, repeated=tx.repeated, run_apart=tx._run_apart)
        self.counts = counts

    def all(self, name: str, /, **params: object) -> Any:
        return self._counted(super().all(name, **params))

    def maybe(self, name: str, /, **params: object) -> Any:
        found = super().maybe(name, **params)
        self._counted([] if found is None else [found])
        return found

    def _counted(self, rows: Any) -> Any:
        self.counts["rows"] += len(rows)
        self.counts["bytes"] += sum(len(each) for row in rows for each in row if isinstance(each, str | bytes))
        return rows


class CountingStore(Store):
    """A store whose reading is counted."""

    counts: Counter[str]

    async def transact(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return await super().transact(lambda tx: fn(CountedTx(tx, self.counts), *args, **kwargs))

    async def read(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return await super().read(lambda tx: fn(CountedTx(tx, self.counts), *args, **kwargs))


class Reader:
    """Scripts of a model that asks for page after page, and notes what each turn has cost."""

    def __init__(self, path: str, counts: Counter[str]) -> None:
        self.path, self.counts = path, counts
        self.turns: list[Turn] = []

    def number_of(self, messages: list[BaseMessage]) -> int:
        """Which page is next: the one behind the last that it was shown."""
        last = messages[-1].text
        number = int(last.split()[1]) + 1 if last.startswith("page ") else 0
        sent = sum(len(each.text) for each in messages) // 4
        if len(self.turns) == number:
            self.turns.append(Turn(sent, self._stored(), self.counts["rows"], self.counts["bytes"]))
            self.counts.clear()
        return number

    def _stored(self) -> int:
        """The bytes of the whole database."""
        connection = sqlite3.connect(self.path)
        try:
            (pages,), (size,) = (connection.execute(f"PRAGMA page_{each}").fetchone() for each in ("count", "size"))
            return int(pages * size)
        finally:
            connection.close()


def turn_page(number: int) -> str:
    """Turn to a page."""
    return f"page {number} {PAGE}"


def agent(reader: Reader) -> AgentSpec:
    script: list[Any] = [call("turn_page", {"number": number}) for number in range(TURNS)]
    summaries = ScriptedChatModel(script=say("Pages were read. " * 20), chunk_characters=400)
    return AgentSpec(
        model=ScriptedChatModel(script=[*script, say("read")], by=reader.number_of, chunk_characters=400),
        system_prompt="Read.",
        tools=[turn_page],
        tool_policies={"turn_page": ToolPolicy(effect="repeatable")},
        compaction=Compaction(soft_tokens=SOFT, hard_tokens=HARD, model=summaries),
        limits=Limits(loops=TURNS + 1),
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reader, Mapping[str, Any]]:
    """The whole conversation, once: what each turn has cost, and how it ended."""
    path = str(tmp_path_factory.mktemp("long") / "runs.db")
    with AgentGraphEngine(path) as engine:
        found = engine._store
        store = CountingStore(found.database, clock_us=found.clock_us, ids=found.ids, serde=found.serde)
        store.counts = Counter()
        engine._store = store
        reader = Reader(path, store.counts)
        done = engine.run(agent(reader), "Read all of it.")
        transcript = engine.transcript(done.agent_run_id, limit=10_000)
    return reader, {"run": done, "transcript": transcript}


def test_scenario_24_a_hundred_calls_over_a_long_conversation_come_to_their_end(told: Any) -> None:
    """Nothing of the 200,000 tokens is lost: what was compacted stays on record."""
    reader, ended = told
    kinds = Counter(each.kind for each in ended["transcript"])
    pages = [each.message.text.split()[1] for each in ended["transcript"] if each.kind == "result"]
    assert ("succeeded", "read", TURNS) == (ended["run"].status, ended["run"].output, ended["run"].tool_calls)
    assert list(map(str, range(TURNS))) == pages
    assert (TURNS + 1, 1) == (kinds["decision"], kinds["input"])
    assert kinds["summary"] > 5
    assert 200_000 <= sum(len(each.message.text) for each in ended["transcript"]) // 4
    assert TURNS + 1 == len(reader.turns)


def test_scenario_24_a_late_turn_stores_as_much_as_an_early_one(told: Any) -> None:
    """Within a tenth, over twenty turns each."""
    stored = [each.stored for each in told[0].turns]
    early, late = stored[30] - stored[10], stored[90] - stored[70]
    assert early == pytest.approx(late, rel=0.1)


def test_scenario_24_a_late_turn_reads_as_much_as_an_early_one(told: Any) -> None:
    """Rows and bytes, over twenty turns each; and what the model is sent is bounded by the window."""
    turns = told[0].turns
    for what in ("rows", "bytes"):
        early, late = (sum(getattr(each, what) for each in turns[at : at + 20]) for at in (15, 75))
        assert late <= early * 1.1, what
    assert max(each.sent for each in turns) <= HARD
    assert max(each.bytes for each in turns) < 40 * SOFT
