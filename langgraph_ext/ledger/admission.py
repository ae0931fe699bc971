"""Admission: whether an attempt of a durable body may begin, and as which (rules L16–L22).

Asked in one transaction, in this order: the lease; what the visit is (L2); an attempt that has succeeded gives its
result back (L16), also where that is not on record yet (unsettled.py); one that runs under an older epoch is given up
(L19); of a run that was cancelled nothing more is run (L18); a paused attempt goes on (L17); a run makes so many visits
at most (L18); what is in doubt stops it until somebody says how it went (L20); the number of attempts is bounded (L21);
else the next one starts (L22).

A refusal is an answer and no exception: what was found on the way, an attempt that is given up, stays on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError, BudgetExhausted, ConflictError, InvalidArgument, NotFound
from langgraph_ext.ledger import attempts, budgets, control, effects, inbox, leases, lost_calls, model_calls, runs
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, EffectClass
from langgraph_ext.ledger.dimensions import Amounts
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.forks import Met, asked_up_to
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.overtaken import overtaken
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.runs import At
from langgraph_ext.ledger.settlement import PartKey
from langgraph_ext.ledger.totals import totals_of
from langgraph_ext.ledger.unsettled import NOTHING, Unsettled
from langgraph_ext.ledger.visit_rows import Level, Numbered, number

__all__ = ["Admitted", "Entry", "Finished", "Mistaken", "NotStored", "Refused", "authorize", "enter", "not_stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A body at its door."""

    attempt_id: str
    """Of the attempt that starts, if one does."""
    thread_id: str
    checkpoint_ns: str
    """The saver's."""
    checkpoint_id: str
    task_id: str
    ordinal: int
    """Which attempt-bearing part of its task, from 0."""
    function: str
    arguments: str
    """The digest of what it is called with; empty for the task's own function."""
    anchors: tuple[tuple[str, str], ...]
    """`(checkpoint_ns, checkpoint_id)` of every checkpoint being executed around it, the root graph's first.

    All of them were seen to be stored (`not_stored`).
    """
    levels: tuple[Level, ...]
    """The tasks around it, outermost first, and its own."""
    node: str
    kind: str | None
    effect: EffectClass
    stops_in_doubt: bool
    """Whether an effect in doubt stops it; if not, the body repeats or probes it."""
    accepts_steering: bool
    """Whether it is given what others have told the run."""
    max_attempts: int | None
    max_transitions: int | None
    """The most visits that its run may have before it; None for any number."""
    limits: Amounts
    """What its invocation would have the run use at most."""
    fail_fast: int | None
    """As many visits in a row as may call a model and fail; None for any number."""
    owner: Owner
    ttl_us: int
    """Of the lease that it takes, if its invocation holds none."""
    gives_back: bool
    """Whether that is so: the lease is its own, for as long as it runs."""
    now_us: int
    unsettled: Unsettled = NOTHING
    """How earlier attempts ended that still run on record."""

    @property
    def at(self) -> At:
        """The root checkpoint being executed, now."""
        return At(self.thread_id, self.anchors[0][1], self.now_us)


class Admitted(NamedTuple):
    """The body runs, as this attempt."""

    attempt: Attempt
    lease: Lease
    run_id: str
    goes_on: bool
    """Whether it is one that had paused."""
    authorized: bool
    """Whether somebody let it act, in spite of what the one before has left in doubt."""
    given_up: tuple[str, ...]
    """Attempts of earlier epochs whose ends can come no more."""
    stands: Numbered
    """Where its visit stands."""
    steering: tuple[Encoded, ...]
    """What others have told the run, and this visit has claimed."""


class Finished(NamedTuple):
    """The body ran to its end before: this is its result."""

    attempt: Attempt
    lease: Lease
    writes: bytes
    asked: Sequence[Met]
    """What its task has asked about effects of a fork, as far as this part of it has."""


class NotStored(NamedTuple):
    """A checkpoint being executed is not stored yet."""

    anchor: tuple[str, str]


