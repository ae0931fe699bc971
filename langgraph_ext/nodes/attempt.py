"""Attempt: how a durable body is admitted, and how its end is recorded. Both doors of `durable` stand here."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.errors import AdmissionError, LangGraphExtError, RecoveryRequired
from langgraph_ext.ledger import admission, attempts, effects, leases, settlement
from langgraph_ext.ledger.admission import Admitted, Entry, Finished, NotStored, Refused
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, EffectClass
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.settlement import TaskKey
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.nodes.acts import Actor, AttemptInterrupted, Policy
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.nodes.refusals import refuse, refused
from langgraph_ext.saver import host
from langgraph_ext.saver.attached import Invocation

__all__ = ["Declared", "Result", "Run", "aenter", "arunning", "enter", "leaves_no_trace", "running"]

_TTL_US = 30_000_000
"""Of the lease that an attempt takes by itself."""

_WAIT_SECONDS = 30.0
"""How long admission waits for the checkpoint being executed to be stored (rule L23)."""

_PAUSES = (0.0005, 0.001, 0.002, 0.005, 0.01)
"""Seconds between looks whether it is; the last one again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What `durable` was told of a body."""

    effect: EffectClass
    kind: str | None
    max_attempts: int | None
    on_unknown: str
    probe: Callable[[str], Any] | None


class Result(NamedTuple):
    """The body has run to its end before."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An attempt that was admitted."""

    place: Place
    attempt: Attempt
    frame: Frame
    gives_back: bool
    """Whether it took the lease by itself."""


def enter(place: Place, declared: Declared) -> Result | Run:
    """Ask for admission; waits until the checkpoint being executed is stored.

    Raises:
        LangGraphExtError: It is refused, as a signal to LangGraph.
    """
    entry = _entry(place, declared)
    anchors, invocation = _stored_anchors(place), _invocation(place)
    deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
    try:
        while True:
            missing = place.saver.database.read(admission.not_stored, place.thread_id, anchors)
            if missing is None:
                answer = place.saver.database.transact(admission.enter, entry())
                if not isinstance(answer, NotStored):
                    return _answered(place, declared, answer)
                missing = answer
            _wait_or_refuse(place, missing, deadline)
            if invocation is not None:  # who has lost the thread waits in vain
                place.saver.database.read(_still_held, invocation)
            time.sleep(next(pauses, _PAUSES[-1]))
    except LangGraphExtError as error:
        refuse(error)


async def aenter(place: Place, declared: Declared) -> Result | Run:
    """As `enter`."""
    entry = _entry(place, declared)
    anchors, invocation = _stored_anchors(place), _invocation(place)
    deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
    try:
        while True:
            missing = await place.saver.database.aread(admission.not_stored, place.thread_id, anchors)
            if missing is None:
                answer = await place.saver.database.atransact(admission.enter, entry())
                if not isinstance(answer, NotStored):
                    return _answered(place, declared, answer)
                missing = answer
            _wait_or_refuse(place, missing, deadline)
            if invocation is not None:
                await place.saver.database.aread(_still_held, invocation)
            await asyncio.sleep(next(pauses, _PAUSES[-1]))
    except LangGraphExtError as error:
        refuse(error)


def _invocation(place: Place) -> Invocation | None:
    """The attached invocation whose lease the attempt runs under; None if it takes one by itself."""
    return place.saver.attached.of(place.config, place.thread_id, place.anchors[0][1])


def _owner(place: Place) -> Owner:
    invocation = _invocation(place)
    return invocation.owner if invocation else Owner.here(f"{place.saver.invocation_id}:{place.anchors[0][1]}")


def leaves_no_trace(place: Place, declared: Declared) -> bool:
    """Whether a body runs unrecorded: under durability `exit` its checkpoint is stored when all is over, if at all."""
    return place.durability == "exit" and declared.effect is EffectClass.NONE


def _entry(place: Place, declared: Declared) -> Callable[[], Entry]:
    """What to ask for; with the time of asking."""
    if place.durability == "exit" and declared.effect is not EffectClass.NONE:
        raise refused(
            AdmissionError(
                f'node {place.node!r} has effects and runs under durability="exit", where nothing is stored until the '
                'run ends; invoke with durability="sync" or "async"',
                code="durability_required",
            )
        )
    stored = _stored_anchors(place)
    if place.checkpoint_ns not in dict(stored) and declared.effect is not EffectClass.NONE:
        raise refused(
            AdmissionError(
                f"node {place.node!r} has effects and runs in a graph that hands nothing to the saver; compile that "
                "subgraph without checkpointer=False",
                code="durability_required",
            )
        )
    return lambda: Entry(
        attempt_id=uuid.uuid4().hex,
        thread_id=place.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        checkpoint_id=place.checkpoint_id,
        task_id=place.task_id,
        ordinal=place.ordinal,
        anchors=stored,
        node=place.node,
        kind=declared.kind,
        effect=declared.effect,
        stops_in_doubt=declared.on_unknown == "stop",
        max_attempts=declared.max_attempts,
        owner=_owner(place),
        ttl_us=_TTL_US,
        gives_back=_invocation(place) is None,
        now_us=place.saver.database.clock_us(),
    )


