"""Door: how a durable body asks for admission, and waits until it can be asked for (rules L16 to L23)."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from langgraph.errors import ParentCommand

from langgraph_ext.database import Tx
from langgraph_ext.errors import AdmissionError, BudgetExhausted, LangGraphExtError, RecoveryRequired
from langgraph_ext.ledger import admission, attempts, leases, notices, tombstones
from langgraph_ext.ledger.admission import Admitted, Entry, Finished, Mistaken, NotStored, Refused
from langgraph_ext.ledger.attempts import EffectClass, Part
from langgraph_ext.ledger.encoded import value_of
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.settlement import PartKey, Staged
from langgraph_ext.ledger.unsettled import Unsettled
from langgraph_ext.nodes.acts import Actor
from langgraph_ext.nodes.attempt import Running, decoded
from langgraph_ext.nodes.called import Called
from langgraph_ext.nodes.calls import Calls
from langgraph_ext.nodes.declared import Declared
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.memos import Memos
from langgraph_ext.nodes.place import Place, levels_of
from langgraph_ext.saver.attached import Invocation
from langgraph_ext.saver.refusals import refuse

__all__ = ["Result", "aenter", "enter", "leaves_no_trace"]

_WAIT_SECONDS = 30.0
"""How long admission waits for the checkpoint being executed to be stored (rule L23)."""

_PAUSES = (0.0005, 0.001, 0.002, 0.005, 0.01)
"""Seconds between looks whether it is; the last one again and again."""


_Hindrance = NotStored | Part | Mistaken
"""Why a body has to wait."""


class Result(NamedTuple):
    """The body has run to its end before."""

    value: Any


def leaves_no_trace(place: Place, declared: Declared) -> bool:
    """Whether a body runs unrecorded: under durability `exit` its checkpoint is stored when all is over, if at all."""
    return place.durability == "exit" and declared.effect is EffectClass.NONE


def enter(place: Place, declared: Declared, called: Called, body: Callable[..., Any]) -> Result | Running:
    """Ask for admission; waits until the checkpoint being executed is stored, and until it is known which part this is.

    Args:
        place: Where it stands.
        declared: What was said of it.
        called: The call.
        body: The function.

    Raises:
        LangGraphExtError: It is refused, as a signal to LangGraph.
    """
    database = place.saver.database
    caller = _caller(place, declared, called, body)
    deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
    with _refusing(caller):
        if timed_out := place.saver.timeouts.before(place.task, place.number):
            database.transact(attempts.have_timed_out, timed_out, now_us=database.clock_us())
        while True:
            hindrance: _Hindrance | None = _known(caller, database.read(_look, caller))
            if hindrance is None:
                answer = _asked(caller)
                if not isinstance(answer, NotStored | Mistaken):
                    return answer
                hindrance = answer
            _refuse_late(caller, hindrance, deadline)
            time.sleep(next(pauses, _PAUSES[-1]))


async def aenter(place: Place, declared: Declared, called: Called, body: Callable[..., Any]) -> Result | Running:
    """As `enter`. One that is cancelled meanwhile leaves no attempt that runs."""
    database = place.saver.database
    caller = _caller(place, declared, called, body)
    deadline, pauses = time.monotonic() + _WAIT_SECONDS, iter(_PAUSES)
    with _refusing(caller):
        if timed_out := place.saver.timeouts.before(place.task, place.number):
            await database.atransact(attempts.have_timed_out, timed_out, now_us=database.clock_us())
        while True:
            hindrance: _Hindrance | None = _known(caller, await database.aread(_look, caller))
            if hindrance is None:
                answer = await _aasked(caller)
                if not isinstance(answer, NotStored | Mistaken):
                    return answer
                hindrance = answer
            _refuse_late(caller, hindrance, deadline)
            await asyncio.sleep(next(pauses, _PAUSES[-1]))


@contextmanager
def _refusing(caller: _Caller) -> Iterator[None]:
    """Around the asking: who is not let in may come again, as the same part of its task.

    Raises:
        LangGraphExtError: It is refused, as a signal to LangGraph.
    """
    try:
        yield
    except ParentCommand:  # its result
        raise
    except BaseException as error:
        if caller.part is not None:
            caller.place.now.came_to_nothing(caller.part)
        if isinstance(error, LangGraphExtError):
            refuse(error)
        raise


def _asked(caller: _Caller) -> Result | Running | Mistaken | NotStored:
    """Ask."""
    with caller.place.saver.staging.lent(_part(caller)) as staged:
        asked = caller.place.saver.database.transact(admission.enter, _entry(caller, staged))
        return _answered(caller, asked)


async def _aasked(caller: _Caller) -> Result | Running | Mistaken | NotStored:
    """Ask. A cancelled await does not undo a commit, so that is waited for, and what was admitted ends at once."""
    with caller.place.saver.staging.lent(_part(caller)) as staged:
        asked = caller.place.saver.database.queue(partial(admission.enter, entry=_entry(caller, staged)))
        try:
            return _answered(caller, await asyncio.shield(asked))
        except asyncio.CancelledError:
            try:
                admitted: object = await asked
            except LangGraphExtError:  # nothing was admitted: to be cancelled is all that is left to tell of
                admitted = None
            if isinstance(admitted, Admitted) and isinstance(running := _answered(caller, admitted), Running):
                async with running:
                    raise
            raise


@dataclass(slots=True, kw_only=True)
class _Caller:
    """A body before it is admitted."""

    place: Place
    declared: Declared
    called: Called
    body: Callable[..., Any]
    anchors: tuple[tuple[str, str], ...]
    """The checkpoints being executed that are stored, or will be: those of graphs that have loaded from the saver."""
    invocation: Invocation | None
    """The attached one whose lease the attempt runs under; None if it takes one by itself."""
    owner: Owner
    part: int | None = None
    """Which part of its task it is, once that is known."""
    looks_again: bool = False
    """Whether what was on record when the try began is not enough."""


def _caller(place: Place, declared: Declared, called: Called, body: Callable[..., Any]) -> _Caller:
    """See where a body stands, and whether it may stand there.

    Raises:
        AdmissionError: It has effects, and nothing is stored there (`durability_required`); as a signal to LangGraph.
    """
    acts = declared.effect is not EffectClass.NONE
    if place.durability == "exit" and acts:
        refuse(
            AdmissionError(
                f'node {place.node!r} has effects and runs under durability="exit", where nothing is stored until the '
                'run ends; invoke with durability="sync" or "async"',
                code="durability_required",
            )
        )
    anchors = tuple(each for each in place.anchors if place.saver.loops.has(place.thread_id, each[0]))
    if place.checkpoint_ns not in dict(anchors) and acts:
        refuse(
            AdmissionError(
                f"node {place.node!r} has effects and runs in a graph that hands nothing to the saver; compile that "
                "subgraph without checkpointer=False",
                code="durability_required",
            )
        )
    root_id = place.anchors[0][1]
    invocation = place.saver.attached.of(place.config, place.thread_id, root_id)
    owner = Owner.here(f"{place.saver.invocation_id}:{root_id}") if invocation is None else invocation.owner
    return _Caller(
        place=place,
        declared=declared,
        called=called,
        body=body,
        anchors=anchors,
        invocation=invocation,
        owner=owner,
    )


def _part(caller: _Caller) -> PartKey:
    assert caller.part is not None, "it is claimed before"
    return replace(caller.place, ordinal=caller.part).part


def _entry(caller: _Caller, staged: Sequence[Staged]) -> Entry:
    place, declared = caller.place, caller.declared
    part = _part(caller)
    return Entry(
        attempt_id=uuid.uuid4().hex,
        thread_id=place.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        checkpoint_id=place.checkpoint_id,
        task_id=place.task_id,
        ordinal=part.ordinal,
        function=caller.called.function,
        arguments=caller.called.arguments,
        anchors=caller.anchors,
        levels=levels_of(place),
        node=place.node,
        kind=declared.kind,
        effect=declared.effect,
        stops_in_doubt=declared.on_unknown == "stop",
        accepts_steering=declared.accepts_steering,
        max_attempts=declared.max_attempts,
        max_transitions=None if caller.invocation is None else caller.invocation.max_transitions,
        limits={} if caller.invocation is None else caller.invocation.limits,
        fail_fast=None if caller.invocation is None else caller.invocation.fail_fast,
        owner=caller.owner,
        ttl_us=leases.DEFAULT_TTL_US,
        gives_back=caller.invocation is None,
        now_us=place.saver.database.clock_us(),
        unsettled=Unsettled(staged=staged, failed=place.saver.failed.of_part(part)),
    )


def _look(tx: Tx, caller: _Caller) -> NotStored | Sequence[Part]:
    """What is not stored yet, else the parts of the task.

    Where its put has failed, or the thread is lost or was deleted, who waits would wait in vain.

    Raises:
        LangGraphExtError: What its put has raised; around another error, an AdmissionError (`checkpoint_not_stored`).
        ConflictError: The checkpoint was deleted with its thread (`thread_deleted`).
        LeaseError: The thread is another's by now (`lease_lost`).
    """
    place = caller.place
    missing = admission.not_stored(tx, place.thread_id, caller.anchors)
    if missing is None:
        if place.now.recorded is None or caller.looks_again:
            place.now.recorded = attempts.parts_of(tx, *place.task)
        return place.now.recorded
    why = place.saver.unstored.why(place.config, missing.anchor[0])
    if why is not None:
        raise why if isinstance(why, LangGraphExtError) else _not_saved(place, missing, why)
    tombstones.refuse_missing(tx, place.thread_id, missing.anchor[1])
    if caller.invocation is not None and caller.invocation.lease is not None:
        leases.check(tx, place.thread_id, caller.invocation.lease.epoch)
    return missing


def _not_saved(place: Place, missing: NotStored, why: BaseException) -> AdmissionError:
    """What a body is told whose checkpoint will not be stored, by an error that is none of this package's."""
    error = AdmissionError(
        f"node {place.node!r}: the checkpoint that it executes will not be stored, for the saving of it, or of one "
        f"before it, has raised {type(why).__name__}; see that error, and invoke again",
        code="checkpoint_not_stored",
        retryable=True,
        details={"checkpoint_ns": missing.anchor[0], "checkpoint_id": missing.anchor[1]},
    )
    error.__cause__ = why
    return error


