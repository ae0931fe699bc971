"""S2: what a chat through an AgentNode takes, over the whole database: saver, ledger and engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_ext import AgentNode, LedgerSaver
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.build import config
from tests.support.growing import pages_used, said

TURNS = 200
SOME = 60


def look(number: int) -> str:
    """Look something up."""
    return said(f"found {number}", 1_000)


def _scripts() -> Any:
    for number in range(TURNS):
        yield call("look", {"number": number})
        yield said(f"answer {number}", 1_000)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_s2_a_turn_of_an_agents_chat_takes_what_an_earlier_one_took(tmp_path: Path, durability: Any) -> None:
    """Bytes of all pages, of a message, a tool call, its result and an answer, of 1 KB each: within a tenth."""
    path = tmp_path / "runs.db"
    used = {}

    async def chat() -> None:
        async with LedgerSaver(path, fsync="normal") as saver:
            node = AgentNode(name="clerk", model=ScriptedChatModel(script=list(_scripts())), tools=[look])
            app = StateGraph(MessagesState).add_node(node).add_edge(START, "clerk").compile(checkpointer=saver)
            for turn in range(TURNS):
                given: Any = {"messages": [HumanMessage(said(f"question {turn}", 1_000))]}
                final = await app.ainvoke(given, config(ns=None), durability=durability)
                assert 4 * (turn + 1) == len(final["messages"])
                used[turn] = pages_used(path)

    asyncio.run(chat())
    early, late = (used[at] - used[at - SOME] for at in (10 + SOME, TURNS - 1))
    assert 0.9 < late / early < 1.1
