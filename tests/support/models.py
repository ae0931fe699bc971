"""Chat models that answer every call alike, in pieces, and put each dispatch on record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages.ai import UsageMetadata

from langgraph_ext.testing import ScriptedChatModel, calls_of, say

__all__ = ["dispatches", "scripted", "used"]


def used(tokens_in: int = 10, tokens_out: int = 5, **details: Any) -> UsageMetadata:
    """What a provider reports."""
    return UsageMetadata(
        input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out, **details
    )


def scripted(
    *,
    usage: UsageMetadata | None = None,
    log: str | None = None,
    during: Callable[[], Any] | None = None,
    seconds: float = 0.0,
    max_tokens: int | None = None,
) -> ScriptedChatModel:
    """One that says "hi"."""
    step = say("hi", usage=usage, during=during, seconds=seconds)
    return ScriptedChatModel(script=step, log=log, max_tokens=max_tokens, chunk_characters=1)


def dispatches(path: str | Path) -> int:
    """How often models that note it there were called, in all processes."""
    return len(calls_of(path))
