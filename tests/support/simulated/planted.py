"""Bugs that the simulator has to find: each is put into the engine for the time of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from langgraph_ext.engine import closing, moves, react, slots, task_changes
from langgraph_ext.engine.activation import Activation
from langgraph_ext.engine.batches import ConsumeBatch, result_entries
from langgraph_ext.engine.commits import Committed
from langgraph_ext.engine.outcomes import Progress
from langgraph_ext.ledger import leases

__all__ = ["PLANTED"]

_write = Activation._write


async def _does_not_wait(self: Any, outcome: Any) -> Any:
    """The behaviour goes on while its Progress is being committed."""
    writing = asyncio.ensure_future(_write(self, outcome))
    is_progress = isinstance(outcome, Progress)
    return Committed({}, again=False, seen=self._runtime) if is_progress else await writing


_settle, _begin_operation = slots.settle, slots.begin_operation


def _settles_in_doubt(at: Any, operation: Any) -> None:
    """A slot is filled with what nobody knows, while somebody is asked."""
    _settle(at, operation._replace(on_unknown="error"))


def _repeats(*args: Any, **options: Any) -> str:
    """Every tool may be called again."""
    return _begin_operation(*args, **options | {"policy": "repeatable"})


def _mixed_up(batch: Any) -> Any:
    """Results in another order than the calls."""
    return result_entries(batch)[::-1]


def _consumes_half(self: Any, at: Any) -> None:
    """A batch is consumed, and what it has called is not."""
    at.tx.run("agent_batch_consume", batch_id=self.operation_id)


PLANTED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "runs past a yield": lambda: mock.patch.object(Activation, "_write", _does_not_wait),
    "loses a wake-up": lambda: mock.patch.object(moves, "wake"),
    "waits for what has come": lambda: mock.patch.object(task_changes, "is_met", return_value=False),
    "accepts an old epoch": lambda: mock.patch.object(leases, "check", return_value=None),
    "settles a slot in doubt": lambda: mock.patch.object(slots, "settle", _settles_in_doubt),
    "repeats what acts once": lambda: mock.patch.object(slots, "begin_operation", _repeats),
    "mixes up results": lambda: mock.patch.object(react, "result_entries", _mixed_up),
    "leaves slots open": lambda: mock.patch.object(closing, "close_batches"),
    "consumes half a batch": lambda: mock.patch.object(ConsumeBatch, "apply", _consumes_half),
}
"""By what the engine does then."""
