"""Budgets: what a run may use, and the check that it does not use more (rules L18, L33, L34).

A budget belongs to the run. Its limits are on record from its first model call, or its first durable node, on; from
then on they count, whatever budget an invocation brings, until somebody raises them. In one transaction

    used + reserved + requested ≤ limit

is looked at, and what is requested is reserved; so what runs in parallel never shares the same rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import BudgetExhausted, ConflictError, InvalidArgument
from langgraph_ext.ledger import runs
from langgraph_ext.ledger.dimensions import Amounts, Dimension, shown, units_of
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.records import Run, RunStatus
from langgraph_ext.ledger.rows import run_named, run_record, text_or_none
from langgraph_ext.ledger.totals import Totals

__all__ = ["Budget", "Price", "ask_to_raise", "check", "limits_of", "set_limits", "was_raised"]

Price = Callable[[str, Mapping[str, int]], float]
"""`price(model, usage)`: US dollars of a call. `usage` has `input_tokens` and `output_tokens`, and, of what was read
from and written to a cache, `cache_read` and `cache_creation` where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may use, over all its invocations, crashes and resumes together. None bounds nothing.

    Args:
        turns: Model calls.
        tokens: Model tokens, in and out together.
        cost_usd: US dollars; needs `price`.
        wall_seconds: Seconds during which invocations run it; pauses do not count.
        spawns: Child agent runs.
        tokens_per_call: The most tokens that one call may use, in and out, for models that state no limit of their
            output. The bound of other calls is an estimate of their prompt and that limit. Under a limit of tokens or
            of cost every call needs a bound.
        price: `price(model, usage)` returns a call's cost in US dollars.

    Raises:
        InvalidArgument: A limit is negative, not finite, or no whole number where things are counted; `cost_usd` comes
            without `price`.
    """

    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    wall_seconds: float | None = None
    spawns: int | None = None
    tokens_per_call: int | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        _ = self.limits  # which checks them
        units_of(Dimension.TOKENS, self.tokens_per_call, name="tokens_per_call")
        if self.price is not None and not callable(self.price):
            raise InvalidArgument(f"price is {self.price!r}; it must be a function price(model, usage) -> usd")
        if self.cost_usd is not None and self.price is None:
            raise InvalidArgument("cost_usd needs price=fn(model, usage) -> usd: no price list comes with this package")

    @property
    def limits(self) -> Amounts:
        """The dimensions that it bounds, in stored units."""
        wanted = {each: units_of(each, getattr(self, each), name=str(each)) for each in Dimension}
        return {each: limit for each, limit in wanted.items() if limit is not None}


def limits_of(tx: Tx, run: int) -> Amounts:
    """The limits of a run that are on record; empty if there are none."""
    row = tx.maybe("budget_get", run=run)
    return {} if row is None else _limits(row)


def set_limits(tx: Tx, run: int, limits: Amounts, *, now_us: int) -> Amounts:
    """Put limits on record, unless the run has some; those that count from here on."""
    if limits:
        tx.run("budget_set", run=run, now_us=now_us, **_columns(limits))
    return limits_of(tx, run)


def check(limits: Amounts, totals: Totals, requested: Amounts, *, thread_id: str, run_id: str | None) -> None:
    """See that what is requested fits beside what is used and reserved.

    Args:
        limits: The run's.
        totals: What it has used, and what is reserved.
        requested: What is to be reserved.
        thread_id: Its thread; so that it is known whose budget is spent, wherever the error is seen.
        run_id: The run; None if it is not on record yet.

    Raises:
        BudgetExhausted: It does not; `details` says in which dimension, and how much is left.
    """
    for dimension in Dimension:
        limit = limits.get(dimension)
        if limit is None:
            continue
        # Of time, any at all is asked for.
        wanted = 1 if dimension is Dimension.WALL_SECONDS else requested.get(dimension, 0)
        used, reserved = totals.used.get(dimension, 0), totals.reserved.get(dimension, 0)
        if used + reserved + wanted > limit:
            told = {"limit": limit, "used": used, "reserved": reserved, "requested": wanted}
            raise _exhausted(dimension, told, {"thread_id": thread_id, "run_id": run_id})


def was_raised(tx: Tx, run: int, refusal: Mapping[str, object]) -> bool:
    """Whether the limit at which a run was refused, as the error's details tell, was raised meanwhile."""
    limits = {str(dimension): shown(dimension, limit) for dimension, limit in limits_of(tx, run).items()}
    now, then = limits.get(str(refusal.get("dimension"))), refusal.get("limit")
    return now is not None and isinstance(then, int | float) and now > then


