"""Door: how a durable body asks for admission, and waits until it can be asked for (rules L16 to L23)."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph.errors import ParentCommand

from langgraph_ext.database import Tx
from langgraph_ext.errors import AdmissionError, LangGraphExtError, RecoveryRequired
from langgraph_ext.ledger import admission, leases
from langgraph_ext.ledger.admission import Admitted, Entry, Finished, NotStored, Refused
from langgraph_ext.ledger.attempts import EffectClass
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.nodes.acts import Actor
from langgraph_ext.nodes.attempt import Run, decoded
from langgraph_ext.nodes.declared import Declared
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place, levels_of
from langgraph_ext.nodes.refusals import refuse
from langgraph_ext.saver.attached import Invocation

__all__ = ["Result", "aenter", "enter", "leaves_no_trace"]

_WAIT_SECONDS = 30.0
"""How long admission waits for the checkpoint being executed to be stored (rule L23)."""

_PAUSES = (0.0005, 0.001, 0.002, 0.005, 0.01)
"""Seconds between looks whether it is; the last one again and again."""


class Result(NamedTuple):
    """The body has run to its end before."""

    value: Any


def leaves_no_trace(place: Place, declared: Declared) -> bool:
    """Whether a body runs unrecorded: under durability `exit` its checkpoint is stored when all is over, if at all."""
    return place.durability == "exit" and declared.effect is EffectClass.NONE


def enter(place: Place, declared: Declared) -> Result | Run:
    """Ask for admission; waits until the checkpoint being executed is stored.

    Raises:
        LangGraphExtError: It is refused, as a signal to LangGraph.
    """
    database = place.saver.database
    try:
        caller = _caller(place, declared)
        deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
        while True:
            missing = database.read(_missing, caller)
            if missing is None:
                answer = database.transact(admission.enter, _entry(caller))
                if not isinstance(answer, NotStored):
                    return _answered(caller, answer)
                missing = answer
            _refuse_late(caller, missing, deadline)
            time.sleep(next(pauses, _PAUSES[-1]))
    except LangGraphExtError as error:
        refuse(error)


async def aenter(place: Place, declared: Declared) -> Result | Run:
    """As `enter`."""
    database = place.saver.database
    try:
        caller = _caller(place, declared)
        deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
        while True:
            missing = await database.aread(_missing, caller)
            if missing is None:
                answer = await database.atransact(admission.enter, _entry(caller))
                if not isinstance(answer, NotStored):
                    return _answered(caller, answer)
                missing = answer
            _refuse_late(caller, missing, deadline)
            await asyncio.sleep(next(pauses, _PAUSES[-1]))
    except LangGraphExtError as error:
        refuse(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """A body before it is admitted."""

    place: Place
    declared: Declared
    anchors: tuple[tuple[str, str], ...]
    """The checkpoints being executed that are stored, or will be: those of graphs that have loaded from the saver."""
    invocation: Invocation | None
    """The attached one whose lease the attempt runs under; None if it takes one by itself."""
    owner: Owner


def _caller(place: Place, declared: Declared) -> _Caller:
    """See where a body stands, and whether it may stand there.

    Raises:
        AdmissionError: It has effects, and nothing is stored there (`durability_required`).
    """
    acts = declared.effect is not EffectClass.NONE
    if place.durability == "exit" and acts:
        raise AdmissionError(
            f'node {place.node!r} has effects and runs under durability="exit", where nothing is stored until the run '
            'ends; invoke with durability="sync" or "async"',
            code="durability_required",
        )
    anchors = tuple(each for each in place.anchors if place.saver.loops.has(place.thread_id, each[0]))
    if place.checkpoint_ns not in dict(anchors) and acts:
        raise AdmissionError(
            f"node {place.node!r} has effects and runs in a graph that hands nothing to the saver; compile that "
            "subgraph without checkpointer=False",
            code="durability_required",
        )
    root_id = place.anchors[0][1]
    invocation = place.saver.attached.of(place.config, place.thread_id, root_id)
    owner = Owner.here(f"{place.saver.invocation_id}:{root_id}") if invocation is None else invocation.owner
    return _Caller(place=place, declared=declared, anchors=anchors, invocation=invocation, owner=owner)


def _entry(caller: _Caller) -> Entry:
    place, declared = caller.place, caller.declared
    return Entry(
        attempt_id=uuid.uuid4().hex,
        thread_id=place.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        checkpoint_id=place.checkpoint_id,
        task_id=place.task_id,
        ordinal=place.ordinal,
        anchors=caller.anchors,
        levels=levels_of(place),
        node=place.node,
        kind=declared.kind,
        effect=declared.effect,
        stops_in_doubt=declared.on_unknown == "stop",
        max_attempts=declared.max_attempts,
        max_transitions=None if caller.invocation is None else caller.invocation.max_transitions,
        owner=caller.owner,
        ttl_us=leases.DEFAULT_TTL_US,
        gives_back=caller.invocation is None,
        now_us=place.saver.database.clock_us(),
    )


def _missing(tx: Tx, caller: _Caller) -> NotStored | None:
    """What is not stored yet; where its put has failed, or the thread is lost, who waits would wait in vain.

    Raises:
        LangGraphExtError: What its put has raised.
        LeaseError: The thread is another's by now (`lease_lost`).
    """
    missing = admission.not_stored(tx, caller.place.thread_id, caller.anchors)
    if missing is not None:
        if caller.place.saver.failed.any:
            _refuse_behind_failure(caller, missing)
        why = caller.place.saver.unstored.why(caller.place.thread_id, *missing.anchor)
        if isinstance(why, LangGraphExtError):
            raise why
    if missing is not None and caller.invocation is not None and caller.invocation.lease is not None:
        leases.check(tx, caller.place.thread_id, caller.invocation.lease.epoch)
    return missing


def _refuse_behind_failure(caller: _Caller, missing: NotStored) -> None:
    """Refuse a body whose checkpoint will not be stored, for it stands behind a node that failed in its settlement."""
    namespaces = [checkpoint_ns for checkpoint_ns, _ in caller.anchors]
    failure = caller.place.saver.failed.in_the_way(caller.place.thread_id, namespaces)
    if failure is not None:
        raise AdmissionError(
            f"node {caller.place.node!r}: the checkpoint that it executes is not stored, for a node before it has "
            f"failed in its settlement ({type(failure).__name__}); see that error, and invoke again",
            code="checkpoint_not_stored",
            retryable=True,
            details={"checkpoint_ns": missing.anchor[0], "checkpoint_id": missing.anchor[1]},
        ) from failure


def _refuse_late(caller: _Caller, missing: NotStored, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise AdmissionError(
            f"node {caller.place.node!r}: checkpoint {missing.anchor[1]!r} of namespace {missing.anchor[0]!r}, which "
            f"it executes, was not stored within {_WAIT_SECONDS:g} s. Either saving failed (see the log), or the graph "
            "was compiled with checkpointer=False, or its saver is another one than the node's",
            code="checkpoint_not_stored",
            retryable=True,
            details={"checkpoint_ns": missing.anchor[0], "checkpoint_id": missing.anchor[1]},
        )


def _answered(caller: _Caller, answer: Admitted | Finished | Refused) -> Result | Run:
    place = caller.place
    if isinstance(answer, Refused):
        family = RecoveryRequired if answer.code == "recovery_required" else AdmissionError
        raise family(answer.message, code=answer.code, details=answer.details)
    if isinstance(answer, Finished):
        how, value = decoded(place, answer.writes)
        if how == "command":
            raise ParentCommand(value)
        return Result(value)
    attempt = answer.attempt
    place.saver.staging.forget((*answer.given_up, attempt.attempt_id))
    if place.saver.failed.any:
        place.saver.failed.forget(place.part)
    key = FrameKey(
        attempt_id=attempt.attempt_id,
        run=attempt.run,
        epoch=attempt.epoch,
        node_path=answer.stands.node_path,
        iteration_path=answer.stands.iteration_path,
    )
    frame = Frame(
        attempt_id=attempt.attempt_id,
        run_id=answer.run_id,
        node=place.node,
        node_path=key.node_path,
        iteration_path=key.iteration_path,
        number=attempt.number,
        epoch=attempt.epoch,
        goes_on=answer.goes_on,
        place=place,
        actor=Actor(place, key, answer.run_id, caller.declared, authorized=answer.authorized),
    )
    return Run(place=place, attempt=attempt, frame=frame, gives_back=not answer.lease.whole)
