"""What other processes do with ReAct runs: workers that meet, tools that end together, models that die."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal

from langgraph_ext.engine import AgentSpec, InjectedIdempotencyKey, Limits, ToolPolicy
from langgraph_ext.errors import LeaseError
from langgraph_ext.testing import ScriptedChatModel, call, calls, exits, say
from tests.faults.children import note, noted
from tests.support import killed_react as story
from tests.support.faults import kill_myself

__all__ = [
    "TOOLS",
    "dies_with_the_last",
    "drive_a_dying_model",
    "drive_one_of_many",
    "dying",
    "eight",
    "eight_at_once",
    "end_with_the_last",
    "settled",
]

TOOLS = 8

Effect = Literal["once", "repeatable", "keyed"]


async def _at_once(number: int) -> None:
    """Nothing is done beside the effect."""


def eight(log: str, effect: Effect, beside: Callable[[int], Awaitable[None]] = _at_once) -> AgentSpec:
    """An agent that calls eight tools at once; each puts its effect on a file, and does something behind it."""
    return AgentSpec(**eight_at_once(log, effect, beside))


def eight_at_once(log: str, effect: Effect, beside: Callable[[int], Awaitable[None]] = _at_once) -> dict[str, Any]:
    """What that agent is made of."""

    async def act(number: int, key: Annotated[str, InjectedIdempotencyKey]) -> str:
        """Act."""
        note(log, f"act {number}")
        await beside(number)
        return f"acted {number}"

    asked = calls(*(call("act", {"number": number}) for number in range(TOOLS)))
    return {
        "model": ScriptedChatModel(script=[asked, say("done")]),
        "tools": [act],
        "tool_policies": {"act": ToolPolicy(effect=effect)},
    }


def dies_with_the_last(path: str, stored: int) -> Callable[[int], Awaitable[None]]:
    """Kills the process right after the last effect, when this many of the tools have their results stored."""

    async def beside(number: int) -> None:
        if number < stored:
            return
        while len(noted(f"{path}.log")) < TOOLS or settled(path) < stored:
            await asyncio.sleep(0.005)
        kill_myself()

    return beside


def end_with_the_last(path: str, effect: Effect, stored: int) -> None:
    """Drive it, and be killed right after the last effect, when this many of the tools have their results stored."""
    with story.opened(path) as engine:
        agent = eight(f"{path}.log", effect, dies_with_the_last(path, stored))
        engine.drive(engine.start(agent, "Go.", key="run").agent_run_id, agent)


def settled(path: str) -> int:
    """How many tool calls of a database have their results stored."""
    connection = sqlite3.connect(path)
    try:
        (found,) = connection.execute("SELECT count(*) FROM agent_member WHERE state = 'settled'").fetchone()
        return int(found)
    finally:
        connection.close()


def drive_one_of_many(path: str, workers: int) -> str:
    """Begin the run of killed_react.py, or go on with it, beside others who do; its status, or why not.

    It does not end before all others were told.
    """
    log, refused = f"{path}.log", f"{path}.refused"

    def others_are_told() -> None:
        end = time.monotonic() + 20
        while len(noted(refused)) < workers - 1:
            assert time.monotonic() < end, "nobody else has come"
            time.sleep(0.005)

    with story.opened(path) as engine:
        agent = story.spec(log, parallel=True, before_the_end=others_are_told)
        run_id = engine.start(agent, "Go.", key="run").agent_run_id
        try:
            return str(engine.drive(run_id, agent).status)
        except LeaseError as error:
            note(refused, error.code)
            return error.code


def dying(log: str, moment: Any) -> AgentSpec:
    """An agent that may ask a model three times; each time its process dies with it."""
    step = exits(moment, say("a long answer", during=partial(note, log, "model")))
    return AgentSpec(model=ScriptedChatModel(script=[step]), limits=Limits(model_calls=3))


def drive_a_dying_model(path: str, moment: str) -> str | None:
    """Drive it; why it closed, if it did not die."""
    with story.opened(path) as engine:
        agent = dying(f"{path}.log", moment)
        return engine.drive(engine.start(agent, "Go.", key="run").agent_run_id, agent).reason
