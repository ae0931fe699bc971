"""Endings: what a run has left, in the ledger and outside, compared with what the undisturbed run left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from langgraph_ext.ledger import Finding, RunLedger
from langgraph_ext.testing.children import Ended, Files
from langgraph_ext.testing.effects import EffectLog

__all__ = ["AtMost", "Ending", "ending_of", "problems_of_effects", "problems_of_end", "problems_of_run"]

Problem = tuple[str, str]
"""A code and what was wrong."""

AtMost = int | None | Mapping[str, int | None]
"""How often an effect may happen: for all, or by key (else once); None: any number of times."""

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    statuses: Mapping[str, str]
    """Of each thread, the status of its newest run."""
    effects: Mapping[str, int]
    findings: tuple[Finding, ...]


def ending_of(files: Files) -> Ending:
    """Read what is there, when nobody writes any more."""
    statuses: dict[str, str] = {}
    before: str | None = None
    with RunLedger(files.database) as ledger:
        while page := ledger.runs(before=before, limit=_PAGE):
            for run in page:
                statuses.setdefault(run.thread_id, str(run.status))
            before = page[-1].run_id
        findings = tuple(ledger.verify())
    return Ending(statuses=statuses, effects=EffectLog(files.effects).counts(), findings=findings)


# -- what is wrong


def problems_of_end(ended: Ended, timeout_seconds: float) -> Iterator[Problem]:
    """What is wrong with how a process ended that nobody killed."""
    if ended.hangs:
        yield "hangs", f"the scenario had not returned after {timeout_seconds:g} s"
    elif ended.raised is not None:
        yield "raised", f"the scenario raised {ended.raised}"
    elif not ended.returned:
        how = f"signal {-ended.exitcode}" if ended.exitcode < 0 else f"exit code {ended.exitcode}"
        yield "died", f"the process ended with {how} before the scenario returned"


def problems_of_effects(found: Ending, undisturbed: Ending, at_most: AtMost) -> Iterator[Problem]:
    """What is wrong with what happened outside."""
    for key, count in found.effects.items():
        allowed = at_most.get(key, 1) if isinstance(at_most, Mapping) else at_most
        if allowed is not None and count > allowed:
            yield "effect_repeated", f"effect {key!r} happened {count} times, {allowed} allowed"
        if key not in undisturbed.effects:
            yield "effect_unexpected", f"effect {key!r} happened, and does not in the undisturbed run"
    for key in undisturbed.effects:
        if key not in found.effects:
            yield "effect_missing", f"effect {key!r} did not happen"


def problems_of_run(found: Ending, undisturbed: Ending) -> Iterator[Problem]:
    """What is wrong in the ledger."""
    for finding in found.findings:
        yield f"ledger:{finding.code}", finding.message
    for thread_id in sorted({*found.statuses, *undisturbed.statuses}):
        stands = found.statuses.get(thread_id, "missing")
        expected = undisturbed.statuses.get(thread_id, "missing")
        if stands != expected:
            yield "run_status", f"the run of thread {thread_id!r} is {stands}; undisturbed it is {expected}"
