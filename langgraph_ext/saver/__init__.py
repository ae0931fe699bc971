"""The checkpointer: `LedgerSaver`, a LangGraph `BaseCheckpointSaver` on this package's database."""

from langgraph_ext.ledger.open_ends import Kept
from langgraph_ext.saver.callbacks import LedgerCallbackHandler, with_ledger
from langgraph_ext.saver.reencrypting import Reencrypted, encrypt_database
from langgraph_ext.saver.retention import Pruned
from langgraph_ext.saver.saver import LedgerSaver
from langgraph_ext.saver.swept import Swept

__all__ = [
    "Kept",
    "LedgerCallbackHandler",
    "LedgerSaver",
    "Pruned",
    "Reencrypted",
    "Swept",
    "encrypt_database",
    "with_ledger",
]
