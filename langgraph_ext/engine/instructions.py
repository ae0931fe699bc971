"""Instructions: what a model is told beside its own prompt."""

from __future__ import annotations

from typing import Any

from langgraph_ext import canonical

__all__ = ["of_answer"]


def of_answer(schema: Any) -> str:
    """How the final answer is to look, for a model whose spec has an output schema (rule E16)."""
    shown = canonical.encode(schema, where="schema").decode()
    return (
        "When you give your final answer, give one JSON value that fits this JSON Schema, and nothing beside it:\n"
        f"{shown}"
    )