def _known(caller: _Caller, seen: NotStored | Sequence[Part]) -> NotStored | Part | None:
    """What keeps a call from being admitted yet, by what was seen; if nothing does, it is claimed which part it is.

    Raises:
        AdmissionError: Nothing tells it from a call that runs (`part_ambiguous`).
    """
    if isinstance(seen, NotStored):
        return seen
    if caller.part is None:
        acts = caller.declared.effect is not EffectClass.NONE
        found = caller.place.now.claim(caller.called, caller.body, seen, acts=acts)
        if isinstance(found, Part):
            caller.looks_again = True
            return found
        caller.part = found
    return None


def _refuse_late(caller: _Caller, hindrance: _Hindrance, deadline: float) -> None:
    """Give up waiting.

    Raises:
        AdmissionError: The time is over (`checkpoint_not_stored`, `part_changed`).
    """
    if time.monotonic() <= deadline or isinstance(hindrance, Mistaken):
        return
    node = caller.place.node
    if isinstance(hindrance, Part):
        raise AdmissionError(
            f"node {node!r}: {hindrance.function} was called in this task before with other arguments (attempt "
            f"{hindrance.attempt_id!r}), and what that did is on record. Whether this is that call again nobody can "
            "tell, so it neither gets that one's results nor acts anew. Call it with the arguments it had then, or "
            "make it the node itself, which may be called with anything",
            code="part_changed",
            retryable=True,
            details={"function": hindrance.function, "attempt_id": hindrance.attempt_id},
        )
    raise AdmissionError(
        f"node {node!r}: checkpoint {hindrance.anchor[1]!r} of namespace {hindrance.anchor[0]!r}, which it executes, "
        f"was not stored within {_WAIT_SECONDS:g} s. Either saving failed (see the log), or the graph was compiled "
        "with checkpointer=False, or its saver is another one than the node's",
        code="checkpoint_not_stored",
        retryable=True,
        details={"checkpoint_ns": hindrance.anchor[0], "checkpoint_id": hindrance.anchor[1]},
    )