class Mistaken(NamedTuple):
    """The part of its number is another call: one that was recorded after the caller had looked."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Refused:
    """The body does not run."""

    code: str
    message: str
    details: dict[str, object] = field(default_factory=dict)
    effects: tuple[str, ...] = ()
    """Ids of those in doubt."""
    lease: Lease | None = None
    given_up: tuple[str, ...] = ()
    """As of `Admitted`."""


def not_stored(tx: Tx, thread_id: str, anchors: Sequence[tuple[str, str]]) -> NotStored | None:
    """The first of these checkpoints that is not stored; None if all of them are (rule L23)."""
    for checkpoint_ns, checkpoint_id in anchors:
        where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
        if tx.maybe("place_get", **where) is None:
            return NotStored((checkpoint_ns, checkpoint_id))
    return None


def enter(tx: Tx, entry: Entry) -> Admitted | Finished | Mistaken | NotStored | Refused:
    """Decide, and record what was decided.

    Raises:
        LeaseError: Another invocation holds the thread (`thread_busy`); nothing is written.
        ConflictError: The visit was something else before (`task_identity_conflict`); nothing is written.
    """
    root = tx.maybe("place_get", thread_id=entry.thread_id, checkpoint_ns="", checkpoint_id=entry.anchors[0][1])
    if root is None:  # deleted since
        return NotStored(entry.anchors[0])
    lease = leases.acquire(tx, thread_id=entry.thread_id, owner=entry.owner, ttl_us=entry.ttl_us, now_us=entry.now_us)
    lost_calls.close_left(tx, entry.thread_id, epoch=lease.epoch, now_us=entry.now_us)
    last = attempts.last_of(tx, entry.thread_id, entry.checkpoint_id, entry.task_id, entry.ordinal)
    if last is not None:
        if not _is_same_call(entry, last):
            _give_back(tx, entry, lease)
            return Mistaken(lease)
        _refuse_another(entry, last)
        if (writes := _result_of(tx, entry, last, lease)) is not None:
            _give_back(tx, entry, lease)
            return Finished(last, lease, writes, asked_up_to(tx, last))
    given_up, last = _ended(tx, entry, last, lease)
    found = _run_of(tx, entry, root)
    run: int = found["run"]
    refused = _stopped(tx, entry, run) or _spent(tx, entry, found)
    if refused is not None:
        _give_back(tx, entry, lease)
        return replace(refused, lease=lease, given_up=given_up)
    if last is not None and (last.status is AttemptStatus.PAUSED or entry.unsettled.asks(last, lease.epoch)):
        return Admitted(
            attempt := _gone_on(tx, entry, last, lease),
            lease,
            found["run_id"],
            goes_on=True,
            authorized=attempts.is_authorized(tx, attempt),
            given_up=given_up,
            stands=_stands(tx, entry, run),
            steering=inbox.claimed(tx, attempt) if entry.accepts_steering else (),
        )
    before = _followed(tx, entry, run) if last is None else [last]
    refused = _refusal(tx, entry, found, last, before)
    if refused is not None:
        _give_back(tx, entry, lease)
        return replace(refused, lease=lease, given_up=given_up)
    if found["status"] == RunStatus.RECOVERY_REQUIRED and not _is_doubted(tx, run):
        runs.move(tx, run, RunStatus.RUNNING, entry.at)
    attempt = attempts.start(
        tx,
        attempt_id=entry.attempt_id,
        run=run,
        thread_id=entry.thread_id,
        checkpoint_ns=entry.checkpoint_ns,
        checkpoint_id=entry.checkpoint_id,
        task_id=entry.task_id,
        ordinal=entry.ordinal,
        epoch=lease.epoch,
        now_us=entry.now_us,
        node=entry.node,
        kind=entry.kind,
        effect=entry.effect,
        function=entry.function,
        arguments=entry.arguments,
    )
    attempts.append_attempt_event(tx, attempt, "started", now_us=entry.now_us)
    return Admitted(
        attempt,
        lease,
        found["run_id"],
        goes_on=False,
        authorized=any(each.authorized_us is not None for each in before),
        given_up=given_up,
        stands=_stands(tx, entry, run),
        steering=inbox.claim(tx, attempt, now_us=entry.now_us) if entry.accepts_steering else (),
    )


def _result_of(tx: Tx, entry: Entry, last: Attempt, lease: Lease) -> bytes | None:
    """What an attempt's body has returned, on record or about to be; None if it did not."""
    if last.status is AttemptStatus.SUCCEEDED:
        return attempts.writes_of(tx, last)
    return entry.unsettled.returned(last, lease.epoch)


