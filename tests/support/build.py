"""Configs, checkpoints and versions as LangGraph would hand them to a saver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint

NULL_TASK = "00000000-0000-0000-0000-000000000000"

VERSIONS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "float": lambda n: n + 0.25,
    "str": lambda n: f"{n:032}.0.{n * 7919:016}",  # the shape LangGraph's API server makes
}
"""How a test's n-th version is spelt, for each type a version may have."""


def cid(n: int) -> str:
    """The n-th checkpoint id: a UUID that sorts by n."""
    return f"1f0b0000-{n >> 12 & 0xFFFF:04x}-6{n & 0xFFF:03x}-8000-000000000000"


def config(thread: Any = "t", ns: str | None = "", id: str | None = None, **more: Any) -> RunnableConfig:
    """A config as LangGraph passes it; `ns=None` leaves the namespace out, `more` goes into `configurable`."""
    named = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}
    return {"configurable": {key: value for key, value in named.items() if value is not None} | more}


def running(given: RunnableConfig) -> RunnableConfig:
    """The same config as a running graph gives it."""
    return {"configurable": {**given["configurable"], "__pregel_runtime": None}}


def whole(thread: Any = "t") -> RunnableConfig:
    """A config that names a thread with all its namespaces, as `list` takes it."""
    return config(thread, ns=None)


def checkpoint(
    id: str, values: dict[str, Any] | None = None, versions: ChannelVersions | None = None, **fields: Any
) -> Checkpoint:
    """A whole checkpoint with these channel values; every value is version 1 unless told otherwise."""
    values = values or {}
    made: dict[str, Any] = {
        "v": 4,
        "id": id,
        "ts": "2026-01-02T03:04:05.678901+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1) if versions is None else versions,
        "versions_seen": {"__input__": {}, "node": dict(versions or {})},
        "updated_channels": sorted(values),
    }
    return made | fields  # type: ignore[return-value]


def metadata(step: int = 0, source: str = "loop", **more: Any) -> Any:
    """Checkpoint metadata as LangGraph writes it, with extra keys."""
    return {"source": source, "step": step, "parents": {}, **more}
