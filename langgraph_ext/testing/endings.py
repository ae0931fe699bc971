"""Endings: what a run has left in the ledger, in its state and outside; and what of that differs by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_ext import LedgerSaver
from langgraph_ext.ledger import Effect, Finding, Run, RunLedger
from langgraph_ext.testing.children import Files
from langgraph_ext.testing.differences import Flat, differing, flat
from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.states import PlainSerde, state_of

__all__ = ["ALL", "Ending", "Ignored", "Varying", "ending_of", "varying_in"]

ALL = "*"
"""Among names that are not compared: all of them."""

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """What is not compared, by name."""

    facts: Collection[str] = ()
    channels: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    statuses: Mapping[str, str]
    """Of each thread, the status of its newest run."""
    effects: Mapping[str, Sequence[Flat]]
    """By key, the facts of each time that an effect happened."""
    states: Mapping[str, Flat]
    """By thread; paths begin with a channel's name."""
    doubts: Mapping[tuple[str, str], int]
    """By node path and name, how many effects are in doubt."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Varying:
    """What differs between two undisturbed runs, and so says nothing about a crash."""

    facts: frozenset[tuple[str, str]] = frozenset()
    """Key and path."""
    states: frozenset[tuple[str, str]] = frozenset()
    """Thread and path."""

    def in_words(self) -> tuple[str, ...]:
        """What it is, for people."""
        facts = [f"{path!r} of effect {key!r}" for key, path in sorted(self.facts)]
        return (*facts, *(f"{path!r} in the state of thread {thread!r}" for thread, path in sorted(self.states)))


def ending_of(files: Files, ignored: Ignored) -> Ending:
    """Read what is there, when nobody writes any more."""
    statuses: dict[str, str] = {}
    with LedgerSaver(files.database, serde=PlainSerde()) as saver:
        for run in _runs(saver.ledger):
            statuses.setdefault(run.thread_id, str(run.status))
        states = {each: flat(_but(state_of(saver, each), ignored.channels)) for each in statuses}
        doubts = Counter((each.node_path, each.name) for each in _effects(saver.ledger) if each.in_doubt)
        findings = tuple(saver.ledger.verify())
    log = EffectLog(files.effects)
    effects = {key: [flat(_but(facts, ignored.facts)) for facts in log.facts(key)] for key in log.keys()}  # noqa: SIM118
    return Ending(statuses=statuses, effects=effects, states=states, doubts=doubts, findings=findings)


def varying_in(one: Ending, other: Ending) -> Varying:
    """What differs between two undisturbed runs."""
    facts = {
        (key, path)
        for key in one.effects.keys() & other.effects.keys()
        for mine, theirs in zip(one.effects[key], other.effects[key], strict=False)
        for path in differing(mine, theirs)
    }
    states = {
        (thread, path)
        for thread in one.states.keys() & other.states.keys()
        for path in differing(one.states[thread], other.states[thread])
    }
    return Varying(facts=frozenset(facts), states=frozenset(states))


def _runs(ledger: RunLedger) -> Iterator[Run]:
    """All, newest first."""
    before: str | None = None
    while page := ledger.runs(before=before, limit=_PAGE):
        yield from page
        before = page[-1].run_id


def _effects(ledger: RunLedger) -> Iterator[Effect]:
    """All, oldest first."""
    after: str | None = None
    while page := ledger.effects(after=after, limit=_PAGE):
        yield from page
        after = page[-1].effect_id


def _but(values: Mapping[str, Any], ignored: Collection[str]) -> dict[str, Any]:
    return {} if ALL in ignored else {name: value for name, value in values.items() if name not in ignored}
