"""Playing: a call goes through its step. It says what to do next, and whoever drives it does that, sync or async."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph_ext.testing.call_log import CallLog, ScriptedCall
from langgraph_ext.testing.points import kill_myself
from langgraph_ext.testing.steps import Moment, Step

__all__ = ["Pause", "Play", "Work", "pursue", "pursue_async"]

_LOOK_SECONDS = 0.01
"""How long to wait before looking for a file again."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Let others work for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Something that touches files, so that a coroutine leaves it to a thread."""

    do: Callable[[], Any]


class Play:
    """One call, and what it still has to do.

    Args:
        call: As it was put on record.
        step: What it got.
        log: Where its end goes.
    """

    def __init__(self, call: ScriptedCall, step: Step, log: CallLog) -> None:
        self.call, self.step, self._log = call, step, log
        self._ended = False

    def opening(self) -> Iterator[Pause]:
        """What comes before an answer: ends the process, calls a function, waits, raises."""
        self.leave("before")
        yield from self._wait()
        if self.step.during is not None:
            self.step.during()

    def failing(self) -> None:
        """Raise what the step raises, if it raises."""
        error = self.step.error
        if error is not None:
            raise error if isinstance(error, type) else error.with_traceback(None)

    def leave(self, moment: Moment) -> None:
        """End the process, if the step does that at this moment."""
        ending = self.step.ending
        if ending is None or ending.moment != moment:
            return
        if ending.how == "exit" or os.name == "nt":
            os._exit(ending.code)
        kill_myself()

    def answered(self) -> Work:
        """Put on record that everything was said; what comes last is handed over behind that."""
        return Work(partial(self._end, "answered"))

    def ends_with(self, error: BaseException) -> None:
        """Put on record what it raised, or that nobody waited for its answer."""
        if not self._ended:
            self._end("failed" if isinstance(error, Exception) else "left", error)

    @contextmanager
    def on_record(self) -> Iterator[None]:
        """Whatever is raised inside ends the call."""
        try:
            yield
        except BaseException as error:
            self.ends_with(error)
            raise

    @asynccontextmanager
    async def on_record_async(self) -> AsyncIterator[None]:
        """As `on_record`, in a coroutine."""
        try:
            yield
        except BaseException as error:
            await asyncio.to_thread(self.ends_with, error)
            raise

    def _end(self, outcome: str, error: BaseException | None = None) -> None:
        self._ended = True
        self._log.end(self.call, outcome, error)

    def _wait(self) -> Iterator[Pause]:
        until, seconds = self.step.until, self.step.seconds
        if until is None:
            if seconds > 0:
                yield Pause(seconds)
            return
        started = time.monotonic()
        while not os.path.exists(until):
            if 0 < seconds <= time.monotonic() - started:
                return
            yield Pause(_LOOK_SECONDS)


def pursue(acts: Iterator[Any]) -> Iterator[Any]:
    """Do what a play asks for; what is left is what it says."""
    for act in acts:
        if isinstance(act, Pause):
            time.sleep(act.seconds)
        elif isinstance(act, Work):
            act.do()
        else:
            yield act


async def pursue_async(acts: Iterator[Any]) -> AsyncIterator[Any]:
    """As `pursue`, in a coroutine."""
    for act in acts:
        if isinstance(act, Pause):
            await asyncio.sleep(act.seconds)
        elif isinstance(act, Work):
            await asyncio.to_thread(act.do)
        else:
            yield act
