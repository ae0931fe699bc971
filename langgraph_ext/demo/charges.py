"""Charges: what the bank's own ledger says. What counts in the end is that alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Charge", "read_charges"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One line of the bank's ledger."""

    charge: str
    key: str
    order: str
    cents: int
    """Below zero: what was given back."""
    held: bool
    """Whether its answer was held back."""


def read_charges(path: Path) -> list[Charge]:
    """The bank's ledger as it stands; a line still being written is left for the next call."""
    if not path.exists():
        return []
    return [Charge(**json.loads(line)) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
