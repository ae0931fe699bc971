"""Model calls: what each may use is reserved before it is made, and replaced by what it used (rules L34–L37).

State machine of a call:

    start ──▶ open ── settle ──▶ settled          its usage is known, as far as the provider reported it
                └──── close, or its owner is gone ──▶ interrupted     no answer; its reservation stays

A lost answer does not prove that nothing was spent, so only a settlement takes a reservation away, and only as far as
it says what was used. Every move is a compare-and-set on an open call. So a settlement needs no lease: whoever has
taken the thread over has closed the call in the transaction that took it.

(`calls.py` next to this is about something else: what LangGraph tells a saver of a task's writes.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument
from langgraph_ext.ledger import budgets, control, leases, runs
from langgraph_ext.ledger.dimensions import Amounts, Dimension
from langgraph_ext.ledger.frames import FrameKey, check_frame
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.runs import At
from langgraph_ext.ledger.totals import totals_of, totals_so_far

__all__ = ["Asked", "Bound", "Reported", "close_call", "held_after", "refuse_failing", "settle_call", "start_call"]

_MOST_TOKENS = 10**12


class Bound(NamedTuple):
    """What a call may use at most, as far as that can be told."""

    tokens: int | None
    cost_nusd: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that is about to be made."""

    call_id: str
    """Its own; used once."""
    thread_id: str
    epoch: int
    """Of the lease it is made under; the next is since when that is held."""
    held_us: int
    goes_on: bool
    """Whether the invocation goes on with the run at the thread's head, and brought no input of its own."""
    root_id: str | None
    """The root checkpoint being executed; None where that is not known. It may not be stored yet."""
    checkpoint_ns: str | None
    """The saver's, of the visit that makes the call; so are the next two."""
    checkpoint_id: str | None
    task_id: str | None
    node: str
    frame: FrameKey | None
    """Of the attempt that makes it; None in a plain node."""
    model: str | None
    provider: str | None
    prompt_bytes: int
    """Of the last message."""
    context_bytes: int
    """Of the messages before it."""
    bound: Bound
    limits: Amounts
    """What its invocation would have the run use at most; those on record count, where there are some."""
    fail_fast: int | None
    now_us: int
    kind: str = "model"
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a provider says that a call used; None where it does not."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cache_read: int | None = None
    """Of `tokens_in`."""
    cache_written: int | None = None
    cost_nusd: int | None = None
    tool_calls: int | None = None

    def check(self) -> None:
        """See that these are counts.

        Raises:
            InvalidArgument: One is negative, fractional, or too great to be true (`invalid_usage`).
        """
        for name in ("tokens_in", "tokens_out", "cache_read", "cache_written", "tool_calls"):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or not 0 <= count <= _MOST_TOKENS):
                raise InvalidArgument(
                    f"a model call reported {name} as {count!r}; it must be a whole number from 0. What the call may "
                    "have used stays reserved",
                    code="invalid_usage",
                )


def start_call(tx: Tx, asked: Asked) -> None:
    """Reserve what a call may use, and put it on record; the call may be made once this is committed.

    Raises:
        LeaseError: The thread is another's by now (`lease_lost`).
        ConflictError: The attempt is no longer this one (`attempt_mismatch`), or the id was used (`call_exists`).
        AdmissionError: The run was cancelled, or is to be (`cancelled`); too many visits in a row have failed
            (`fail_fast`); tokens or cost are limited, and there is no bound of the call's (`call_unbounded`).
        BudgetExhausted: It would use more than is left (`budget_exhausted`).
    """
    if tx.maybe("model_call_get", call_id=asked.call_id) is not None:
        if tx.repeated:
            return
        raise ConflictError(
            f"call {asked.call_id!r} is on record already; an id names one call: make a new one",
            code="call_exists",
            details={"call_id": asked.call_id},
        )
    leases.check(tx, asked.thread_id, asked.epoch)
    run = _run_of(tx, asked)
    requested = {Dimension.TURNS: 1} if asked.kind == "model" else {}
    requested |= {Dimension.TOKENS: asked.bound.tokens or 0, Dimension.COST_USD: asked.bound.cost_nusd or 0}
    if run is None:
        limits = asked.limits
        totals = totals_so_far(tx, asked.thread_id, asked.epoch, held_us=asked.held_us, now_us=asked.now_us)
    else:
        tx.run("model_calls_adopt", thread_id=asked.thread_id, epoch=asked.epoch, run=run["run"])
        _refuse_stopped(tx, asked, run)
        limits = budgets.set_limits(tx, run["run"], asked.limits, now_us=asked.now_us)
        totals = totals_of(tx, run, now_us=asked.now_us, held_us=asked.held_us)
    _refuse_unbounded(asked, limits)
    run_id = None if run is None else run["run_id"]
    budgets.check(limits, totals, requested, thread_id=asked.thread_id, run_id=run_id)
    tx.run("model_call_start", **_columns(asked), run=None if run is None else run["run"])


