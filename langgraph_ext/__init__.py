"""Durable runs for LangGraph.

Public names are loaded on first use, so that importing one of them imports only the room it lives in.
"""

from __future__ import annotations

import logging as _logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph_ext.database import Encryption
    from langgraph_ext.engine import (
        AgentGraphEngine,
        AgentSpec,
        Deadlines,
        Executor,
        InjectedIdempotencyKey,
        Limits,
        PlanExecute,
        ReAct,
        ToolPolicy,
    )
    from langgraph_ext.ledger import Budget, RunLedger
    from langgraph_ext.nodes import AppTx, AttemptInterrupted, EffectNotDone, Frame, durable, frame
    from langgraph_ext.nodes.agent_node import AgentNode
    from langgraph_ext.nodes.capability_node import CapabilityNode
    from langgraph_ext.saver import LedgerSaver, with_ledger

__all__ = [
    "AgentGraphEngine",
    "AgentNode",
    "AgentSpec",
    "AppTx",
    "AttemptInterrupted",
    "Budget",
    "CapabilityNode",
    "Deadlines",
    "EffectNotDone",
    "Encryption",
    "Executor",
    "Frame",
    "InjectedIdempotencyKey",
    "LedgerSaver",
    "Limits",
    "PlanExecute",
    "ReAct",
    "RunLedger",
    "ToolPolicy",
    "durable",
    "frame",
    "with_ledger",
]

__version__ = "0.1.0"

_HOMES = {
    "AgentGraphEngine": "langgraph_ext.engine",
    "AgentNode": "langgraph_ext.nodes.agent_node",
    "AgentSpec": "langgraph_ext.engine",
    "AppTx": "langgraph_ext.nodes",
    "AttemptInterrupted": "langgraph_ext.nodes",
    "Budget": "langgraph_ext.ledger",
    "CapabilityNode": "langgraph_ext.nodes.capability_node",
    "Deadlines": "langgraph_ext.engine",
    "EffectNotDone": "langgraph_ext.nodes",
    "Encryption": "langgraph_ext.database",
    "Executor": "langgraph_ext.engine",
    "Frame": "langgraph_ext.nodes",
    "InjectedIdempotencyKey": "langgraph_ext.engine",
    "LedgerSaver": "langgraph_ext.saver",
    "Limits": "langgraph_ext.engine",
    "PlanExecute": "langgraph_ext.engine",
    "ReAct": "langgraph_ext.engine",
    "RunLedger": "langgraph_ext.ledger",
    "ToolPolicy": "langgraph_ext.engine",
    "durable": "langgraph_ext.nodes",
    "frame": "langgraph_ext.nodes",
    "with_ledger": "langgraph_ext.saver",
}

_logging.getLogger(__name__).addHandler(_logging.NullHandler())  # the application decides what becomes of our log


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
