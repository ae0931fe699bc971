"""Refusals: errors that a node raises instead of running its body, or a model call instead of being made.

To LangGraph they are signals (`GraphBubbleUp`) and no failures: a RetryPolicy does not repeat them, an error handler
does not take them over, nothing is written, and the thread can be resumed. To everybody else they are this package's
errors.

LangGraph passes over a signal that has the `id` of an error which an error handler has taken over, and which is gone:
the node then counts as one that wrote nothing, and the graph goes on. So signals are larger than pymalloc's blocks: no
such error has been where they are (attached graphs keep their errors; attached.py).
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


_PADDING = tuple(f"_{number}" for number in range(64))
"""512 bytes: pymalloc's largest block."""


class AdmissionRefused(AdmissionError, GraphBubbleUp):
    """As `AdmissionError`."""

    __slots__ = _PADDING


class BudgetRefused(BudgetExhausted, GraphBubbleUp):
    """As `BudgetExhausted`."""

    __slots__ = _PADDING


class ConflictRefused(ConflictError, GraphBubbleUp):
    """As `ConflictError`."""

    __slots__ = _PADDING


class LeaseRefused(LeaseError, GraphBubbleUp):
    """As `LeaseError`."""

    __slots__ = _PADDING


class RecoveryRefused(RecoveryRequired, GraphBubbleUp):
    """As `RecoveryRequired`."""

    __slots__ = _PADDING


class StoreRefused(StoreError, GraphBubbleUp):
    """As `StoreError`."""

    __slots__ = _PADDING


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
