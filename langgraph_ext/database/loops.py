"""Answers across threads: how a worker thread tells an event loop that what a coroutine waits for is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

__all__ = ["Answer", "on_a_loop", "tell"]


def on_a_loop() -> bool:
    """Whether this thread is running an event loop, which must not be blocked."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def tell(loop: asyncio.AbstractEventLoop, fn: Callable[..., object], *args: Any) -> None:
    """Run `fn(*args)` on the loop, from any thread. On a loop that is closed nobody waits, and nothing happens."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(fn, *args)


class Answer(asyncio.Future[Any]):
    """A future that, when it is settled, lets the one task that awaits it go on at once.

    A future of asyncio's schedules the task, which goes on in the loop's next turn, a poll of the system later. But
    `settle` is called as a callback of the loop, where a task may go on: asyncio's own wake-up does nothing else.
    """

    _resume: tuple[Callable[[Any], object], Context | None] | None = None

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        """As a future; the first one, which is the awaiting task's, is kept for `settle`."""
        if self._resume is None and not self.done():
            self._resume = (fn, context)
        else:
            super().add_done_callback(fn, context=context)

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        """As a future."""
        if self._resume is not None and self._resume[0] == fn:
            self._resume = None
            return 1 + super().remove_done_callback(fn)
        return super().remove_done_callback(fn)

    def cancel(self, msg: Any | None = None) -> bool:
        """As a future: who awaits it is woken in the loop's next turn."""
        resume, self._resume = self._resume, None
        if resume is not None:
            super().add_done_callback(resume[0], context=resume[1])
        return super().cancel(msg)

    def settle(self, result: Any = None, error: BaseException | None = None) -> None:
        """Give it its result or error, in a callback of its loop; who awaits it has gone on when this returns.

        One that is settled or cancelled already stays as it is.
        """
        if self.done():
            return
        if isinstance(error, StopIteration):  # the one that a future refuses
            unusual = RuntimeError(f"a transaction raised {error!r}")
            unusual.__cause__ = error
            error = unusual
        try:
            if error is not None:
                self.set_exception(error)
            else:
                self.set_result(result)
            self._go_on()
        finally:
            if self._resume is not None:  # Ctrl-C came first
                self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Let the awaiting task go on, if the answer is there and it has not yet."""
        if self._resume is not None and self.done():
            fn, context = self._resume
            self._resume = None  # no call stands between this and the task's own, so Ctrl-C does not come between them
            fn(self) if context is None else context.run(fn, self)
