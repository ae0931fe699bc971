"""Nodes: where LangGraph meets the ledger. Agent and capability nodes need the engine; import them by themselves."""

from langgraph_ext.database import AppTx
from langgraph_ext.nodes.acts import AttemptInterrupted, EffectNotDone
from langgraph_ext.nodes.frames import Frame, frame
from langgraph_ext.nodes.wrapping import durable

__all__ = ["AppTx", "AttemptInterrupted", "EffectNotDone", "Frame", "durable", "frame"]