def _ended(tx: Tx, entry: Entry, last: Attempt | None, lease: Lease) -> tuple[tuple[str, ...], Attempt | None]:
    """End what can come to no other end; the attempts of earlier epochs, and the visit's last one as it is now."""
    given_up = attempts.interrupt_left(tx, entry.thread_id, epoch=lease.epoch, now_us=entry.now_us)
    if given_up:
        effects.doubt_left(tx, given_up, now_us=entry.now_us)
    failed = last is not None and entry.unsettled.fail(tx, last, lease.epoch, now_us=entry.now_us)
    if given_up or failed:
        last = attempts.last_of(tx, entry.thread_id, entry.checkpoint_id, entry.task_id, entry.ordinal)
    return given_up, last


def _gone_on(tx: Tx, entry: Entry, last: Attempt, lease: Lease) -> Attempt:
    """A paused attempt runs again.

    If its pause was not stored it does so under the epoch it has, and a call that it has left may still be running.
    """
    if last.status is AttemptStatus.PAUSED:
        effects.doubt_left(tx, [last.attempt_id], now_us=entry.now_us)
        return attempts.go_on(tx, last, epoch=lease.epoch, now_us=entry.now_us)
    effects.forget_uses(tx, last.attempt_id, epoch=last.epoch)
    return last


def _stands(tx: Tx, entry: Entry, run: int) -> Numbered:
    return number(tx, run=run, thread_id=entry.thread_id, levels=entry.levels)


def _give_back(tx: Tx, entry: Entry, lease: Lease) -> None:
    if entry.gives_back:
        leases.give_back(tx, entry.thread_id, lease.epoch, now_us=entry.now_us)


def authorize(tx: Tx, attempt_id: str, *, now_us: int) -> bool:
    """Let the next attempt of a visit act, though nobody knows how this one ended; once.

    Returns:
        Whether nobody had before.

    Raises:
        NotFound: There is no such attempt (`attempt_not_found`).
        InvalidArgument: It is neither interrupted nor left running by an owner that is gone.
    """
    attempt = attempts.find(tx, attempt_id)
    if attempt is None:
        raise NotFound(
            f"attempt {attempt_id!r} is not on record; ledger.attempts(run_id) lists those of a run",
            code="attempt_not_found",
        )
    lease = leases.holder(tx, attempt.thread_id, now_us=now_us)
    left = attempt.status is AttemptStatus.RUNNING and (lease is None or lease.epoch != attempt.epoch)
    if attempt.status is not AttemptStatus.INTERRUPTED and not left:
        raise InvalidArgument(
            f"attempt {attempt_id!r} is {attempt.status}: only one that was interrupted, or left running by a process "
            "that is gone, has to be authorized"
        )
    moved = tx.run("attempt_authorize", attempt_id=attempt_id, now_us=now_us) == 1
    if moved:
        attempts.append_attempt_event(tx, attempt, "authorized", now_us=now_us)
    return moved


def _is_same_call(entry: Entry, last: Attempt) -> bool:
    """The task's own function may have been renamed since; of its calls, each is known by both."""
    if not entry.arguments:
        return not last.arguments
    return (entry.function, entry.arguments) == (last.function, last.arguments)


def _refuse_another(entry: Entry, last: Attempt) -> None:
    known, comes = (last.node, last.kind, last.effect), (entry.node, entry.kind, entry.effect)
    if known != comes:
        raise ConflictError(
            f"task {entry.task_id!r} of checkpoint {entry.checkpoint_id!r} was recorded as node, kind and effect class "
            f"{tuple(map(str, known))} and comes as {tuple(map(str, comes))}; a visit never changes what it is: give "
            "the node its old name and declaration back, or begin a new run",
            code="task_identity_conflict",
            details={"thread_id": entry.thread_id, "task_id": entry.task_id, "attempt_id": last.attempt_id},
        )


