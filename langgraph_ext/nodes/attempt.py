"""Attempt: a durable body that runs, and how its end is recorded (rules L4, L11, L49)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import endings, settlement
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.nodes.acts import AttemptInterrupted
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver import host
from langgraph_ext.saver.refusals import refuse

__all__ = ["Run", "Running", "decoded", "encoded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An attempt that was admitted."""

    place: Place
    attempt: Attempt
    frame: Frame
    gives_back: bool
    """Whether it took the lease by itself."""


class Running:
    """Around a body, as a context manager in both forms: whatever ends it is recorded.

    Leaving it raises LangGraphExtError, as a signal to LangGraph, if the body's failure could not be recorded: nothing
    else is stored of it then.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._holds = run.gives_back

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            try:
                self._record(error)
            except LangGraphExtError as unrecorded:
                refuse(unrecorded)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """As `__exit__`. A cancelled body is recorded too, which takes a commit's time."""
        if isinstance(
            error, GeneratorExit
        ):  # its loop is gone and it is thrown away: nothing can be awaited, or locked
            self._run.place.saver.renewal.soon(partial(self._record, error))
        elif error is not None and (record := self._raised(error)) is not None:
            try:
                await asyncio.shield(self._run.place.saver.database.queue(record))
            except LangGraphExtError as unrecorded:
                refuse(unrecorded)

    def returned(self, value: Any) -> Any:
        """The body has returned: stage that, and give the value on."""
        self._stage("succeeded", encoded(self._run.place, "returned", value))
        self._let_go()
        return value

    def _record(self, error: BaseException) -> None:
        record = self._raised(error)
        if record is not None:
            self._run.place.saver.database.transact(record)

    def _raised(self, error: BaseException) -> Callable[[Tx], object] | None:
        """The body has raised: stage it if it is a signal, else the transaction that records it."""
        self._let_go()
        if isinstance(error, GraphInterrupt):
            self._stage("paused", b"")
            return None
        if isinstance(error, ParentCommand):
            self._stage("succeeded", encoded(self._run.place, "command", error.args[0]))
            return None
        told = (type(error).__name__, message_of(error), getattr(error, "code", None))
        now_us = self._run.place.saver.database.clock_us()
        target, gives_back = self._target(error), self._run.gives_back
        return partial(
            endings.end, attempt=self._run.attempt, target=target, error=told, gives_back=gives_back, now_us=now_us
        )

    def _target(self, error: BaseException) -> AttemptStatus:
        if isinstance(error, AttemptInterrupted):
            return AttemptStatus.INTERRUPTED
        place = self._run.place
        if host.is_cancellation(error):
            timed_out = host.has_timeout(place.config) and place.saver.timeouts.cancelled(
                place.task, self._run.attempt.attempt_id
            )
            return AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.CANCELLED
        if isinstance(error, GraphBubbleUp):
            return AttemptStatus.CANCELLED
        return AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.INTERRUPTED

    def _let_go(self) -> None:
        """Its own lease is renewed no more; what settles its end gives it back."""
        if self._holds:
            self._holds = False
            self._run.place.saver.holds.end(self._run.attempt.thread_id, self._run.attempt.epoch)

    def _stage(self, outcome: Any, writes: bytes) -> None:
        place, attempt = self._run.place, self._run.attempt
        registered = self._run.frame.actor.close()
        place.saver.staging.add(
            settlement.mark(
                outcome,
                key=place.part,
                attempt_id=attempt.attempt_id,
                epoch=attempt.epoch,
                anchors=place.anchors,
                writes=writes,
                gives_back=self._run.gives_back,
                inside=registered if outcome == "succeeded" else (),
            )
        )


def encoded(place: Place, how: Literal["returned", "command"], value: Any) -> bytes:
    """A result: how it came and its type, as a line of JSON, and its serialized value."""
    kind, data = place.saver.serde.dumps_typed(value)
    return canonical.encode([how, kind]) + b"\n" + data


def decoded(place: Place, writes: bytes) -> tuple[str, Any]:
    """How a result came, and its value."""
    head, _, data = writes.partition(b"\n")
    how, kind = canonical.decode(head)
    return how, place.saver.serde.loads_typed((kind, data))
