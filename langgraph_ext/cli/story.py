"""A run as a tree: its visits in order, each in the visit it is a part of, with its attempts, effects and questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from langgraph_ext.cli.plain import iso
from langgraph_ext.ledger.records import (
    AttemptRecord,
    AttemptStatus,
    Effect,
    EffectStatus,
    Interrupt,
    Run,
    RunStatus,
    Visit,
    VisitKind,
    VisitStatus,
)
from langgraph_ext.render import Node, duration, first_line

__all__ = ["Shown", "attempt_node", "effect_node", "run_node", "span_of"]

Shown = Callable[[Interrupt | Effect], str]
"""How a question's payload, or an effect's receipt, is shown; empty text hides it."""

Agents = Mapping[str, Sequence[Node]]
"""By attempt: the agent runs that it has started."""

_NONE: Agents = {}

_Actor = tuple[str, str]
"""Checkpoint and task."""

_Counted = tuple[str, VisitKind, str | None, str, int | None]
"""What ordinals count apart: run, kind, scope, node path, place."""


@dataclass(slots=True, kw_only=True)
class _Branch:
    """A visit and what belongs under it. Without a visit: one that has begun, and has not ended yet."""

    name: str
    at: int
    """Where it stands among its siblings: the first transition in it."""
    visit: Visit | None = None
    inside: list[_Branch] = field(default_factory=list)


def run_node(
    run: Run,
    visits: Sequence[Visit],
    questions: Sequence[Interrupt],
    effects: Sequence[Effect] = (),
    attempts: Sequence[AttemptRecord] = (),
    *,
    agents: Agents = _NONE,
    used: Sequence[str] = (),
    now: datetime,
    shown: Shown,
) -> Node:
    """A run with all that happened in it.

    Args:
        run: The run.
        visits: Its visits, by transition, the inherited ones first.
        questions: Its interrupts, in their order.
        effects: Its effects, in their order.
        attempts: Its attempts, in their order; one that succeeded at once is not shown.
        agents: The agent runs that they have started.
        used: What it used, in words.
        now: For how long a running run has been running.
        shown: How payloads and receipts are shown.
    """
    asked: dict[_Actor, list[Interrupt]] = defaultdict(list)
    for question in questions:
        asked[question.checkpoint_id, question.task_id].append(question)
    done: dict[_Actor, list[Effect]] = defaultdict(list)
    for effect in effects:
        done[effect.checkpoint_id, effect.task_id].append(effect)
    tried: dict[_Actor, list[AttemptRecord]] = defaultdict(list)
    for attempt in attempts:
        tried[attempt.checkpoint_id, attempt.task_id].append(attempt)
    actors = {(visit.checkpoint_id, visit.task_id) for visit in visits}
    asked_by_nobody = [question for actor, group in asked.items() if actor not in actors for question in group]
    done_by_nobody = [effect for actor, group in done.items() if actor not in actors for effect in group]
    tried_by_nobody = [attempt for actor, group in tried.items() if actor not in actors for attempt in group]
    several = {_counted(visit) for visit in visits if visit.ordinal > 1}
    teller = _Teller(run=run, asked=asked, done=done, tried=tried, agents=agents, several=several, shown=shown)
    children = [teller.node(branch) for branch in _grown(visits)]
    children += [attempt_node(attempt, agents, named=True) for attempt in tried_by_nobody]
    children += [effect_node(effect, shown, named=True) for effect in done_by_nobody]
    children += teller.questions(asked_by_nobody)
    notes = (*_of_run(run, now), *used, _doubts(effects))
    return Node(label=f"run {run.run_id}", status=run.status, notes=notes, children=tuple(children))


def _doubts(effects: Sequence[Effect]) -> str:
    count = sum(effect.in_doubt for effect in effects)
    return f"{count} effect{'s' if count > 1 else ''} in doubt" if count else ""


def attempt_node(attempt: AttemptRecord, agents: Agents = _NONE, *, named: bool = False) -> Node:
    """An attempt, how it ended, and what it has started; with the name of its node if that does not stand above it."""
    return Node(
        label=f"{attempt.node_path} attempt {attempt.number}" if named else f"attempt {attempt.number}",
        status=attempt.status,
        notes=(
            _round(attempt.iteration_path) if named else "",
            f"id {attempt.attempt_id}",
            str(attempt.effect) if attempt.status is AttemptStatus.INTERRUPTED else "",
            "authorized" if attempt.authorized_at is not None else "",
        ),
        children=tuple(agents.get(attempt.attempt_id, ())),
    )


def effect_node(effect: Effect, shown: Shown, *, named: bool = False) -> Node:
    """An effect, and where it stands; with the path of its node where that does not stand above it."""
    of = f"{effect.node_path} " if named else ""
    return Node(
        label=f"{of}effect {effect.name}" + (f" [{effect.part}]" if effect.part else ""),
        status=effect.status,
        notes=(
            _round(effect.iteration_path) if named else "",
            "in doubt" if effect.in_doubt and effect.status is not EffectStatus.UNKNOWN else "",
            f"id {effect.effect_id}",
            f"{effect.tries} calls" if effect.tries > 1 else "",
            "" if effect.again_of is None else f"again, of {effect.again_of}",
            "" if effect.receipt_type is None else shown(effect),
        ),
    )


def _round(iteration_path: Sequence[int]) -> str:
    """Which round of its loops something is of, if they have come to more than one."""
    return f"round {'/'.join(map(str, iteration_path))}" if any(each > 1 for each in iteration_path) else ""


def span_of(run: Run, now: datetime) -> str:
    """How long it took to where it stands, or, if it is running, for how long it has been running."""
    if run.status is RunStatus.RUNNING:
        return duration(max(now, run.started_at) - run.started_at)
    return duration((run.ended_at or run.changed_at) - run.started_at)


def _of_run(run: Run, now: datetime) -> tuple[str, ...]:
    return (
        span_of(run, now),
        "" if run.active_seconds is None else f"active {duration(timedelta(seconds=run.active_seconds))}",
        f"thread {run.thread_id}",
        f"started {iso(run.started_at, digits=0)}",
        f"fork of {run.fork_of}" if run.fork_of else "",
        _error(run.error_type, run.error_message, over=run.status is not RunStatus.FAILED),
    )


def _error(kind: str | None, message: str | None, *, over: bool) -> str:
    """The type and the first line; said to be over where it went on."""
    if kind is None:
        return ""
    told = f"{kind}: {first_line(message)}" if message and message.strip() else kind
    return f"after {told}" if over else told


def _grown(visits: Iterable[Visit]) -> list[_Branch]:
    """The branches of the root graph, in order, with all others inside them."""
    ordered = list(visits)
    branches = [_Branch(name=_name(visit), at=at, visit=visit) for at, visit in enumerate(ordered)]
    of_task = {visit.task_id: branch for visit, branch in zip(ordered, branches, strict=True)}
    roots: list[_Branch] = []
    for visit, branch in zip(ordered, branches, strict=True):
        if visit.scope is None:
            roots.append(branch)
            continue
        if visit.scope not in of_task:  # it has not ended yet; what encloses it is not known either
            of_task[visit.scope] = _Branch(name=visit.node_path.rpartition("/")[0] or "?", at=branch.at)
            roots.append(of_task[visit.scope])
        of_task[visit.scope].inside.append(branch)
    return _in_order(roots)


def _in_order(roots: list[_Branch]) -> list[_Branch]:
    """By the first transition inside each: a subgraph's own visit ends after those in it."""
    deepest_last: list[_Branch] = []
    waiting = list(roots)
    while waiting:
        branch = waiting.pop()
        deepest_last.append(branch)
        waiting += branch.inside
    for branch in reversed(deepest_last):
        branch.inside.sort(key=lambda inner: inner.at)
        branch.at = min([branch.at, *(inner.at for inner in branch.inside)])
    return sorted(roots, key=lambda branch: branch.at)


