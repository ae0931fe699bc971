"""LangGraph's internals that this package looks at: named here and nowhere else, each with a test that notices a change."""

from __future__ import annotations

__all__ = ["DELTA_COUNTERS", "is_send"]

DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Metadata key under which LangGraph counts a DeltaChannel's writes since its last stored value (beta)."""

_SEND_PATH = "~__pregel_push"


def is_send(task_path: str) -> bool:
    """Whether a task was started by `Send` (or by a `@task` call): its path begins with LangGraph's push mark."""
    return task_path.startswith(_SEND_PATH)
