"""Tools for testing your own graphs: a scripted model and tools, a crash harness, an effect log, fixed time and ids.

    crash_at_every_commit("tests.orders:scenario", db=tmp_path / "crash.db").assert_sound()

Nothing else in the package imports this one, but the command line and its demo. What needs langchain-core is loaded
when first used.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from langgraph_ext.testing.acts import Act, acts_of
from langgraph_ext.testing.call_log import ScriptedCall, calls_of
from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.fixed import FixedClock, fixed_ids
from langgraph_ext.testing.harness import crash_at_every_commit
from langgraph_ext.testing.points import kill_myself
from langgraph_ext.testing.progress import CrashProgress
from langgraph_ext.testing.report import CrashFinding, CrashReport
from langgraph_ext.testing.steps import (
    breaks_after,
    call,
    calls,
    exits,
    fails,
    hangs,
    nothing,
    refuses,
    returns,
    say,
    tries,
    truncated,
)

if TYPE_CHECKING:
    from langgraph_ext.testing.models import ScriptedChatModel
    from langgraph_ext.testing.tools import ScriptedTool, scripted_tool

__all__ = [
    "Act",
    "CrashFinding",
    "CrashProgress",
    "CrashReport",
    "EffectLog",
    "FixedClock",
    "ScriptedCall",
    "ScriptedChatModel",
    "ScriptedTool",
    "acts_of",
    "breaks_after",
    "call",
    "calls",
    "calls_of",
    "crash_at_every_commit",
    "exits",
    "fails",
    "fixed_ids",
    "hangs",
    "kill_myself",
    "nothing",
    "refuses",
    "returns",
    "say",
    "scripted_tool",
    "tries",
    "truncated",
]

_HOMES = {
    "ScriptedChatModel": "langgraph_ext.testing.models",
    "ScriptedTool": "langgraph_ext.testing.tools",
    "scripted_tool": "langgraph_ext.testing.tools",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
