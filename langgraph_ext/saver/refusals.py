"""Refusals: errors that a node raises instead of running its body, or a model call instead of being made.

To LangGraph they are signals (`GraphBubbleUp`) and no failures: a RetryPolicy does not repeat them, an error handler
does not take them over, nothing is written, and the thread can be resumed. To everybody else they are this package's
errors.
"""

from __future__ import annotations

from typing import NoReturn

from langgraph.errors import GraphBubbleUp

from langgraph_ext.errors import (
    AdmissionError,
    BudgetExhausted,
    ConflictError,
    LangGraphExtError,
    LeaseError,
    RecoveryRequired,
    StoreError,
)

__all__ = [
    "AdmissionRefused",
    "BudgetRefused",
    "ConflictRefused",
    "LeaseRefused",
    "RecoveryRefused",
    "StoreRefused",
    "refuse",
    "refused",
]


class AdmissionRefused(AdmissionError, GraphBubbleUp):
    """As `AdmissionError`."""


class BudgetRefused(BudgetExhausted, GraphBubbleUp):
    """As `BudgetExhausted`."""


class ConflictRefused(ConflictError, GraphBubbleUp):
    """As `ConflictError`."""


class LeaseRefused(LeaseError, GraphBubbleUp):
    """As `LeaseError`."""


class RecoveryRefused(RecoveryRequired, GraphBubbleUp):
    """As `RecoveryRequired`."""


class StoreRefused(StoreError, GraphBubbleUp):
    """As `StoreError`."""


_AS_SIGNALS: dict[type[LangGraphExtError], type[LangGraphExtError]] = {
    AdmissionError: AdmissionRefused,
    BudgetExhausted: BudgetRefused,
    ConflictError: ConflictRefused,
    LeaseError: LeaseRefused,
    RecoveryRequired: RecoveryRefused,
    StoreError: StoreRefused,
}


def refused(error: LangGraphExtError) -> LangGraphExtError:
    """The error as a signal to LangGraph; itself if it is one, or has none."""
    for family, signal in _AS_SIGNALS.items():
        if isinstance(error, family) and not isinstance(error, GraphBubbleUp):
            return signal(error.args[0], code=error.code, retryable=error.retryable, details=error.details)
    return error


def refuse(error: LangGraphExtError) -> NoReturn:
    """Raise it as a signal to LangGraph."""
    raise refused(error) from error
