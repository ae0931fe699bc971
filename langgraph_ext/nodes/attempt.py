"""Attempt: a durable body that runs, and how its end is recorded (rules L4, L11, L49)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.ledger import endings, settlement
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.nodes.acts import AttemptInterrupted
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver import host

__all__ = ["Run", "arunning", "decoded", "encoded", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An attempt that was admitted."""

    place: Place
    attempt: Attempt
    frame: Frame
    gives_back: bool
    """Whether it took the lease by itself."""


class Running:
    """A body that runs: what is to be told of its end."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def returned(self, value: Any) -> Any:
        """The body has returned: stage that, and give the value on."""
        self._stage("succeeded", encoded(self._run.place, "returned", value))
        return value

    def raised(self, error: BaseException) -> Callable[[Tx], object] | None:
        """The body has raised: stage it if it is a signal, else the transaction that records it."""
        if isinstance(error, GraphInterrupt):
            self._stage("paused", b"")
            return None
        if isinstance(error, ParentCommand):
            self._stage("succeeded", encoded(self._run.place, "command", error.args[0]))
            return None
        told = (type(error).__name__, message_of(error), getattr(error, "code", None))
        now_us = self._run.place.saver.database.clock_us()
        target, gives_back = _target(error), self._run.gives_back
        return partial(
            endings.end, attempt=self._run.attempt, target=target, error=told, gives_back=gives_back, now_us=now_us
        )

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


@contextmanager
def running(run: Run) -> Iterator[Running]:
    """Around a body: whatever ends it is recorded."""
    body = Running(run)
    try:
        yield body
    except BaseException as error:
        record = body.raised(error)
        if record is not None:
            run.place.saver.database.transact(record)
        raise


@asynccontextmanager
async def arunning(run: Run) -> AsyncIterator[Running]:
    """As `running`. A cancelled body is recorded too, which takes a commit's time."""
    body = Running(run)
    try:
        yield body
    except BaseException as error:
        record = body.raised(error)
        if record is not None:
            await asyncio.shield(run.place.saver.database.atransact(record))
        raise


def _target(error: BaseException) -> AttemptStatus:
    if isinstance(error, AttemptInterrupted):
        return AttemptStatus.INTERRUPTED
    if host.is_cancellation(error) or isinstance(error, GraphBubbleUp):
        return AttemptStatus.CANCELLED
    return AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.INTERRUPTED


def encoded(place: Place, how: Literal["returned", "command"], value: Any) -> bytes:
    """A result: how it came and its type, as a line of JSON, and its serialized value."""
    kind, data = place.saver.serde.dumps_typed(value)
    return canonical.encode([how, kind]) + b"\n" + data


def decoded(place: Place, writes: bytes) -> tuple[str, Any]:
    """How a result came, and its value."""
    head, _, data = writes.partition(b"\n")
    how, kind = canonical.decode(head)
    return how, place.saver.serde.loads_typed((kind, data))
