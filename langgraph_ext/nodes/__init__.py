"""Nodes: where LangGraph meets the ledger."""

from langgraph_ext.nodes.durable import durable
from langgraph_ext.nodes.frame import Frame, frame

__all__ = ["Frame", "durable", "frame"]
