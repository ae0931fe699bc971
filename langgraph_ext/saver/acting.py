"""Acting: which attempt of a durable body the caller is in, for whoever records what is done in it."""

from __future__ import annotations

from contextvars import ContextVar

from langgraph_ext.ledger.frames import FrameKey

__all__ = ["ATTEMPT"]

ATTEMPT: ContextVar[FrameKey | None] = ContextVar("langgraph_ext_attempt", default=None)
"""Set around a durable body by whoever runs it; None outside of one."""
