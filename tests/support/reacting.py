"""Agents for tests of ReAct: a scripted model, tools that note what they did, and a worker that dies at a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import create_model

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentSpec, AgentStatus, OperationRecord
from langgraph_ext.engine.commits import RuntimeCommit
from langgraph_ext.engine.operation_changes import Allow
from langgraph_ext.errors import StoreError
from langgraph_ext.testing import ScriptedChatModel
from tests.support.bench import Strike, StrikingStore

__all__ = [
    "FREEZES",
    "Crash",
    "Notes",
    "agent",
    "answers",
    "begun_and_left",
    "crash_at",
    "history",
    "operations",
    "output_of",
    "purposes",
    "results",
    "scripted",
    "sent",
    "strikes_of",
    "told",
    "transcript_at",
]


def scripted(*steps: Any, **options: Any) -> ScriptedChatModel:
    """A model that plays these steps, one a turn."""
    return ScriptedChatModel(script=list(steps), **options)


def agent(model: ScriptedChatModel | Sequence[Any], *tools: Any, **more: Any) -> AgentSpec:
    """An agent of a model, or of the steps of one."""
    made = model if isinstance(model, ScriptedChatModel) else scripted(*model)
    return AgentSpec(model=made, tools=tools, **more)


class Notes(list[Any]):
    """What tools were called with, in this order; and tools that note it here."""

    def tool(self, name: str, act: Callable[[Any], Any] = lambda x: f"{x}!", **options: Any) -> BaseTool:
        """An async tool of one argument `x`, an int: notes its name with it, and returns what `act` makes of it."""

        async def called(x: int) -> Any:
            self.append((name, x))
            found = act(x)
            return await found if hasattr(found, "__await__") else found

        schema = create_model(name, x=(int, ...))
        return StructuredTool.from_function(
            coroutine=called, name=name, description="A tool.", args_schema=schema, **options
        )


# -- what came of it


def output_of(run: AgentRunRecord) -> Any:
    """What an agent run that has succeeded has answered."""
    assert AgentStatus.SUCCEEDED is run.status, (run.status, run.reason, run.message)
    return run.output


def history(engine: AgentGraphEngine, run: AgentRunRecord) -> list[tuple[str, str]]:
    """Kind and text of each message."""
    return [(each.kind, each.message.text) for each in engine.transcript(run.agent_run_id)]


def results(engine: AgentGraphEngine, run: AgentRunRecord) -> list[str | None]:
    """What the model is told of each tool call, in their order."""
    return [None if each.result is None else each.result.text for each in engine.slots(run.agent_run_id)]


def answers(engine: AgentGraphEngine, run: AgentRunRecord) -> list[tuple[str, str]]:
    """Tool call id and text of each result in the history."""
    found = [each.message for each in engine.transcript(run.agent_run_id) if each.kind == "result"]
    return [(each.tool_call_id, each.text) for each in found]  # type: ignore[attr-defined]


def operations(engine: AgentGraphEngine, run: AgentRunRecord, kind: str = "") -> list[OperationRecord]:
    """Its calls of a kind."""
    return [each for each in engine.operations(run.agent_run_id) if kind in ("", each.kind)]


def purposes(engine: AgentGraphEngine, run: AgentRunRecord, kind: str = "") -> list[str]:
    """By what names its calls of a kind are found again."""
    return sorted(each.purpose for each in operations(engine, run, kind))


def sent(model: ScriptedChatModel, number: int = -1) -> list[tuple[str, str]]:
    """Type and text of each message that a model was sent; by its last call, or another one."""
    return [(each["type"], each["content"]) for each in model.calls[number].messages]


def told(model: ScriptedChatModel) -> str:
    """The last message that a model was sent."""
    return sent(model)[-1][1]


def transcript_at(path: str, agent_run_id: str) -> list[tuple[int, str, str | None, str]]:
    """The transcript of an agent run, read by an engine of its own: seq, kind, id and text."""
    with AgentGraphEngine(path) as engine:
        found = engine.transcript(agent_run_id)
        return [(each.seq, each.kind, each.message.id, each.message.text) for each in found]


# -- a worker that dies

FREEZES = "freezes"
"""The commit that freezes a request, and permits its first call."""


class Crash:
    """The database is gone from a commit on: nothing is written any more, as when a process has died there.

    Args:
        kind: What the commit's key begins with; or `FREEZES`, which freezes a request that is then sent.
        where: `before` or `after` it.
        at: Which of them.
    """

    def __init__(self, kind: str, where: str, at: int) -> None:
        self.kind, self.where, self.left = kind, where, at

    def __call__(self, wanted: RuntimeCommit, where: str) -> None:
        if self.left > 0 and where == self.where and self._is_one(wanted):
            self.left -= 1
        if self.left == 0:
            raise StoreError("gone", code="store_io")

    def _is_one(self, wanted: RuntimeCommit) -> bool:
        if self.kind == FREEZES:
            return any(isinstance(each, Allow) or getattr(each, "dispatch", False) for each in wanted.changes)
        return wanted.key.startswith(self.kind)


def crash_at(engine: AgentGraphEngine, kind: str, where: str = "after", *, at: int = 1) -> None:
    """Let whoever drives with this engine die at a commit."""
    strikes_of(engine).append(Crash(kind, where, at))


def strikes_of(engine: AgentGraphEngine) -> list[Strike]:
    """What happens beside the commits of this engine."""
    store = engine._store
    if not isinstance(store, StrikingStore):
        struck = StrikingStore(store.database, clock_us=store.clock_us, ids=store.ids, serde=store.serde)
        struck.strikes = []
        engine._store = store = struck
    return store.strikes


def begun_and_left(
    engine: AgentGraphEngine, spec: AgentSpec, kind: str, where: str = "after", *, at: int = 1
) -> AgentRunRecord:
    """Start an agent run, and drive it until its worker dies at a commit."""
    run = engine.start(spec, "go")
    crash_at(engine, kind, where, at=at)
    with pytest.raises(StoreError):
        engine.drive(run.agent_run_id)
    return run