def settle_call(tx: Tx, *, call_id: str, reported: Reported, attempt_id: str | None, now_us: int) -> None:
    """Replace a call's reservation by what it used. The same again changes nothing.

    Args:
        tx: The open transaction.
        call_id: The call.
        reported: What it used.
        attempt_id: The attempt that made it; None for a plain node.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        InvalidArgument: A count can be none (`invalid_usage`).
        ConflictError: The call is not on record, was settled otherwise or closed (`call_conflict`), or is another
            attempt's (`call_mismatch`).
    """
    reported.check()
    call = tx.maybe("model_call_get", call_id=call_id)
    if call is None:
        raise _conflict(call_id, "is not on record; its thread or run was deleted")
    if call["attempt_id"] != attempt_id:
        raise ConflictError(
            f"call {call_id!r} was made by attempt {call['attempt_id']!r}, not by {attempt_id!r}; nothing was stored",
            code="call_mismatch",
            details={"call_id": call_id},
        )
    columns = {
        "tokens_in": reported.tokens_in,
        "tokens_out": reported.tokens_out,
        "cache_read": reported.cache_read,
        "cache_written": reported.cache_written,
        "cost_nusd": reported.cost_nusd,
        "tool_calls": reported.tool_calls,
    }
    if call["status"] != "open":
        if call["status"] == "settled" and all(call[name] == value for name, value in columns.items()):
            return
        raise _conflict(call_id, f"is {call['status']} already")
    held = held_after(call["bound_tokens"], call["bound_cost_nusd"], reported)
    moved = tx.run(
        "model_call_settle",
        call_id=call_id,
        tokens_held=held.tokens,
        cost_held_nusd=held.cost_nusd,
        now_us=now_us,
        **columns,
    )
    assert moved == 1, "nobody else writes in this transaction"


def held_after(bound_tokens: int | None, bound_cost_nusd: int | None, reported: Reported) -> Bound:
    """What of a call's bound stays reserved behind what was reported."""
    known = (reported.tokens_in or 0) + (reported.tokens_out or 0)
    complete = reported.tokens_in is not None and reported.tokens_out is not None
    tokens = 0 if complete else max((bound_tokens or 0) - known, 0)
    return Bound(tokens, 0 if reported.cost_nusd is not None else bound_cost_nusd or 0)


def close_call(tx: Tx, *, call_id: str, error_type: str, now_us: int) -> bool:
    """No answer of a call will come: what it may have used stays reserved.

    Returns:
        Whether it was open.
    """
    return tx.run("model_call_close", call_id=call_id, error_type=error_type, now_us=now_us) == 1


def refuse_failing(tx: Tx, run: int, fail_fast: int | None, details: dict[str, object]) -> None:
    """See whether as many visits with a model call have failed in a row as are too many (rule L18).

    Raises:
        AdmissionError: They have (`fail_fast`).
    """
    if fail_fast is None:
        return
    last = [row["event"] for row in tx.all("visits_with_calls", run=run, size=fail_fast)]
    if len(last) == fail_fast and "visit.succeeded" not in last:
        raise AdmissionError(
            f"the last {fail_fast} visits of this run that called a model have failed, and fail_fast={fail_fast}; see "
            "ledger.errors(run_id). Attach the graph with another fail_fast and invoke again, or begin a new run",
            code="fail_fast",
            details={**details, "failed": fail_fast},
        )


