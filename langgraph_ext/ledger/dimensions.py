"""Dimensions: what of a run is bounded and counted, and in which units (rule L33).

Inside, every amount is a whole number: costs in billionths of a US dollar, times in microseconds. So sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from langgraph_ext.errors import InvalidArgument

__all__ = ["Amounts", "Dimension", "shown", "to_cost_nusd", "units_of"]


class Dimension(StrEnum):
    """One thing that a budget bounds, named as `Budget` names it."""

    TURNS = "turns"
    """Model calls."""
    TOKENS = "tokens"
    """Model tokens, in and out."""
    COST_USD = "cost_usd"
    WALL_SECONDS = "wall_seconds"
    """Active time: while an invocation runs."""
    SPAWNS = "spawns"
    """Child agent runs."""

    @property
    def column(self) -> str:
        """Its column in `budget`."""
        return {Dimension.COST_USD: "cost_nusd", Dimension.WALL_SECONDS: "wall_us"}.get(self, str(self))

    @property
    def scale(self) -> int:
        """How many of the stored units are one of those shown."""
        return {Dimension.COST_USD: 10**9, Dimension.WALL_SECONDS: 10**6}.get(self, 1)


Amounts = Mapping[Dimension, int]
"""In stored units; a dimension that is not there counts as 0, and as unbounded where limits are meant."""

_MOST = 10**15
"""A million dollars, thirty years; sums of a thousand such amounts fit into 64 bits."""


def shown(dimension: Dimension, amount: int) -> int | float:
    """An amount as it is given out: in US dollars, in seconds, or counted."""
    return amount if dimension.scale == 1 else amount / dimension.scale


def units_of(dimension: Dimension, amount: object, *, name: str) -> int | None:
    """A limit in stored units; None if there is none.

    Raises:
        InvalidArgument: It is negative, not finite, or no whole number where things are counted.
    """
    if amount is None:
        return None
    counts = dimension.scale == 1
    sound = type(amount) is int or (not counts and isinstance(amount, float) and math.isfinite(amount))
    if not sound or not 0 <= amount * dimension.scale <= _MOST:  # type: ignore[operator]
        kind = "a whole number" if counts else "a finite number"
        most = f"{_MOST // dimension.scale:,}"
        raise InvalidArgument(f"{name} is {amount!r}; it must be {kind}, from 0 to {most}, or None")
    return math.floor(amount * dimension.scale)  # type: ignore[operator]


def to_cost_nusd(usd: object, *, up: bool) -> int:
    """What a price function returned, in billionths of a US dollar.

    Args:
        usd: The price.
        up: Whether to round up, as for a bound; else to the nearest.

    Raises:
        InvalidArgument: It is negative, or not finite (`invalid_usage`).
    """
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd <= _MOST / 10**9:
        raise InvalidArgument(
            f"Budget(price=…), or usage=, returned {usd!r}; it must return US dollars, a finite number from 0",
            code="invalid_usage",
        )
    return math.ceil(usd * 10**9) if up else round(usd * 10**9)
