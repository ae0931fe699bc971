"""Attempt: a durable body that runs, and how its end is recorded (rules L4, L11, L49)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import endings, settlement
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.nodes.acts import Actor, AttemptInterrupted
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver import host
from langgraph_ext.saver.refusals import refuse

__all__ = ["Running", "decoded", "encoded"]


@dataclass(slots=True, kw_only=True, eq=False)
class Running:
    """An attempt that was admitted, around its body: a context manager in both forms. Whatever ends it is recorded.

    Leaving it raises LangGraphExtError, as a signal to LangGraph, if the body's failure could not be recorded: nothing
    else is stored of it then.
    """

    place: Place
    attempt: Attempt
    frame: Frame
    actor: Actor
    gives_back: bool
    """Whether it took the lease by itself."""
    _has_let_go: bool = field(default=False, init=False)
    """Whether the lease waits for it no more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            try:
                self._record(error)
            except LangGraphExtError as unrecorded:
                refuse(unrecorded)
            finally:
                self._may_come_again(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """As `__exit__`. A cancelled body is recorded too, which takes a commit's time."""
        if isinstance(error, GeneratorExit):  # its loop is gone, it is thrown away: nothing can be awaited, or locked
            self.place.saver.renewal.soon(partial(self._record, error))
        elif error is not None:
            try:
                if (record := self._raised(error)) is not None:
                    await asyncio.shield(self.place.saver.database.queue(record))
            except LangGraphExtError as unrecorded:
                refuse(unrecorded)
            finally:
                self._let_go()
                self._may_come_again(error)

    def returned(self, value: Any) -> Any:
        """The body has returned: stage that, and give the value on."""
        self._stage("succeeded", encoded(self.place, "returned", value))
        self._let_go()
        return value

    def _may_come_again(self, error: BaseException) -> None:
        """What the task that called it makes of the error is its own affair; it may call it again."""
        if not isinstance(error, ParentCommand):  # which is a result
            self.place.now.came_to_nothing(self.attempt.ordinal)

    def _record(self, error: BaseException) -> None:
        try:
            if (record := self._raised(error)) is not None:
                self.place.saver.database.transact(record)
        finally:
            self._let_go()

    def _raised(self, error: BaseException) -> Callable[[Tx], object] | None:
        """The body has raised: stage it if it is a signal, else the transaction that records it."""
        if isinstance(error, GraphInterrupt):
            self._stage("paused", b"")
            return None
        if isinstance(error, ParentCommand):
            self._stage("succeeded", encoded(self.place, "command", error.args[0]))
            return None
        calling = frozenset(self.actor.calling)
        if self.gives_back and not calling:
            self._let_go()  # before it is given back: who renews it must not find it lost
        told = (type(error).__name__, message_of(error), getattr(error, "code", None))
        return partial(
            endings.end,
            attempt=self.attempt,
            target=self._target(error),
            error=told,
            gives_back=self.gives_back,
            now_us=self.place.saver.database.clock_us(),
            still_calling=calling,
        )

    def _target(self, error: BaseException) -> AttemptStatus:
        if isinstance(error, AttemptInterrupted):
            return AttemptStatus.INTERRUPTED
        place = self.place
        if host.is_cancellation(error):
            timed_out = host.has_timeout(place.config) and place.saver.timeouts.cancelled(
                place.task, self.attempt.attempt_id
            )
            return AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.CANCELLED
        if isinstance(error, GraphBubbleUp):
            return AttemptStatus.CANCELLED
        return AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.INTERRUPTED

    def _let_go(self) -> None:
        """The lease waits for it no more."""
        if not self._has_let_go:
            self._has_let_go = True
            self.place.saver.holds.end(self.attempt.thread_id, self.attempt.epoch)

    def _stage(self, outcome: Any, writes: bytes) -> None:
        place, attempt = self.place, self.attempt
        registered = self.actor.close()
        place.saver.staging.add(
            settlement.mark(
                outcome,
                key=place.part,
                attempt_id=attempt.attempt_id,
                epoch=attempt.epoch,
                anchors=place.anchors,
                writes=writes,
                notes=self.actor.notes,
                gives_back=self.gives_back,
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
