"""Limits: the most that an agent run may use of calls and tokens, whatever crashes (rule A12).

Calls are counted in the commit that permits them, and never given back; tokens when an answer is stored. What would be
one too many closes its scope instead, or a person is asked (raising.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext.engine.applying import Applying, agent_run_of
from langgraph_ext.engine.rows import AgentRun, Operation

__all__ = ["DIMENSIONS", "REASONS", "count_call", "count_tokens", "exceeded", "limits_of"]

DIMENSIONS = ("model_calls", "tool_calls", "tokens")

REASONS = {name: f"{name}_exhausted" for name in DIMENSIONS}
"""Why a scope closes that has used up one of them."""

_COUNTED = {"model": "model_calls", "compaction": "model_calls", "tool": "tool_calls"}
"""By kind of operation: what its calls are counted as."""


def limits_of(descriptor: Mapping[str, Any]) -> dict[str, Any] | None:
    """Those of a release, and whether a person is asked at them (`on_limit`); None if it has none."""
    found = {name: descriptor["limits"][name] for name in DIMENSIONS}
    asks = {"on_limit": "ask"} if descriptor["limits"]["on_limit"] == "ask" else {}
    return {**{name: most for name, most in found.items() if most is not None}, **asks} or None


def exceeded(at: Applying, operation: Operation) -> tuple[str, str, str] | None:
    """The agent run that another call of this operation would be one too many for, the reason, and that in words."""
    counted = _COUNTED.get(operation.kind, "")
    for level in _levels(at, operation):
        limits = level.limits or {}
        if counted in limits and getattr(level, counted) >= limits[counted]:
            return level.agent_run_id, REASONS[counted], _told(counted, limits)
        if counted == "model_calls" and "tokens" in limits and level.tokens_in + level.tokens_out >= limits["tokens"]:
            return level.agent_run_id, REASONS["tokens"], _told("tokens", limits)
    return None


def _told(dimension: str, limits: Mapping[str, Any]) -> str:
    return f"limits.{dimension} is {limits[dimension]}, and more were needed"


def count_call(at: Applying, operation: Operation) -> None:
    """A physical call is about to be made."""
    counted = _COUNTED.get(operation.kind)
    if counted is not None:
        _use(at, operation, **{counted: 1})


def count_tokens(at: Applying, operation: Operation, usage: Mapping[str, Any] | None) -> None:
    """An answer has come that has used tokens."""
    if usage is not None:
        _use(at, operation, tokens_in=usage["tokens_in"], tokens_out=usage["tokens_out"])


def _levels(at: Applying, operation: Operation) -> list[AgentRun]:
    return [agent_run_of(at.tx, each) for each in dict.fromkeys((at.root_id, operation.agent_run_id))]


def _use(at: Applying, operation: Operation, **amounts: int) -> None:
    none = {"model_calls": 0, "tool_calls": 0, "tokens_in": 0, "tokens_out": 0}
    for level in dict.fromkeys((at.root_id, operation.agent_run_id)):
        at.tx.run("agent_run_use", agent_run_id=level, **(none | amounts))
