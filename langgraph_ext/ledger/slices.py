"""Slices: what of its budget a run gives to a child run (rule L39).

State machine of a slice:

    start ──▶ open ── settle ──▶ settled

While it is open, all of it is reserved in the parent; once the child has ended, what that used counts instead. A child
that used more than it was given has broken its bounds. That is recorded as it was, and the caller is told: it is never
cut to what would fit.

Time is not given away: a child runs while its parent does, and counts there already.
"""

from __future__ import annotations

from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument
from langgraph_ext.ledger import budgets
from langgraph_ext.ledger.dimensions import Amounts, Dimension, shown
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.totals import totals_of

__all__ = ["NOTHING", "breach_of", "overrun", "settle_nothing", "settle_slice", "start_slice"]

_GIVEN = (Dimension.TURNS, Dimension.TOKENS, Dimension.COST_USD, Dimension.SPAWNS)

NOTHING: Amounts = dict.fromkeys(_GIVEN, 0)
"""What a child run is given whose calls are its parent's own, and count there one by one."""


def start_slice(tx: Tx, slice_id: str, *, run: int, given: Amounts, now_us: int) -> None:
    """Reserve what a child run may use. The same again changes nothing.

    Args:
        tx: The open transaction.
        slice_id: The child's own name; used once.
        run: The parent's number.
        given: What the child may use, in stored units; `spawns` of its own.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        AdmissionError: The parent is bounded in a dimension in which the child would not be (`call_unbounded`).
        BudgetExhausted: It is more than the parent has left, or would be one child too many (`budget_exhausted`).
        ConflictError: The name was used for another slice (`call_exists`).
    """
    if Dimension.WALL_SECONDS in given:
        raise InvalidArgument("a child run is given no time of its own: it runs while its parent does")
    columns = {each.column: given.get(each) for each in _GIVEN}
    known = tx.maybe("slice_get", slice_id=slice_id)
    if known is not None:
        if known["run"] == run and all(known[column] == amount for column, amount in columns.items()):
            return
        raise ConflictError(
            f"slice {slice_id!r} is on record already, for another run or with other limits; make a new name",
            code="call_exists",
            details={"slice_id": slice_id},
        )
    limits = budgets.limits_of(tx, run)
    if unbounded := sorted(each for each in limits if each in _GIVEN[:3] and each not in given):
        raise AdmissionError(
            f"child run {slice_id!r}: its parent's budget limits {', '.join(unbounded)}, and its own would not; give "
            "it a limit",
            code="call_unbounded",
            details={"slice_id": slice_id, "dimensions": list(map(str, unbounded))},
        )
    if limits:
        parent = tx.one("run_get", run=run)
        requested = {**given, Dimension.SPAWNS: 1 + given.get(Dimension.SPAWNS, 0)}
        totals = totals_of(tx, parent, now_us=now_us)
        budgets.check(limits, totals, requested, thread_id=parent["thread_id"], run_id=parent["run_id"])
    tx.run("slice_start", slice_id=slice_id, run=run, now_us=now_us, **columns)


def settle_slice(tx: Tx, slice_id: str, *, used: Amounts, now_us: int) -> dict[Dimension, int]:
    """A child run has ended: what it used counts in its parent. The same again changes nothing.

    Commit, and then look at what is returned: `breach_of` makes an error of it.

    Returns:
        By how much it used more than it was given, in each dimension in which it did.

    Raises:
        ConflictError: There is no such slice, or it was settled otherwise (`call_conflict`).
    """
    known = tx.maybe("slice_get", slice_id=slice_id)
    amounts = {f"used_{each.column}": used.get(each, 0) for each in _GIVEN}
    if known is None or (known["status"] != "open" and any(known[name] != amounts[name] for name in amounts)):
        raise ConflictError(
            f"slice {slice_id!r} is {'not on record' if known is None else 'settled already, and otherwise'}; nothing "
            "was stored",
            code="call_conflict",
            details={"slice_id": slice_id},
        )
    over = overrun(known, amounts)
    if known["status"] == "open":
        tx.run("slice_settle", slice_id=slice_id, now_us=now_us, **amounts)
        if over:
            _tell(tx, known, over, now_us)
    return over


def settle_nothing(tx: Tx, slice_id: str, *, now_us: int) -> None:
    """A child run has ended that was given nothing; one that no run has begun has no slice, and stays without."""
    tx.run("slice_settle", slice_id=slice_id, now_us=now_us, **{f"used_{each.column}": 0 for each in _GIVEN})


def overrun(given: Row, used: Any) -> dict[Dimension, int]:
    """By how much more was used than was given, in each dimension in which it was."""
    over = {each: used[f"used_{each.column}"] - given[each.column] for each in _GIVEN if given[each.column] is not None}
    return {each: amount for each, amount in over.items() if amount > 0}


def breach_of(slice_id: str, over: Amounts) -> ConflictError | None:
    """The error that says that a child run has used more than it was given; None if it has not."""
    if not over:
        return None
    told = {str(each): shown(each, amount) for each, amount in over.items()}
    return ConflictError(
        f"child run {slice_id!r} has used more than it was given, by {told}; it is counted in full. Its bounds did not "
        "hold: look at its calls",
        code="budget_invariant",
        details={"slice_id": slice_id, "over": told},
    )


def _tell(tx: Tx, slice_: Row, over: Amounts, now_us: int) -> None:
    parent = tx.one("run_get", run=slice_["run"])
    append_event(
        tx,
        name="budget.overrun",
        run=slice_["run"],
        thread_id=parent["thread_id"],
        checkpoint_ns="",
        checkpoint_id=parent["last_id"],
        details={"slice_id": slice_["slice_id"], **{str(each): shown(each, amount) for each, amount in over.items()}},
        stored_us=now_us,
    )