def _run_of(tx: Tx, entry: Entry, root: Row) -> Row:
    """The run of the root checkpoint being executed; one begins there if it belongs to none."""
    run = root["run"]
    if run is None:
        run = runs.begin_at(tx, entry.at)
    return tx.one("run_get", run=run)


def _stopped(tx: Tx, entry: Entry, run: int) -> Refused | None:
    """Whether somebody has cancelled the run; if it was only asked to end, it does now (rules L17, L18)."""
    asked = control.waiting(tx, entry.thread_id, run)
    if asked is not None:
        if control.may_finish(asked, entry.anchors[-1][1]):
            return None
        control.see_to(tx, run, entry.at)
    if not runs.is_cancelled(tx, run):
        return None
    return Refused(
        "cancelled",
        f"node {entry.node!r}: its run was cancelled, and nothing more of it is run; new input begins another run",
        {"thread_id": entry.thread_id, "task_id": entry.task_id},
    )


def _spent(tx: Tx, entry: Entry, run: Row) -> Refused | None:
    """Whether its run has used more than its budget, or fails again and again (rule L18).

    Who has used up a budget to its last call may still end with what needs none.
    """
    limits = budgets.set_limits(tx, run["run"], entry.limits, now_us=entry.now_us)
    try:
        runs.refuse_exhausted(run, entry.thread_id)
        model_calls.refuse_failing(tx, run["run"], entry.fail_fast, {"thread_id": entry.thread_id, "node": entry.node})
        if limits:
            totals = totals_of(tx, run, now_us=entry.now_us)
            budgets.check(limits, totals, {}, thread_id=entry.thread_id, run_id=run["run_id"])
    except (AdmissionError, BudgetExhausted) as error:
        return Refused(error.code, f"node {entry.node!r}: {error.args[0]}", error.details)
    return None


def _beyond(tx: Tx, entry: Entry, run: Row) -> Refused | None:
    """Whether a visit that is about to begin would be one too many (rule L18)."""
    if entry.max_transitions is None or attempts.parts_of(tx, entry.thread_id, entry.checkpoint_id, entry.task_id):
        return None
    place = {"checkpoint_ns": entry.checkpoint_ns, "checkpoint_id": entry.checkpoint_id, "task_id": entry.task_id}
    if tx.maybe("call_of_task", thread_id=entry.thread_id, **place) is not None:
        return None
    spans = {"run": run["run"], "thread_id": entry.thread_id, "first_id": run["first_id"]}
    made = tx.one("run_transitions", **spans)["visits"]
    if made < entry.max_transitions:
        return None
    return Refused(
        "transition_limit",
        f"node {entry.node!r}: its run has made {made} visits, and max_transitions={entry.max_transitions}; attach the "
        "graph with a higher limit and invoke again, or begin a new run",
        {"thread_id": entry.thread_id, "task_id": entry.task_id, "transitions": made},
    )


def _refusal(tx: Tx, entry: Entry, run: Row, last: Attempt | None, before: Sequence[Attempt]) -> Refused | None:
    """Why the next attempt may not start, if it may not (rules L18–L21)."""
    if last is None:
        return _beyond(tx, entry, run) or _left_in_doubt(tx, entry, before, elsewhere=True)
    return _running(entry, last) or _left_in_doubt(tx, entry, before, elsewhere=False) or _exhausted(entry, last)


def _followed(tx: Tx, entry: Entry, run: int) -> list[Attempt]:
    """The attempts that the first one of a visit follows: of a visit that `update_state` overtook; mostly none."""
    if entry.effect is EffectClass.NONE:
        return []
    function, own = entry.function, not entry.arguments
    return overtaken(tx, run=run, thread_id=entry.thread_id, levels=entry.levels, function=function, own=own)


def _running(entry: Entry, last: Attempt) -> Refused | None:
    """Whether this very part runs already (rule L19)."""
    if last.status is not AttemptStatus.RUNNING:
        return None
    return Refused(
        "attempt_running",
        f"node {entry.node!r}: attempt {last.attempt_id!r} of this task is running under the same lease; wait for its "
        "end",
        _who(entry, last),
    )


