"""Built in: the behaviours that an `AgentSpec` names."""

from __future__ import annotations

from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.react import React

__all__ = ["built_in"]


def built_in() -> Behaviours:
    """Those that this version has."""
    found = Behaviours()
    found.register("react", 1, React)
    return found
