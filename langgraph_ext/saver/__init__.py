"""The checkpointer: `LedgerSaver`, a LangGraph `BaseCheckpointSaver` on this package's database."""

from langgraph_ext.saver.callbacks import LedgerCallbackHandler, with_ledger
from langgraph_ext.saver.saver import LedgerSaver

__all__ = ["LedgerCallbackHandler", "LedgerSaver", "with_ledger"]
