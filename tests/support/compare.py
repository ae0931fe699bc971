"""What two savers must agree on: everything a checkpoint tuple says, as plain values."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import CheckpointTuple


def facts(found: CheckpointTuple | None) -> dict[str, Any] | None:
    """A checkpoint tuple as plain values; the config is reduced to the three keys every saver fills."""
    if found is None:
        return None
    return {
        "at": _place(found.config),
        "parent": _place(found.parent_config) if found.parent_config else None,
        "checkpoint": dict(found.checkpoint),
        "metadata": dict(found.metadata),
        "writes": [tuple(write) for write in found.pending_writes or []],
    }


def typed(value: Any) -> Any:
    """`value` with the type of every leaf beside it, so that 1, 1.0 and True compare as different."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [typed(item) for item in value]
    return type(value).__name__, value


def _place(config: Any) -> tuple[str, str, str]:
    where = config["configurable"]
    return str(where["thread_id"]), where.get("checkpoint_ns", ""), where["checkpoint_id"]
