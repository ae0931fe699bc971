"""The worker: runs the graph, is killed at a commit, and is followed by the next; the last one comes to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from langgraph.errors import GraphDrained

from langgraph_ext import Budget, LedgerSaver, with_ledger
from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.errors import ConflictError, LangGraphExtError
from langgraph_ext.ledger import Dimension
from tests.support.faults import Points, faulty, kill_myself
from tests.support.people.clock import Clock, Stand, wait_until
from tests.support.people.graph import CONFIG, build

__all__ = ["LAST_RAISE", "LAST_WORD", "TOKENS", "Kill", "Work", "work"]

LAST_WORD = "carl"
"""Answers everything that is left when the people have nothing more to do."""

LAST_RAISE = 60
"""The turns that the run may take then, if it needs them."""

TOKENS = 10_000
"""What the run may use at first."""

_MOST_INVOCATIONS = 60

logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)  # LangChain tells of each refusal, too


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a worker dies."""

    kind: str
    at: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker works at, and how."""

    folder: str
    seed: int
    number: int
    """Which worker of the story."""
    form: str
    durability: str
    turns: int
    attached: bool
    kill: Kill | None


def work(given: Work) -> dict[str, Any]:
    """Run the graph to its end, or to this process's; what each invocation came to, and the log of the state."""
    with Clock.of(given.folder) as clock:
        clock.stands(Stand.RUNS)
        points = Points() if given.kill is None else Points(kill_myself, kind=given.kill.kind, at=given.kill.at)
        database = open_database(f"{given.folder}/runs.db", fsync="normal", connection=_ticking(points, clock))
        try:
            with LedgerSaver(database) as saver:
                return _Worker(given, saver, clock).run()
        finally:
            database.close()


def _ticking(points: Points, clock: Clock) -> type[WriteConnection]:
    """Connections that may kill their process, and tell the clock of each commit."""
    faulty_connection: Any = faulty(points)

    class Ticking(faulty_connection):  # type: ignore[misc]
        def run_alone(self, sql: str, params: Sequence[object]) -> int:
            changed: int = super().run_alone(sql, params)
            clock.tick()
            return changed

        def commit(self) -> None:
            super().commit()
            clock.tick()

    return Ticking


class _Worker:
    def __init__(self, given: Work, saver: LedgerSaver, clock: Clock) -> None:
        self._given, self._saver, self._ledger, self._clock = given, saver, saver.ledger, clock
        self._app = build(saver, given.folder, given.form)
        if given.attached:
            self._app = with_ledger(self._app, budget=Budget(turns=given.turns, tokens=TOKENS))
        self._dice = Random(f"{given.seed}: worker {given.number}")

    def run(self) -> dict[str, Any]:
        codes: list[str] = []
        given: Any = {"log": [], "round": 0} if self._saver.get_tuple(CONFIG) is None else self._on()
        while len(codes) < _MOST_INVOCATIONS:
            codes.append(self._invoke(given))
            if codes[-1] in ("done", "cancelled"):
                break
            if codes[-1] in ("asks", "budget_exhausted"):
                self._wait(codes[-1])
            given = self._on()
        self._clock.stands(Stand.OVER)
        again = self._invoke(None) if codes[-1] == "cancelled" else None
        state = self._app.get_state(CONFIG).values if self._ledger.runs() else {}
        return {"codes": codes, "again": again, "log": state.get("log", [])}

    def _invoke(self, given: Any) -> str:
        app, durability = self._app, self._given.durability
        try:
            if self._given.form == "sync":
                found = app.invoke(given, CONFIG, durability=durability)
            else:
                found = asyncio.run(app.ainvoke(given, CONFIG, durability=durability))
        except LangGraphExtError as error:
            return error.code
        except GraphDrained:
            return "drained"
        return "asks" if "__interrupt__" in found else "done"

    def _on(self) -> Any:
        """Go on, in one of the ways that there are; one alone takes answers to a graph that is not attached."""
        if self._given.attached and self._dice.random() < 0.5:
            return None
        try:
            return self._ledger.resume_command("t")
        except ConflictError:
            return None

    def _wait(self, code: str) -> None:
        """Until somebody has answered, raised or cancelled; if nobody will, by oneself."""
        run_id = self._ledger.runs()[0].run_id
        met = self._is_answered if code == "asks" else partial(self._is_raised, before=self._limit(run_id))

        def look() -> bool:
            self._clock.stands(Stand.WAITS)
            if self._clock.all_done and not met(run_id):
                self._last_word(run_id, code)
            return met(run_id)

        wait_until(look, f"the worker goes on, which stopped with {code}")
        self._clock.stands(Stand.RUNS)

    def _is_answered(self, run_id: str) -> bool:
        if self._ledger.run(run_id).status.ended:
            return True
        try:
            return bool(self._ledger.resume_command("t").resume)
        except ConflictError:
            return False

    def _is_raised(self, run_id: str, before: float) -> bool:
        status = self._ledger.run(run_id).status
        return self._limit(run_id) > before or (status.ended and status != "budget_exhausted")

    def _limit(self, run_id: str) -> float:
        return self._ledger.usage(run_id).spent[Dimension.TURNS].limit or 0

    def _last_word(self, run_id: str, code: str) -> None:
        with suppress(ConflictError):  # it was asked to end, and has, with the invocation whose end no loop waits for
            if code == "asks":
                asked = self._ledger.interrupts(run_id=run_id, pending=True)
                self._ledger.answer({each.interrupt_id: LAST_WORD for each in asked}, by=LAST_WORD)
            else:
                self._ledger.raise_budget(run_id, turns=LAST_RAISE)
