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


def difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Where two plain values first differ, as a sentence; None when they are equal."""
    if type(expected) is not type(actual) or not isinstance(expected, dict | list | tuple):
        return None if expected == actual else f"at {path or 'the top'}: {expected!r} was expected, not {actual!r}"
    if isinstance(expected, dict):
        if expected.keys() != actual.keys():
            return f"at {path or 'the top'}: keys {sorted(expected, key=str)} expected, not {sorted(actual, key=str)}"
        pairs = [(f"{path}.{key}", expected[key], actual[key]) for key in expected]
    else:
        if len(expected) != len(actual):
            return f"at {path or 'the top'}: {list(expected)!r} was expected, not {list(actual)!r}"
        pairs = [(f"{path}[{n}]", *pair) for n, pair in enumerate(zip(expected, actual, strict=True))]
    return next((found for at, one, other in pairs if (found := difference(one, other, at))), None)


def _place(config: Any) -> tuple[str, str, str]:
    where = config["configurable"]
    return str(where["thread_id"]), where.get("checkpoint_ns", ""), str(where["checkpoint_id"])
