"""Declared: what a durable body was said to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph_ext.ledger.attempts import EffectClass

__all__ = ["Declared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What `durable` was told of a body."""

    effect: EffectClass
    kind: str | None
    max_attempts: int | None
    on_unknown: str
    """`stop`, `retry` or `probe`."""
    probe: Callable[[str], Any] | None
