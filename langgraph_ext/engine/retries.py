"""Retries: whether a call that has failed is made again, and when (rule E23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext.engine.program import Failed

__all__ = ["retry_after"]


def retry_after(retry: Mapping[str, Any] | None, number: int, error: Exception) -> float | None:
    """Seconds until another call, of what says that one may help; None if there is none.

    Args:
        retry: `{"calls", "wait_seconds"}`; None: nothing is called again because it has failed.
        number: The how manieth call it was, from 1; those before a crash count.
        error: What it has raised.
    """
    declares = getattr(error, "is_retryable", False) is True  # as langchain-core's exceptions do
    may_help = error.retryable if isinstance(error, Failed) else declares
    if retry is None or number >= retry["calls"] or not may_help:
        return None
    return max(float(retry["wait_seconds"]), getattr(error, "after_seconds", 0.0))
