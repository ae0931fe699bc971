"""Not done: how a program says for sure that nothing was done."""

from __future__ import annotations

__all__ = ["EffectNotDone"]


class EffectNotDone(Exception):
    """Raised by an effect's call, a probe, or a tool's `on_unknown` function to say for sure that nothing was done.

    The record says so, and the same effect may be begun again.
    """
