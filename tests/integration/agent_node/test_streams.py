"""A7: what of an agent is in the streams of its graph."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from langgraph_ext import AgentNode
from langgraph_ext.engine import Compaction
from langgraph_ext.ledger.following import advance
from langgraph_ext.nodes import agent_events
from langgraph_ext.testing import ScriptedChatModel, call, say
from tests.support.acted import Acts
from tests.support.agent_nodes import APPROVE, agent, engine_of, graph, said
from tests.support.reacting import Notes


def test_a7_tokens_are_seen_in_the_parents_stream_with_the_ids_that_are_stored(acts: Acts) -> None:
    """Without `subgraphs=True`, at the node; each answer once."""
    app = graph(acts.saver, agent([call("t", {"x": 1}), say("one two three")], Notes().tool("t")))
    parts = acts.stream(app, said("go"), ["messages", "updates"])
    pieces = [part for mode, part in parts if mode == "messages"]
    [update] = [part for mode, part in parts if mode == "updates"]
    assert {"support"} == {about["langgraph_node"] for _, about in pieces}
    stored = update["support"]["messages"]
    last = [piece for piece, _ in pieces if piece.id == stored[-1].id]
    assert len(last) > 1
    assert "one two three" == "".join(piece.text for piece in last)
    assert {each.id for each in stored} == {piece.id for piece, _ in pieces}


def test_a7_events_of_the_engine_are_in_the_custom_stream(acts: Acts) -> None:
    """Each once, in their order, over a pause; and what tools write besides."""
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    app = graph(acts.saver, node)
    first = [part for mode, part in acts.stream(app, said("go"), ["custom"]) if mode == "custom"]
    second = [part for _, part in acts.stream(app, Command(resume=APPROVE), ["custom"])]
    [run] = engine_of(acts).runs()
    told = [each for each in (*first, *second) if each.get("type") == "agent_event"]
    assert {run.agent_run_id} == {each["agent_run_id"] for each in told}
    seqs = [each["seq"] for each in told]
    assert sorted(set(seqs)) == seqs
    names = [each["name"] for each in told]
    assert "request.opened" in [each["name"] for each in first]
    assert "agent.succeeded" == [each for each in names if each.startswith("agent.")][-1]


def test_a7_each_event_is_read_once(acts: Acts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is looked for new ones while the agent goes on; and nothing of what was before."""
    read, looks, enough = list[int](), count(1), tmp_path / "enough"

    def looked(tx: Any, following: Any) -> Any:
        stride = advance(tx, following)
        read.extend(event.cursor for event in stride.events)
        if next(looks) == 20:
            enough.touch()
        return stride

    monkeypatch.setattr(agent_events, "advance", looked)
    monkeypatch.setattr(agent_events, "_LOOK_SECONDS", 0.001)
    steps = [call("t", {"x": 1}), say("done", until=enough)]
    app = graph(acts.saver, agent(steps, Notes().tool("t"), interrupt_on={"t": True}))
    told = [part for given in (said("go"), Command(resume=APPROVE)) for _, part in acts.stream(app, given, ["custom"])]
    assert sorted(set(read)) == read
    assert len(read) == len([each for each in told if each.get("type") == "agent_event"])
    assert next(looks) > 20


def test_a7_tool_calls_are_in_the_tools_stream(acts: Acts) -> None:
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], Notes().tool("t")))
    parts = [part for mode, part in acts.stream(app, said("go"), ["tools"]) if mode == "tools"]
    assert parts
    assert {"t"} == {part.get("tool_name", part.get("name")) for part in parts if "finish" not in str(part)}


def test_a7_summaries_are_not_in_the_stream(acts: Acts) -> None:
    summaries = ScriptedChatModel(script=["a secret summary"], by=lambda _: 0)
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    notes = Notes()
    node = AgentNode(
        name="support",
        model=ScriptedChatModel(script=steps, by=lambda _: len(notes)),  # its history is cut
        tools=[notes.tool("t", lambda x: "word " * 60)],
        compaction=Compaction(soft_tokens=60, model=summaries),
    )
    app = graph(acts.saver, node)
    pieces = [part for mode, part in acts.stream(app, said("go"), ["messages"]) if mode == "messages"]
    assert summaries.calls
    assert not [piece for piece, _ in pieces if "secret" in piece.text]
