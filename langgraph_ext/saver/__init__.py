"""The checkpointer: `LedgerSaver`, a LangGraph `BaseCheckpointSaver` on this package's database."""

from langgraph_ext.saver.saver import LedgerSaver

__all__ = ["LedgerSaver"]
