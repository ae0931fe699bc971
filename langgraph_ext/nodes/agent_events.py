"""Agent events: what an agent run does, in the graph's stream as it does it (rule A7, `stream_mode="custom"`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langgraph_ext.engine import AgentGraphEngine
from langgraph_ext.ledger.records import Event

__all__ = ["telling"]

T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""How often the log is looked at while an agent run is driven."""

_PAGE = 100


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
    after = (await engine.ledger.asnapshot(agent_run_id)).cursor
    task = asyncio.ensure_future(driving)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=_LOOK_SECONDS)
            page = await engine.aevents(agent_run_id, after=after, limit=_PAGE)
            for event in page:
                write(_told(agent_run_id, event))
                after = event.cursor
            if done and len(page) < _PAGE:
                return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def _told(agent_run_id: str, event: Event) -> dict[str, Any]:
    return {
        "type": "agent_event",
        "agent_run_id": agent_run_id,
        "seq": event.run_seq,
        "name": event.name,
        "details": dict(event.details),
    }