def _run_of(tx: Tx, asked: Asked) -> Row | None:
    """The run that makes a call; None if none of its checkpoints is stored yet.

    What is done again at a checkpoint behind which a run has gone on is not that run's: another one branches off there.
    """
    if asked.frame is not None:
        check_frame(tx, asked.frame)
        return tx.one("run_get", run=asked.frame.run)
    place = None
    if asked.root_id is not None and not runs.has_child(tx, asked.thread_id, asked.root_id):
        place = tx.maybe("place_get", thread_id=asked.thread_id, checkpoint_ns="", checkpoint_id=asked.root_id)
    if place is not None and asked.root_id is not None:
        number = place["run"]
        if number is None:
            number = runs.begin_at(tx, At(asked.thread_id, asked.root_id, asked.now_us))
        return tx.one("run_get", run=number)
    head = tx.maybe("run_being_run", thread_id=asked.thread_id)
    if head is None or not (asked.goes_on or head["started_us"] >= asked.held_us):
        return None
    return None if RunStatus(head["status"]).ended else tx.one("run_get", run=head["run"])


def _refuse_stopped(tx: Tx, asked: Asked, run: Row) -> None:
    details: dict[str, object] = {"thread_id": asked.thread_id, "run_id": run["run_id"], "node": asked.node}
    step_id = asked.checkpoint_id or asked.root_id
    to_end = control.waiting(tx, asked.thread_id, run["run"])
    stops = to_end is not None and not (step_id is not None and control.may_finish(to_end, step_id))
    if stops or runs.is_cancelled(tx, run["run"]):
        raise AdmissionError(
            f"node {asked.node!r}: run {run['run_id']!r} was cancelled, and calls no model any more; new input begins "
            "another run",
            code="cancelled",
            details=details,
        )
    runs.refuse_exhausted(run, asked.thread_id)
    refuse_failing(tx, run["run"], asked.fail_fast, details)


def _refuse_unbounded(asked: Asked, limits: Amounts) -> None:
    missing, bound = None, asked.bound
    no_cost = Dimension.COST_USD in limits and bound.cost_nusd is None
    if bound.tokens is None and (no_cost or Dimension.TOKENS in limits):
        missing = (
            "the model states no limit of its output; give it max_tokens (and frame.call the prompt= as well), or the "
            "budget Budget(tokens_per_call=…)"
        )
    elif no_cost:
        missing = "no price is known; attach the graph with Budget(price=…), or give frame.call max_cost_usd="
    if missing is not None:
        raise AdmissionError(
            f"node {asked.node!r}: the run's budget limits {' and '.join(sorted(limits))}, and what this call may use "
            f"at most cannot be told: {missing}",
            code="call_unbounded",
            details={"thread_id": asked.thread_id, "node": asked.node, "model": asked.model},
        )


def _columns(asked: Asked) -> dict[str, Any]:
    return {
        "call_id": asked.call_id,
        "thread_id": asked.thread_id,
        "epoch": asked.epoch,
        "held_us": asked.held_us,
        "checkpoint_ns": asked.checkpoint_ns,
        "checkpoint_id": asked.checkpoint_id,
        "task_id": asked.task_id,
        "node": asked.node,
        "attempt_id": None if asked.frame is None else asked.frame.attempt_id,
        "kind": asked.kind,
        "role": asked.role,
        "provider": asked.provider,
        "model": asked.model,
        "prompt_bytes": asked.prompt_bytes,
        "context_bytes": asked.context_bytes,
        "bound_tokens": asked.bound.tokens,
        "bound_cost_nusd": asked.bound.cost_nusd,
        "now_us": asked.now_us,
    }


def _conflict(call_id: str, why: str) -> ConflictError:
    return ConflictError(
        f"call {call_id!r} {why}; what it reports now is not stored. Whoever has taken the thread over has closed the "
        "calls it found open; what they may have used stays reserved",
        code="call_conflict",
        details={"call_id": call_id},
    )
