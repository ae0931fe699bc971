"""Nodes: where LangGraph meets the ledger."""

from langgraph_ext.database import AppTx
from langgraph_ext.nodes.acts import AttemptInterrupted, EffectNotDone
from langgraph_ext.nodes.agent_node import AgentNode, AgentResult
from langgraph_ext.nodes.frames import Frame, frame
from langgraph_ext.nodes.wrapping import durable

__all__ = ["AgentNode", "AgentResult", "AppTx", "AttemptInterrupted", "EffectNotDone", "Frame", "durable", "frame"]
