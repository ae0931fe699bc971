"""Acts: what scripted tools did to the outside world, as an effect log has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.testing.call_log import LogPath
from langgraph_ext.testing.effects import EffectLog

__all__ = ["Act", "acts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One time that a tool acted. What it did twice under one key is a duplicate."""

    tool: str
    key: str
    args: dict[str, Any]
    tool_call_id: str | None = None


def acts_of(path: LogPath, name: str | None = None) -> list[Act]:
    """What scripted tools have done, in all processes, in this order.

    Args:
        path: The log that they were given.
        name: Only that of this tool.
    """
    log = path if isinstance(path, EffectLog) else EffectLog(path)
    acts = [Act(key=key, **facts) for key, facts in log.effects() if facts.get("tool") and facts.keys() <= _FACTS]
    return [act for act in acts if name in (None, act.tool)]


_FACTS = {"tool", "args", "tool_call_id"}
