"""Bugs that the simulator has to find: each is put into the engine for the time of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from langgraph_ext.engine import moves, task_changes
from langgraph_ext.engine.activation import Activation
from langgraph_ext.engine.outcomes import Progress
from langgraph_ext.ledger import leases

__all__ = ["PLANTED"]

_write = Activation._write


async def _does_not_wait(self: Any, outcome: Any, runtime: Any) -> Any:
    """The behaviour goes on while its Progress is being committed."""
    writing = asyncio.ensure_future(_write(self, outcome, runtime))
    return {} if isinstance(outcome, Progress) else await writing


PLANTED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "runs past a yield": lambda: mock.patch.object(Activation, "_write", _does_not_wait),
    "loses a wake-up": lambda: mock.patch.object(moves, "wake"),
    "waits for what has come": lambda: mock.patch.object(task_changes, "is_met", return_value=False),
    "accepts an old epoch": lambda: mock.patch.object(leases, "check", return_value=None),
}
"""By what the engine does then."""
