"""E18: what hooks decide, and what counts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import (
    AgentStatus,
    Begin,
    Behaviours,
    Complete,
    Deny,
    Hook,
    Replace,
    Runtime,
    Wait,
    operations_ended,
)
from tests.support.agents import Told, Yielded, phase


async def one_model(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Asks a model, and gives back its outcome and its request."""
    asked = runtime.operations.get("m")
    if asked is None:
        request = {"messages": [{"type": "human", "data": {"content": "?"}}]}
        begin = Begin(agent_task_id=runtime.task.agent_task_id, purpose="m", kind="model", name="chat", request=request)
        yield Wait(continuation=phase("a"), condition=operations_ended("m"), changes=(begin,))
    else:
        said = asked.request["messages"][0]["data"]["content"]
        yield Complete(output={"said": said, **asked.outcome}, continuation=phase("completed"))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[AgentGraphEngine]:
    behaviours = Behaviours()
    behaviours.register("one-model", 1, lambda: Told(one_model))
    with AgentGraphEngine(tmp_path / "agents.db", behaviours=behaviours) as made:
        yield made


def output_of(engine: AgentGraphEngine, kind: str, call: Callable[[Any], Any], *, required: bool = True) -> Any:
    """What comes of a run with one hook."""
    run = engine.run(
        {
            "kind": "react",
            "entry": "asker",
            "roles": [{"name": "asker", "role": "react", "model": "chat"}],
            "bindings": [{"role": "asker", "behaviour": "one-model", "version": 1}],
            "models": {"chat": FakeListChatModel(responses=["42"])},
            "hooks": {kind: [Hook(call=call, name="h", required=required)]},
        },
        None,
    )
    assert AgentStatus.SUCCEEDED is run.status
    return run.output


def cancelled(value: Any) -> None:
    raise asyncio.CancelledError


BAD: dict[str, Callable[[Any], Any]] = {
    "no decision": lambda value: "yes",
    "cancelled": cancelled,
    "nothing": lambda value: Replace(None),
    "no JSON": lambda value: Replace({"messages": object()}),
    "a text": lambda value: Replace("text"),
}


@pytest.mark.parametrize("kind", ["before_model", "after_model"])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("required", [True, False])
def test_e18_a_hook_that_decides_what_cannot_be_denies_unless_it_is_not_required(
    engine: AgentGraphEngine, kind: str, bad: str, required: bool
) -> None:
    """And fails no worker, which would ask it again each time."""
    output = output_of(engine, kind, BAD[bad], required=required)
    if required:
        assert "denied" == output["error"]["code"]
        assert "'h'" in output["error"]["message"]
    else:
        assert "42" == output["value"]["message"]["data"]["content"]


@pytest.mark.parametrize("message", [None, object(), "\ud800"], ids=["none", "object", "no Unicode"])
def test_e18_a_denial_is_text_whatever_it_was(engine: AgentGraphEngine, message: Any) -> None:
    output = output_of(engine, "before_model", lambda value: Deny(message))
    assert "denied" == output["error"]["code"]
    assert isinstance(output["error"]["message"], str)


def test_e18_what_a_hook_does_to_its_argument_does_not_count(engine: AgentGraphEngine) -> None:
    """Only what it returns is a decision, and on record as one."""

    def scribbles(value: Any) -> None:
        value["messages"][0]["data"]["content"] = "!"

    assert "?" == output_of(engine, "before_model", scribbles)["said"]


def test_e18_a_hook_replaces_a_request(engine: AgentGraphEngine) -> None:
    other = {"messages": [{"type": "human", "data": {"content": "!"}}]}
    assert "!" == output_of(engine, "before_model", lambda value: Replace(other))["said"]