def _still_held(tx: Tx, invocation: Invocation) -> None:
    if invocation.lease is not None:
        leases.check(tx, invocation.lease.thread_id, invocation.lease.epoch)


def _stored_anchors(place: Place) -> tuple[tuple[str, str], ...]:
    """The checkpoints being executed that are stored, or will be: those of graphs that have loaded from the saver."""
    return tuple(each for each in place.anchors if place.saver.loops.has(place.thread_id, each[0]))


def _wait_or_refuse(place: Place, missing: NotStored, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise AdmissionError(
            f"node {place.node!r}: checkpoint {missing.anchor[1]!r} of namespace {missing.anchor[0]!r}, which it "
            f"executes, was not stored within {_WAIT_SECONDS:g} s. Either saving failed (see the log), or the graph "
            "was compiled with checkpointer=False, or its saver is another one than the node's",
            code="checkpoint_not_stored",
            retryable=True,
            details={"checkpoint_ns": missing.anchor[0], "checkpoint_id": missing.anchor[1]},
        )


def _answered(place: Place, declared: Declared, answer: Admitted | Finished | Refused) -> Result | Run:
    if isinstance(answer, Refused):
        family = RecoveryRequired if answer.code == "recovery_required" else AdmissionError
        raise family(answer.message, code=answer.code, details=answer.details)
    if isinstance(answer, Finished):
        kind, value = _decoded(place, answer.writes)
        if kind == "command":
            raise ParentCommand(value)
        return Result(value)
    place.saver.staging.forget((*answer.given_up, answer.attempt.attempt_id))
    key = FrameKey(
        attempt_id=answer.attempt.attempt_id,
        run=answer.attempt.run,
        epoch=answer.attempt.epoch,
        node_path=place.node,
        iteration_path=(),
    )
    policy = Policy(declared.effect, declared.on_unknown, declared.probe)
    frame = Frame(
        attempt_id=answer.attempt.attempt_id,
        run_id=answer.run_id,
        node=place.node,
        number=answer.attempt.number,
        epoch=answer.attempt.epoch,
        goes_on=answer.goes_on,
        place=place,
        actor=Actor(place, key, answer.run_id, policy),
    )
    return Run(place=place, attempt=answer.attempt, frame=frame, gives_back=not answer.lease.whole)


class Running:
    """A body that runs: what is to be told of its end."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def returned(self, value: Any) -> Any:
        """The body has returned: stage that, and give the value on."""
        self._stage("succeeded", _encoded(self._run.place, "returned", value))
        return value

    def raised(self, error: BaseException) -> Callable[[Tx], object] | None:
        """The body has raised: stage it if it is a signal, else the transaction that records it."""
        if isinstance(error, GraphInterrupt):
            self._stage("paused", b"")
            return None
        if isinstance(error, ParentCommand):
            self._stage("succeeded", _encoded(self._run.place, "command", error.args[0]))
            return None
        told = (type(error).__name__, message_of(error), getattr(error, "code", None))
        return partial(_end, run=self._run, target=_target(error), error=told, now_us=self._clock())

    def _clock(self) -> int:
        return self._run.place.saver.database.clock_us()

    def _stage(self, outcome: Any, writes: bytes) -> None:
        place, attempt = self._run.place, self._run.attempt
        place.saver.staging.add(
            settlement.mark(
                outcome,
                key=TaskKey(place.thread_id, place.checkpoint_id, place.task_id, place.ordinal),
                attempt_id=attempt.attempt_id,
                epoch=attempt.epoch,
                anchors=place.anchors,
                writes=writes,
                gives_back=self._run.gives_back,
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


def _end(tx: Tx, *, run: Run, target: AttemptStatus, error: tuple[str, str, str | None], now_us: int) -> None:
    attempt = run.attempt
    leases.check(tx, attempt.thread_id, attempt.epoch)
    attempts.end(tx, attempt, target, now_us=now_us, error=error)
    effects.doubt_left(tx, [attempt.attempt_id], now_us=now_us)
    if run.gives_back:
        leases.give_back(tx, attempt.thread_id, attempt.epoch, now_us=now_us)


def _target(error: BaseException) -> AttemptStatus:
    if isinstance(error, AttemptInterrupted):
        return AttemptStatus.INTERRUPTED
    if host.is_cancellation(error) or isinstance(error, GraphBubbleUp):
        return AttemptStatus.CANCELLED
    return AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.INTERRUPTED


def _encoded(place: Place, how: Literal["returned", "command"], value: Any) -> bytes:
    """A result: how it came and its type, as a line of JSON, and its serialized value."""
    kind, data = place.saver.serde.dumps_typed(value)
    return canonical.encode([how, kind]) + b"\n" + data


def _decoded(place: Place, writes: bytes) -> tuple[str, Any]:
    head, _, data = writes.partition(b"\n")
    how, kind = canonical.decode(head)
    return how, place.saver.serde.loads_typed((kind, data))