def _counted(visit: Visit) -> _Counted:
    return visit.run_id, visit.kind, visit.scope, visit.node_path, visit.place


def _name(visit: Visit) -> str:
    if visit.kind is VisitKind.TASK:
        return "@task"
    name = visit.node if visit.node is not None else "?"
    return f"{name} (error handler)" if visit.kind is VisitKind.ERROR_HANDLER else name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    """Says of every branch what is to be read."""

    run: Run
    asked: dict[_Actor, list[Interrupt]]
    done: dict[_Actor, list[Effect]]
    tried: dict[_Actor, list[AttemptRecord]]
    agents: Agents
    several: set[_Counted]
    """What was visited more than once."""
    shown: Shown

    def node(self, branch: _Branch) -> Node:
        """A branch with everything in it."""
        children = tuple(self.node(inner) for inner in branch.inside)
        if branch.visit is None:
            return Node(label=branch.name, status="not ended", children=children)
        visit = branch.visit
        actor = visit.checkpoint_id, visit.task_id
        done, asked = self.effects(self.done.get(actor, [])), self.questions(self.asked.get(actor, []))
        return Node(
            label=branch.name + self._which(visit),
            status=visit.status,
            notes=self._notes(visit),
            children=(*children, *self.attempts(self.tried.get(actor, [])), *done, *asked),
        )

    def attempts(self, tried: Sequence[AttemptRecord]) -> list[Node]:
        """How often a body was begun, and how that ended, where there is more to say than that it succeeded."""
        at_once = all(attempt.number == 1 and attempt.status is AttemptStatus.SUCCEEDED for attempt in tried)
        if at_once:
            return [each for attempt in tried for each in self.agents.get(attempt.attempt_id, ())]
        return [attempt_node(attempt, self.agents) for attempt in tried]

    def effects(self, done: Iterable[Effect]) -> list[Node]:
        """What was done outside, and where that stands."""
        return [effect_node(effect, self.shown) for effect in done]

    def questions(self, asked: Iterable[Interrupt]) -> list[Node]:
        """What was asked, and where that stands."""
        return [
            Node(
                label=f"question {question.kind}" if question.kind else "question",
                status=question.status,
                notes=(f"id {question.interrupt_id}", self.shown(question)),
            )
            for question in asked
        ]

    def _which(self, visit: Visit) -> str:
        place = "" if visit.place is None else f" [{visit.place}]"
        return place + (f" #{visit.ordinal}" if _counted(visit) in self.several else "")

    def _notes(self, visit: Visit) -> tuple[str, ...]:
        return (
            "inherited" if visit.inherited else f"+{duration(max(visit.last_at - self.run.started_at, _NOTHING))}",
            "" if visit.started_at is None else f"took {duration(max(visit.last_at - visit.started_at, _NOTHING))}",
            f"{visit.attempts} attempts" if visit.attempts > 1 else "",
            _error(visit.error_type, visit.error_message, over=visit.status is VisitStatus.SUCCEEDED),
        )


_NOTHING = datetime.min - datetime.min
