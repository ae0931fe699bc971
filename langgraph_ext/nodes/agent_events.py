"""Agent events: what an agent run does, in the graph's stream as it does it (rule A7, `stream_mode="custom"`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langgraph_ext.database import Database
from langgraph_ext.engine import AgentGraphEngine
from langgraph_ext.ledger.following import Following, advance, from_now
from langgraph_ext.ledger.records import Event

__all__ = ["telling"]

T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""How often it is looked for new events while an agent run is driven; behind its end at once."""


async def telling(
    engine: AgentGraphEngine, agent_run_id: str, driving: Coroutine[Any, Any, T], write: Callable[[Any], None]
) -> T:
    """Drive an agent run, and write each of its events since then, once, in their order.

    Args:
        engine: The engine.
        agent_run_id: The agent run.
        driving: Drives it.
        write: Takes `{"type": "agent_event", "agent_run_id", "seq", "name", "details"}`.
    """
    database = engine.ledger.database
    try:
        rest: Following | None = await database.aread(from_now, agent_run_id)
    except BaseException:
        driving.close()
        raise
    task = asyncio.ensure_future(driving)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=_LOOK_SECONDS)
            rest = await _tell(database, rest, lambda event: write(_told(agent_run_id, event)))
            if done:
                return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def _tell(database: Database, rest: Following | None, tell: Callable[[Event], None]) -> Following | None:
    """Tell of what is new; where to go on, or None if nothing more is to come."""
    more = True
    while more and rest is not None:
        stride = await database.aread(advance, rest)
        for event in stride.events:
            tell(event)
        rest, more = stride.rest, stride.more
    return rest


def _told(agent_run_id: str, event: Event) -> dict[str, Any]:
    return {
        "type": "agent_event",
        "agent_run_id": agent_run_id,
        "seq": event.run_seq,
        "name": event.name,
        "details": dict(event.details),
    }
