"""An event loop in virtual time, on which several processes live: the seed chooses the step that is next.

A process is a value of `PROCESS`, which everything that it starts inherits. One that is killed runs no further step,
not even a `finally`; one that is stopped runs none until it goes on, while the time passes for the others.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

__all__ = ["PROCESS", "Stuck", "VirtualLoop"]

PROCESS: ContextVar[int] = ContextVar("process", default=0)
"""The process that a step belongs to; 0: the simulator's own."""


_STEP_SECONDS = 0.0002
_TURN_CHANCE = 0.05


class Stuck(Exception):
    """Nothing is left to run, or too much was."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs one ready step at a time, in an order of the seed's choosing.

    Args:
        rng: The seed's.
        most: The most steps of one run.
    """

    def __init__(self, rng: Random, *, most: int) -> None:
        self._rng = rng
        self._most = most
        self._now = 0.0
        self._order = 0
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._parked: dict[int, list[asyncio.Handle]] = {}
        self._tasks: dict[int, list[asyncio.Task[Any]]] = {}
        self._errors: list[BaseException] = []
        self._newest_first = False
        self.steps = 0
        self.before_step: Callable[[int], None] = lambda process: None
        """Called with the process whose step is next; it may kill or stop that process."""

    # -- processes

    @property
    def killed(self) -> list[int]:
        """Processes whose steps are dropped, or wait until they go on."""
        return list(self._parked)

    def park(self, process: int) -> None:
        """No further step of a process is run, until it is let go on."""
        self._parked.setdefault(process, [])
        self._ready = [each for each in self._ready if not self._parks(each)]

    def unpark(self, process: int) -> None:
        """A process goes on."""
        self._ready += self._parked.pop(process, [])

    def _parks(self, handle: asyncio.Handle) -> bool:
        parked = self._parked.get(_process_of(handle))
        if parked is None:
            return False
        parked.append(handle)
        return True

    def tasks_of(self, process: int) -> list[asyncio.Task[Any]]:
        """Its tasks that are not done."""
        return [each for each in self._tasks.get(process, []) if not each.done()]

    def bury(self) -> None:
        """End everything that is left, when all has been checked: only now, as Python runs each `finally` at last."""
        self.before_step = lambda process: None
        self._most = self.steps + 20_000
        for process in list(self._parked):
            self.unpark(process)
        while left := [each for process in self._tasks for each in self.tasks_of(process)]:
            for task in left:
                task.cancel()
            self.run_until(lambda: not any(map(self.tasks_of, self._tasks)))
        self._errors.clear()

    # -- running

    def run_until(self, done: Callable[[], bool]) -> None:
        """Run steps until something is so.

        Raises:
            Stuck: It never will be, or takes too long.
        """
        asyncio._set_running_loop(self)
        try:
            while not done():
                if self.steps >= self._most:
                    raise Stuck(f"no end after {self.steps} steps")
                self._step()
                if self._errors:
                    raise self._errors[0]
        finally:
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        self._now += _STEP_SECONDS
        while self._timers and (not self._ready or self._timers[0][0] <= self._now):
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._now = max(self._now, when)
                self._enqueue(timer)
        if not self._ready:
            raise Stuck("nothing is left to run")
        handle = self._choose()
        if handle.cancelled():
            return
        self.steps += 1
        self.before_step(_process_of(handle))
        if not self._parks(handle):
            handle._run()

    def _choose(self) -> asyncio.Handle:
        """The step that is next: any of them; or for a while the newest, so that one comes far while others wait."""
        ready = self._ready
        if self._rng.random() < _TURN_CHANCE:
            self._newest_first = self._rng.random() < 0.5
        if len(ready) > 1 and not self._newest_first:
            chosen = self._rng.randrange(len(ready))
            ready[chosen], ready[-1] = ready[-1], ready[chosen]
        return ready.pop()

    def _enqueue(self, handle: asyncio.Handle) -> None:
        if not self._parks(handle):
            self._ready.append(handle)

    # -- what asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context or copy_context())
        self._enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context or copy_context())
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time has come."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, **options)
        self._tasks.setdefault(PROCESS.get(), []).append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and "never retrieved" not in context["message"]:
            self._errors.append(error)


def _process_of(handle: asyncio.Handle) -> int:
    return handle._context.get(PROCESS, 0)  # type: ignore[attr-defined]  # of every handle
