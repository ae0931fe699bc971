"""Steps: which run a put belongs to, and whether the ledger has to be told of it.

A run's checkpoints follow each other; only its beginning and its end, and what comes after an interrupt or an error,
change anything but the checkpoint's own row. So a put below a remembered checkpoint whose run is running takes over its
run, and goes the short way into the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from langgraph_ext.ledger.requests import Request
from langgraph_ext.ledger.runs import Ending, Step
from langgraph_ext.saver import facts, host
from langgraph_ext.saver.recent import NO_RUN, RecentPut

__all__ = ["attribute", "step_of"]


def attribute(
    columns: dict[str, Any],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    parent: RecentPut | None,
    *,
    from_graph: bool,
    goes_on: bool,
    request: Request | None,
    epoch: int | None,
) -> Step | None:
    """Fill in the columns that say what a put belongs to; returns what the ledger has to be told, if anything.

    Args:
        columns: Of the put's row.
        config: The put's.
        checkpoint: What is put.
        metadata: Its metadata.
        parent: Its parent, if that is remembered.
        from_graph: Whether a running graph puts it.
        goes_on: Whether it holds what starts tasks.
        request: What a run begins with that it begins.
        epoch: Under which epoch it is made.
    """
    if host.TASKS in checkpoint.get("channel_values", {}):
        columns["sends"] = facts.sends_of(checkpoint["channel_values"])
    if columns["checkpoint_ns"]:
        if from_graph:
            columns["root_id"] = (metadata.get("parents") or {}).get("")
            columns["inside"] = host.inside(config)
        return None
    if not from_graph and (columns["parent_id"] is None or (parent is not None and parent.run == NO_RUN)):
        return None  # a program's own checkpoints
    source = metadata.get("source")
    if from_graph and goes_on and parent is not None and parent.run and source == "loop":
        columns["run"] = parent.run
        return None
    step = _step(columns, source, from_graph, Ending.GOES_ON if goes_on else facts.ending_of(checkpoint))
    return step if request is None else replace(step, request=request, epoch=epoch or None)


def step_of(columns: Mapping[str, Any]) -> Step | None:
    """What the ledger has to be told after all of a put that was to take over its parent's run."""
    return None if columns["run"] is None else _step(columns, "loop", True, Ending.GOES_ON)


def _step(columns: Mapping[str, Any], source: str | None, from_graph: bool, ending: Ending) -> Step:
    return Step(
        thread_id=columns["thread_id"],
        checkpoint_id=columns["checkpoint_id"],
        parent_id=columns["parent_id"],
        run_id=columns["run_id"],
        source=source,
        from_graph=from_graph,
        ending=ending,
        stored_us=columns["stored_us"],
    )
