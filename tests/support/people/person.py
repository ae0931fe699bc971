"""A person: what it does in a story, one thing after the other, and what it was told each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langgraph_ext import RunLedger
from langgraph_ext.database import open_database
from langgraph_ext.errors import ConflictError, LangGraphExtError
from langgraph_ext.ledger import Interrupt
from tests.support.people.clock import PEOPLE, Clock

__all__ = ["Act", "Intent", "be", "intents"]

_KINDS = {
    "answer": 6,
    "answer all": 2,
    "answer late": 2,
    "answer again": 2,
    "answer a stranger": 1,
    "steer": 4,
    "raise turns": 5,
    "raise tokens": 1,
}
"""What a person does, and how often as against the others."""

_MODES = ("now", "after_call", "after_batch")

_LAST_COMMIT = 50
"""Of a story that nobody disturbs, about."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a person means to do."""

    commits: int
    """When: as soon as workers have committed so often, or none runs."""
    kind: str
    dice: float
    """In [0, 1): which of the questions there are; how much."""
    mode: str | None = None
    """Of a cancel."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a person has done, and what it was told."""

    person: str
    kind: str
    code: str
    """"ok", the code of the refusal, or "nothing" if there was nothing to do it to."""
    said: dict[str, Any] = field(default_factory=dict)
    """Answers, by the ids of their questions; or what was asked for, by its name."""
    details: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    """Of the refusal; so are the details."""
    ended: float = field(default_factory=time.time, compare=False)
    """When it was told: seconds since the epoch."""

    @property
    def accepted(self) -> bool:
        """Whether it was."""
        return self.code == "ok"


def intents(seed: int, person: int, *, cancels: bool) -> list[Intent]:
    """What a person means to do in the story of a seed, in this order."""
    dice = Random(f"{seed}: {PEOPLE[person]}")
    kinds = dice.choices(list(_KINDS), list(_KINDS.values()), k=dice.randrange(4, 11))
    if cancels:
        kinds[dice.randrange(len(kinds))] = "cancel"
    times = sorted(dice.randrange(_LAST_COMMIT) for _ in kinds)
    return [Intent(when, kind, dice.random(), dice.choice(_MODES)) for when, kind in zip(times, kinds, strict=True)]


def be(folder: str, person: int, wanted: list[Intent]) -> list[Act]:
    """Be a person of the story in a folder."""
    name, database = PEOPLE[person], open_database(f"{folder}/runs.db", fsync="normal", create=False)
    with Clock.of(folder) as clock:
        try:
            doer, acts = _Person(RunLedger(database), name), []
            for number, intent in enumerate(wanted):
                turn = clock.wait_for_turn(person, intent.commits)
                acts.append(doer.do(intent, f"{name} {number}"))
                clock.has_acted(person, turn)
            return acts
        finally:
            clock.is_done(person)
            database.close()


class _Person:
    def __init__(self, ledger: RunLedger, name: str) -> None:
        self._ledger, self.name = ledger, name
        self._told: dict[str, str] = {}
        """What it has answered, and was taken."""

    def do(self, intent: Intent, word: str) -> Act:
        """Do it, with a word that nobody else says."""
        runs = self._ledger.runs()
        if not runs:
            return Act(self.name, intent.kind, "nothing")
        run_id, kind = runs[0].run_id, intent.kind
        if kind.startswith("answer"):
            said = self._answers(run_id, intent, word)
            done = self._tried(kind, said, lambda: self._ledger.answer(said, by=self.name))
            self._told |= done.said if done.accepted else {}
            return done
        if kind == "steer":
            return self._tried(kind, {"message": word}, lambda: self._ledger.steer(run_id, word))
        if kind == "cancel":
            asked = {"mode": intent.mode, "reason": word}
            return self._tried(kind, asked, lambda: self._cancel_twice(run_id, asked))
        turns, tokens = 1 + int(intent.dice * 12), 9_000 + int(intent.dice * 10_000)
        limit = {"turns": turns} if kind == "raise turns" else {"tokens": tokens}
        return self._tried(kind, limit, lambda: self._ledger.raise_budget(run_id, **limit))

    def _cancel_twice(self, run_id: str, asked: dict[str, Any]) -> None:
        """Asked again, nothing changes."""
        self._ledger.cancel(run_id, **asked)
        with suppress(ConflictError):  # it has ended otherwise meanwhile
            self._ledger.cancel(run_id, **asked)

    def _answers(self, run_id: str, intent: Intent, word: str) -> dict[str, str]:
        if intent.kind == "answer again":
            told = list(self._told.items())
            return dict(_one_of(told, intent.dice))
        asked = self._ledger.interrupts(run_id=run_id)
        if intent.kind != "answer late":
            asked = [each for each in asked if each.status == "pending"] or asked
        if intent.kind == "answer all":
            return {each.interrupt_id: word for each in asked}
        chosen: list[Interrupt] = _one_of(asked, intent.dice)
        said = {each.interrupt_id: word for each in chosen}
        return {**said, "f" * 32: word} if intent.kind == "answer a stranger" else said

    def _tried(self, kind: str, said: dict[str, Any], doing: Callable[[], object]) -> Act:
        if not said:
            return Act(self.name, kind, "nothing")
        try:
            doing()
        except LangGraphExtError as error:
            return Act(self.name, kind, error.code, said, dict(error.details), str(error))
        return Act(self.name, kind, "ok", said)


def _one_of(found: list[Any], dice: float) -> list[Any]:
    return found[int(dice * len(found)) :][:1]
