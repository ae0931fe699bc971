"""LangGraph's internals that this package looks at: named here only, each with a test that notices a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

__all__ = ["CONTROL_CHANNELS", "DELTA_COUNTERS", "ERROR_SOURCE_NODE", "NULL_TASK", "from_graph", "is_send", "may_go_on"]

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task id under which LangGraph stores what it was given rather than what a task wrote, such as an answer."""

ERROR_SOURCE_NODE = "__error_source_node__"
"""Channel that marks an error which an error handler takes over."""

CONTROL_CHANNELS = frozenset(("__error__", ERROR_SOURCE_NODE, "__interrupt__", "__resume__"))
"""Channels whose writes say nothing of whether a task is finished."""

DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Metadata key under which LangGraph counts a DeltaChannel's writes since its last stored value (beta)."""

_RUNTIME = "__pregel_runtime"
_STARTING = ("branch:to:", "join:", "__start__")
_TASKS = "__pregel_tasks"
_SEND_PATH = "~__pregel_push"


def from_graph(config: RunnableConfig) -> bool:
    """Whether a call comes from a running graph, and not from a program that uses the saver directly."""
    return _RUNTIME in config["configurable"]


def may_go_on(channel_values: Mapping[str, Any]) -> bool:
    """Whether a checkpoint's values hold what starts tasks. Only a hint: a graph may also start them otherwise."""
    for channel in channel_values:
        if channel.startswith(_STARTING):
            return True
    return bool(channel_values.get(_TASKS))


def is_send(task_path: str) -> bool:
    """Whether a task was started by `Send` (or by a `@task` call): its path begins with LangGraph's push mark."""
    return task_path.startswith(_SEND_PATH)
