"""Endings: what a run has left in the ledger, in its state and outside; and what of that differs by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langgraph_ext.ledger import Effect, Finding, Run, RunLedger
from langgraph_ext.testing.children import Children, Files
from langgraph_ext.testing.differences import Flat, differing, flat, named_but
from langgraph_ext.testing.effects import EffectLog

__all__ = ["Ending", "Ignored", "Varying", "ending_of", "varying_in"]

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
    """Of each thread, the status of its newest run; without child runs."""
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


def ending_of(files: Files, children: Children, ignored: Ignored) -> Ending:
    """Read what is there, when nobody writes any more; the states by a child."""
    statuses: dict[str, str] = {}
    with RunLedger(files.database) as ledger:
        for run in _runs(ledger):
            if run.parent_run_id is None:  # a child run's id is another one each time, and its parent says how it went
                statuses.setdefault(run.thread_id, str(run.status))
        doubts = Counter((each.node_path, each.name) for each in _effects(ledger) if each.in_doubt)
        findings = tuple(ledger.verify())
    states = children.look(files, list(statuses), list(ignored.channels))
    log = EffectLog(files.effects)
    effects = {key: [flat(named_but(facts, ignored.facts)) for facts in log.facts(key)] for key in log.keys()}  # noqa: SIM118
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
