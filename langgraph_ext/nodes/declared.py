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
    accepts_steering: bool
    on_fork: str
    """`act`, `ask` or `reuse`."""

    @property
    def told(self) -> dict[str, str | int | None]:
        """What of it makes a node another one, as plain values."""
        options = {"kind": self.kind, "max_attempts": self.max_attempts, "on_unknown": self.on_unknown}
        forked = {} if self.on_fork == "act" else {"on_fork": self.on_fork}  # as it was before there was a choice
        return {"effect": str(self.effect), **options, **forked}
