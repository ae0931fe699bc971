"""Verification of model calls and budgets: what is reserved is reckoned again, from bounds and reports."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.model_calls import Bound, Reported, held_after
from langgraph_ext.ledger.slices import overrun

__all__ = ["calls_of_run"]


def calls_of_run(tx: Tx, run: int) -> Iterator[tuple[str, str]]:
    """What should not be so of a run's calls, and of what its child runs were given: code and message."""
    for call in tx.all("verify_model_calls_of_run", run=run):
        named = f"call {call['call_id']!r}"
        if call["status"] == "open" and call["left_behind"]:
            yield "call_left", f"{named} is open, and its thread was taken over since"
        held, due = Bound(call["tokens_held"], call["cost_held_nusd"]), _due(call)
        if held != due:
            yield "call_reserved", f"{named} is {call['status']} with {tuple(held)} reserved; it should be {tuple(due)}"
    for given in tx.all("verify_slices_of_run", run=run):
        if given["status"] != "open" and (over := overrun(given, given)):
            dimensions = ", ".join(sorted(over))
            yield "budget_invariant", f"child run {given['slice_id']!r} has used more {dimensions} than it was given"


def _due(call: Row) -> Bound:
    """What has to be reserved for a call, in tokens and in cost."""
    reported = Reported(tokens_in=call["tokens_in"], tokens_out=call["tokens_out"], cost_nusd=call["cost_nusd"])
    return held_after(call["bound_tokens"], call["bound_cost_nusd"], reported)
