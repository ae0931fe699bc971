"""The ledger: what is known of every run, in the database of the checkpoints.

`RunLedger` reads it, and resolves effects; the saver writes it, in the transactions that store checkpoints and writes.
"""

from langgraph_ext.ledger.ledger import RunLedger
from langgraph_ext.ledger.records import (
    AttemptRecord,
    AttemptStatus,
    CancelMode,
    Effect,
    EffectClass,
    EffectStatus,
    ErrorRecord,
    Event,
    Finding,
    InboxEntry,
    InboxKind,
    Interrupt,
    InterruptStatus,
    Memo,
    Run,
    RunStatus,
    Snapshot,
    Visit,
    VisitKind,
    VisitStatus,
)

__all__ = [
    "AttemptRecord",
    "AttemptStatus",
    "CancelMode",
    "Effect",
    "EffectClass",
    "EffectStatus",
    "ErrorRecord",
    "Event",
    "Finding",
    "InboxEntry",
    "InboxKind",
    "Interrupt",
    "InterruptStatus",
    "Memo",
    "Run",
    "RunLedger",
    "RunStatus",
    "Snapshot",
    "Visit",
    "VisitKind",
    "VisitStatus",
]