def _left_in_doubt(tx: Tx, entry: Entry, before: Sequence[Attempt], *, elsewhere: bool) -> Refused | None:
    """Whether what the attempts before have left in doubt stops the next one (rule L20).

    Args:
        tx: The transaction.
        entry: The body.
        before: The attempts that it follows.
        elsewhere: Whether they are another visit's, that `update_state` overtook.
    """
    for each in before:
        found = [] if each.authorized_us is not None else _doubts(tx, entry, each)
        if not found:
            continue
        doubts = [named for named, _ in found]
        details: dict[str, object] = {"attempt_id": each.attempt_id, "effects": doubts}
        runs.move(tx, each.run, RunStatus.RECOVERY_REQUIRED, entry.at, details=details)
        return Refused(
            "recovery_required",
            f"node {entry.node!r}: attempt {each.attempt_id!r} is {each.status}, and nobody knows the outcome of: "
            f"{', '.join(doubts)}. Find out{_ways_out(entry, each)}; then invoke again" + (_ANEW if elsewhere else ""),
            _who(entry, each) | {"effects": doubts},
            effects=tuple(effect_id for _, effect_id in found if effect_id is not None),
        )
    return None


_ANEW = (
    ". update_state has made its task another one, which acts again also if that has happened, but for effects with "
    "key= or base_key="
)


def _is_doubted(tx: Tx, run: int) -> bool:
    """Whether what a run waits for somebody to find out is in doubt still: tasks may begin beside the one refused."""
    attempt = attempts.find(tx, str(runs.why(tx, run)["attempt_id"]))
    if attempt is None or attempt.authorized_us is not None:
        return False
    is_opaque = attempt.effect is EffectClass.OPAQUE and attempt.status is AttemptStatus.INTERRUPTED
    return is_opaque or bool(effects.in_doubt(tx, visit=_part_of(attempt)))


def _exhausted(entry: Entry, last: Attempt) -> Refused | None:
    """Whether a visit has had as many attempts as it may have (rule L21)."""
    if last.authorized_us is not None or entry.max_attempts is None or last.number < entry.max_attempts:
        return None
    return Refused(
        "retry_exhausted",
        f"node {entry.node!r}: {last.number} attempts of this task have ended without success, and "
        f"max_attempts={entry.max_attempts}; {_one_more(last)}",
        _who(entry, last) | {"max_attempts": entry.max_attempts},
    )


def _who(entry: Entry, attempt: Attempt) -> dict[str, object]:
    return {"thread_id": entry.thread_id, "task_id": attempt.task_id, "attempt_id": attempt.attempt_id}


def _ways_out(entry: Entry, last: Attempt) -> str:
    """What somebody who has found out can do; only an interrupted attempt can be authorized to be followed."""
    interrupted = last.status is AttemptStatus.INTERRUPTED
    ways: list[str] = []
    if entry.effect is not EffectClass.OPAQUE or not interrupted:
        ways.append(", and record it with ledger.resolve_effect(effect_id, …)")
    if interrupted:
        ways.append(f", or let the next attempt act with ledger.authorize_recovery({last.attempt_id!r})")
    return "".join(ways)


def _one_more(last: Attempt) -> str:
    if last.status is AttemptStatus.INTERRUPTED:
        return f"ledger.authorize_recovery({last.attempt_id!r}) allows one more"
    return "find out why, and allow more of them to go on"


def _doubts(tx: Tx, entry: Entry, last: Attempt) -> list[tuple[str, str | None]]:
    """Names, and effect ids, of what is in doubt, for a body that stops at it."""
    if entry.effect is EffectClass.OPAQUE and last.status is AttemptStatus.INTERRUPTED:
        return [(f"{entry.node} (opaque)", None)]
    if not entry.stops_in_doubt:
        return []
    found = effects.in_doubt(tx, visit=_part_of(last))
    return [(f"{effect.name} ({effect.effect_id})", effect.effect_id) for effect in found]


def _part_of(attempt: Attempt) -> PartKey:
    return PartKey(attempt.thread_id, attempt.checkpoint_id, attempt.task_id, attempt.ordinal)
