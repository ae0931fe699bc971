"""Finding out: a user's function is asked what came of a call of which nobody knows (rule A10)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from langgraph_ext.engine.in_threads import in_thread

__all__ = ["find_out"]

_SECONDS = 60.0
"""How long it may look, where the call itself has no deadline."""


async def find_out(function: Callable[[Any, str], Any], args: Any, key: str, seconds: float | None) -> Any:
    """What it says: what the call would have returned, or None if it cannot tell.

    Args:
        function: Called with the next two.
        args: What the call was given.
        key: Its idempotency key.
        seconds: How long it may take.

    Raises:
        EffectNotDone: It is sure that nothing was done.
        Exception: Whatever else it raises tells nothing.
    """
    async with asyncio.timeout(seconds or _SECONDS):
        is_async = inspect.iscoroutinefunction(function)
        found = function(args, key) if is_async else await in_thread(function, args, key)
        return await found if inspect.isawaitable(found) else found