def ask_to_raise(run_id: str, wanted: Mapping[str, Any], now_us: int) -> Callable[[Tx], Run]:
    """Raise limits of a run, ready to be committed; returns it as it stands then.

    Raises:
        InvalidArgument: No limit is named, one has no such dimension, or an amount can be none.
    """
    known = ", ".join(Dimension)
    if unknown := sorted(set(wanted) - set(Dimension)):
        raise InvalidArgument(f"raise_budget: {unknown[0]!r} is no limit; those of a budget are {known}")
    limits = {
        Dimension(name): units
        for name, amount in wanted.items()
        if (units := units_of(Dimension(name), amount, name=name)) is not None
    }
    if not limits:
        raise InvalidArgument(f"raise_budget: name at least one new limit, of {known}")
    return partial(_raise, run_id=text_or_none(run_id, "run_id") or "", wanted=limits, now_us=now_us)


def _raise(tx: Tx, *, run_id: str, wanted: Amounts, now_us: int) -> Run:
    """Set higher limits. A run that had ended by its budget is idle then. The same again changes nothing.

    Raises:
        ConflictError: The run has ended otherwise (`run_closed`).
        InvalidArgument: A limit is lower than the one on record, or the run has none in that dimension.
    """
    run = run_named(tx, run_id)
    number, status = run["run"], RunStatus(run["status"])
    if status.ended and status is not RunStatus.BUDGET_EXHAUSTED:
        raise ConflictError(
            f"run {run_id!r} is {status}: it uses nothing more, and its budget can be raised no more",
            code="run_closed",
            details={"run_id": run_id, "status": str(status)},
        )
    limits = limits_of(tx, number)
    for dimension, limit in wanted.items():
        now = limits.get(dimension)
        if now is None or limit < now:
            stands = "not bounded" if now is None else f"{shown(dimension, now)} now"
            raise InvalidArgument(
                f"run {run_id!r}: {dimension} is {stands}, and {shown(dimension, limit)} would be less; a limit on "
                "record is only ever raised: give the new limit, not what is to be added",
                details={"run_id": run_id, "dimension": str(dimension)},
            )
    raised = {**limits, **wanted}
    at = runs.At(run["thread_id"], run["last_id"], now_us)
    if raised != limits:
        tx.run("budget_raise", run=number, now_us=now_us, **_columns(raised))
        append_event(
            tx,
            name="budget.raised",
            run=number,
            thread_id=at.thread_id,
            checkpoint_ns="",
            checkpoint_id=at.checkpoint_id,
            details={str(dimension): shown(dimension, limit) for dimension, limit in wanted.items()},
            stored_us=now_us,
        )
        if status is RunStatus.BUDGET_EXHAUSTED:
            runs.move(tx, number, RunStatus.IDLE, at, details={"reason": "budget_raised"})
    return run_record(tx.one("run_get", run=number))


def _limits(row: Row) -> Amounts:
    return {each: row[each.column] for each in Dimension if row[each.column] is not None}


def _columns(limits: Amounts) -> dict[str, int | None]:
    return {each.column: limits.get(each) for each in Dimension}


def _exhausted(dimension: Dimension, told: Mapping[str, int], whose: Mapping[str, object]) -> BudgetExhausted:
    amounts = {name: shown(dimension, amount) for name, amount in told.items()}
    numbers = ", ".join(f"{name} {amount:.9g}" for name, amount in amounts.items())
    return BudgetExhausted(
        f"the run's budget of {dimension} is spent: {numbers}; nothing was called. Raise it with "
        f"ledger.raise_budget(run_id, {dimension}=…) and invoke again to go on, or begin a new run",
        details={**whose, "dimension": str(dimension), **amounts},
    )
