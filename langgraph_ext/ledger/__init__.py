"""The ledger: what is known of every run, in the database of the checkpoints.

`RunLedger` reads it, and resolves effects; the saver writes it, in the transactions that store checkpoints and writes.
"""

from langgraph_ext.ledger.budgets import Budget
from langgraph_ext.ledger.dimensions import Dimension
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
from langgraph_ext.ledger.usage_records import CallRecord, CallStatus, Spent, Usage

__all__ = [
    "AttemptRecord",
    "AttemptStatus",
    "Budget",
    "CallRecord",
    "CallStatus",
    "CancelMode",
    "Dimension",
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
    "Spent",
    "Usage",
    "Visit",
    "VisitKind",
    "VisitStatus",
]