def _answered(
    caller: _Caller, answer: Admitted | Finished | Mistaken | NotStored | Refused
) -> Result | Running | Mistaken | NotStored:
    assert caller.part is not None, "it was asked for as one"
    place = replace(caller.place, ordinal=caller.part)
    if isinstance(answer, NotStored):
        return answer
    _note(place, answer)
    if isinstance(answer, Mistaken):
        place.now.disclaim(caller.part)
        caller.part, caller.looks_again = None, True
        return answer
    if isinstance(answer, Refused):
        families = {"recovery_required": RecoveryRequired, "budget_exhausted": BudgetExhausted}
        raise families.get(answer.code, AdmissionError)(answer.message, code=answer.code, details=answer.details)
    if isinstance(answer, Finished):
        place.now.turns.catch_up(answer.asked)
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
    declared, own_lease = caller.declared, not answer.lease.whole
    actor = Actor(place, key, answer.run_id, declared, authorized=answer.authorized, own_lease=own_lease)
    frame = Frame(
        attempt_id=attempt.attempt_id,
        run_id=answer.run_id,
        node=place.node,
        node_path=key.node_path,
        iteration_path=key.iteration_path,
        number=attempt.number,
        epoch=attempt.epoch,
        goes_on=answer.goes_on,
        steering=tuple(value_of(each.type, each.data, place.saver.serde) for each in answer.steering),
        memo=Memos(place, key),
        _actor=actor,
        _calls=Calls(place, key, answer.lease, caller.invocation),
    )
    place.saver.holds.begin(answer.lease)
    return Running(place=place, attempt=attempt, frame=frame, actor=actor, gives_back=own_lease)


def _note(place: Place, answer: Admitted | Finished | Mistaken | Refused) -> None:
    """What the operator is told of an admission, now that it is committed."""
    if answer.lease is not None:
        notices.taken_over(place.thread_id, answer.lease.epoch, answer.lease.taken_over)
    if isinstance(answer, Admitted | Refused):
        notices.given_up(place.thread_id, answer.given_up)
    if isinstance(answer, Refused) and answer.code == "recovery_required":
        notices.in_doubt(place.thread_id, str(answer.details["attempt_id"]), answer.effects)
