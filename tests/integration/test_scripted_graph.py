"""Scripted models and tools in a graph: tokens come out of `stream_mode="messages"`, and a crash repeats nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langgraph_ext import LedgerSaver
from langgraph_ext.testing import (
    EffectLog,
    ScriptedChatModel,
    acts_of,
    call,
    calls,
    calls_of,
    crash_at_every_commit,
    scripted_tool,
)
from tests.support.driver import Form

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SCRIPT = [
    calls("Let me see.", call("search", {"q": "a"}), call("search", {"q": "b"})),
    call("search", {"q": "c"}),
    "Done.",
]
ACTS = ['search {"q": "a"} call-0-0', 'search {"q": "b"} call-0-1', 'search {"q": "c"} call-1-0']


def agent(log: Any, saver: LedgerSaver | None = None, form: Form = "sync") -> tuple[Any, ScriptedChatModel]:
    """The loop of model and tools."""
    model = ScriptedChatModel(script=SCRIPT, log=log)
    tools = [scripted_tool("search", lambda q: q.upper(), log=log)]
    bound = model.bind_tools(tools)

    def ask(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aask(state: MessagesState) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("ask", ask if form == "sync" else aask)
    builder.add_node("tools", ToolNode(tools)).add_edge(START, "ask").add_edge("tools", "ask")
    return builder.add_conditional_edges("ask", tools_condition).compile(checkpointer=saver), model


def test_a_graph_streams_the_script_as_messages(form: Form, tmp_path: Path) -> None:
    """Each model message in pieces under one id, which is the one in the state at the end."""
    log = tmp_path / "log"
    app, model = agent(log, form=form)

    given: Any = {"messages": [("user", "hello")]}
    modes = ["messages", "values"]

    async def collect() -> list[Any]:
        return [each async for each in app.astream(given, stream_mode=modes)]

    found = list(app.stream(given, stream_mode=modes)) if form == "sync" else asyncio.run(collect())
    pieces = [said[0] for mode, said in found if mode == "messages"]
    streamed = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
    messages = [state for mode, state in found if mode == "values"][-1]["messages"]

    ids = list(dict.fromkeys(chunk.id for chunk in streamed))
    assert [message.id for message in messages if message.type == "ai"] == ids
    assert [f"scripted-{each.call_id}" for each in model.calls] == ids
    assert ["human", "ai", "tool", "tool", "ai", "tool", "ai"] == [message.type for message in messages]
    assert ["A", "B", "C"] == [message.content for message in messages if message.type == "tool"]
    assert "Let me see.Done." == "".join(str(chunk.content) for chunk in streamed)
    assert (3, 3) == (sum(chunk.chunk_position == "last" for chunk in streamed), len(ids))
    assert ACTS == sorted(act.key for act in acts_of(log))
    model.assert_exhausted()


def scenario(db_url: str, effects: EffectLog) -> None:
    """The agent from its begin, or from where it stood."""
    with LedgerSaver(db_url) as saver:
        app, _ = agent(effects, saver)
        state = app.get_state(CONFIG)
        if state.created_at is None or state.tasks:
            given = {"messages": [("user", "hello")]} if state.created_at is None else None
            app.invoke(given, CONFIG, durability="sync")
        assert [0, 1, 2] == sorted({each.place for each in calls_of(effects)})


@pytest.mark.slow
def test_a_crash_test_knows_the_acts_of_scripted_tools(tmp_path: Path) -> None:
    """They are effects of its log: a plain tool node acts again after some crashes."""
    report = crash_at_every_commit(f"{__name__}:scenario", db=tmp_path / "crash.db", points=["before"], max_broken=1)
    assert {"effect_repeated"} == {finding.code for finding in report.findings}


@pytest.mark.slow
def test_a_crash_test_finds_nothing_else(tmp_path: Path) -> None:
    """The next process is told the same answers, and the state at the end is the same."""
    twice = dict.fromkeys(ACTS, 2)
    points: Any = ["before", "after"]
    crash_at_every_commit(f"{__name__}:scenario", db=tmp_path / "crash.db", points=points, at_most=twice).assert_sound()
