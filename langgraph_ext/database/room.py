"""Room: how many coroutines of one event loop may be on their way through the queue; the others wait their turn."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Room"]


class Room:
    """Places that coroutines of one loop take by `async with`, in the order in which they came.

    As a semaphore, but cheap where there is a place: that is at every write. Only for its loop's thread.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        """Take a place, or wait for one."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if not turn.cancel() and not turn.cancelled():  # it was given its place in between
                self._give_back()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Give the place to who has waited longest."""
        self._give_back()

    def _give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
