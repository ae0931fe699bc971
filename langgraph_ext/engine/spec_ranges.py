"""Ranges: every number of a spec is finite and within what the engine counts with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from langgraph_ext.engine.diagnostics import pointer
from langgraph_ext.engine.spec_drafts import Draft
from langgraph_ext.engine.spec_policies import Retry
from langgraph_ext.errors import Diagnostic

__all__ = ["Number", "check_ranges", "range_faults", "retry_numbers", "seconds_number"]

_COUNT = 10**15
"""As budgets: sums of a thousand such amounts fit into 64 bits."""
_SECONDS = 10**9
"""Thirty years; in microseconds they fit as well."""
_USD = 10**6
_LOOPS = 10**6
_FEW = 1000


class Number(NamedTuple):
    """A number of a spec, and between which ones it must be."""

    at: str
    value: float | None
    least: float
    """Where it is 0 and `above` is true, the number must be above it."""
    most: float
    above: bool = False


def check_ranges(draft: Draft) -> Iterator[Diagnostic]:
    """Limits, deadlines, retries, windows and versions (a NaN is in no range)."""
    yield from range_faults(_numbers(draft))
    soft, hard = draft.spec.compaction.soft_tokens, draft.spec.compaction.hard_tokens
    if soft is not None and hard is not None and soft >= hard:
        yield Diagnostic(
            code="window_order",
            path="/compaction/soft_tokens",
            related=("/compaction/hard_tokens",),
            message=f"is {_shown(soft)}; it must be below the hard window, or that ends the run before it is needed",
        )


def range_faults(numbers: Iterable[Number]) -> Iterator[Diagnostic]:
    """Those that are not within theirs. None is no number."""
    for at, value, least, most, above in numbers:
        if value is None or ((value > least if above else value >= least) and value <= most):
            continue
        lowest = f"more than {least}" if above else f"at least {least}"
        yield Diagnostic(
            code="out_of_range", path=at, message=f"is {_shown(value)}; it must be {lowest} and at most {most:,}"
        )


def seconds_number(at: str, seconds: float | None) -> Number:
    """How long something may take."""
    return Number(at, seconds, 0, _SECONDS, above=True)


def retry_numbers(retry: Retry | None) -> Iterator[Number]:
    """How often an operation is called."""
    if retry is not None:
        yield Number("/retry/calls", retry.calls, 1, _FEW)
        yield Number("/retry/wait_seconds", retry.wait_seconds, 0, _SECONDS)


def _shown(value: float) -> str:
    """Python refuses to print an int of thousands of digits."""
    return f"{value:,}" if abs(value) < 10**30 or not isinstance(value, int) else "a number of more than 30 digits"


def _numbers(draft: Draft) -> Iterator[Number]:
    limits, deadlines = draft.spec.limits, draft.spec.deadlines
    yield Number("/limits/loops", limits.loops, 1, _LOOPS)
    yield Number("/limits/model_calls", limits.model_calls, 1, _COUNT)
    yield Number("/limits/tool_calls", limits.tool_calls, 0, _COUNT)
    yield Number("/limits/tokens", limits.tokens, 1, _COUNT)
    yield Number("/limits/cost_usd", limits.cost_usd, 0, _USD, above=True)
    for name in ("run_seconds", "tool_seconds", "model_seconds", "model_idle_seconds"):
        yield seconds_number(pointer("deadlines", name), getattr(deadlines, name))
    for name, seconds in deadlines.per_tool.items():
        yield seconds_number(pointer("deadlines", "per_tool", name), seconds)
    yield from retry_numbers(draft.spec.retry)
    yield Number("/compaction/soft_tokens", draft.spec.compaction.soft_tokens, 1, _COUNT)
    yield Number("/compaction/hard_tokens", draft.spec.compaction.hard_tokens, 1, _COUNT)
    if draft.plan is not None:
        yield Number(draft.plan_at + "/max_parallel", draft.plan.max_parallel, 1, _FEW)
        yield Number(draft.plan_at + "/max_replans", draft.plan.max_replans, 0, _FEW)
    for each in draft.bindings:
        yield Number(each.at + "/version", each.version, 1, _COUNT)
