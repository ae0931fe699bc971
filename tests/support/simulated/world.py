"""One seed: what is run, what goes wrong, and what has come of it.

Everything follows from the seed and from the events, which are drawn from it: a shorter list of them is a simpler
schedule of the same story, and that is how a failing one is made readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, NamedTuple
from unittest import mock

from langgraph_ext.database import Database, open_database
from langgraph_ext.engine import conditions
from langgraph_ext.engine.starting import start
from langgraph_ext.engine.stopping import stop
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import control, inbox, leases
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.records import CancelMode
from tests.support.agents import entry_of
from tests.support.simulated.clerk import Clerk, story_of
from tests.support.simulated.doubting import tell
from tests.support.simulated.endings import check_end
from tests.support.simulated.loop import PROCESS, Stuck, VirtualLoop
from tests.support.simulated.program import ANY, SimulatedProgram, any_ended
from tests.support.simulated.store import FaultyStore
from tests.support.simulated.witness import Witness
from tests.support.simulated.working import TTL_US, Process, owner_of

__all__ = ["Event", "Outcome", "events_of", "has_react", "simulate"]

_BASE_US = 1_700_000_000_000_000
_MOST_STEPS = 15_000
_KINDS = ("kill", "kill", "stop", "stop", "abort", "lost", "stall", "clock", "cancel", "steer")

_TIMES = count()
"""So that ids are new each time, and in the same order."""


class Event(NamedTuple):
    """Something that happens at a step of the schedule, or to the transaction that is next."""

    step: int
    kind: str
    amount: float


class Outcome(NamedTuple):
    """What came of a seed."""

    seed: int
    events: list[Event]
    found: list[str]
    """What does not hold; empty when all is well."""
    steps: int
    keys: list[str]
    """Of the commits, in order."""
    statuses: list[str]

    def told(self) -> str:
        """A few lines for a person."""
        lines = [f"seed {self.seed}: {self.steps} steps, {len(self.keys)} commits, {self.statuses}"]
        lines += (f"    step {each.step}: {each.kind} {each.amount:.2f}" for each in self.events)
        lines += ("  last commits", *(f"    {each}" for each in self.keys[-8:]))
        lines += ("  found", *(f"    {each}" for each in self.found[:5]))
        return "\n".join(lines)


def has_react(seed: int) -> bool:
    """Whether a seed's agent runs are ReAct's; else they are those of behaviours that are made for the simulator."""
    return seed % 2 == 0


def events_of(seed: int) -> list[Event]:
    """What goes wrong in a seed; in some of them, nothing does."""
    rng = Random(f"events {seed}")
    kinds = (*_KINDS, "kill", "steer", "resolve", "resolve") if has_react(seed) else _KINDS
    horizon = rng.choice((150, 400, 1200))
    drawn = [
        Event(rng.randrange(1, horizon), rng.choice(kinds), rng.random()) for _ in range(rng.choice((0, 2, 4, 8, 16)))
    ]
    return sorted(drawn)


def simulate(seed: int, events: Sequence[Event] | None = None, *, database: Database | None = None) -> Outcome:
    """Run a seed to its end, or to what it finds.

    Args:
        seed: The seed.
        events: What goes wrong, if not what the seed says.
        database: An in-memory database to use again; each seed has ids of its own.
    """
    world = _World(seed, events_of(seed) if events is None else list(events), database)
    with mock.patch.object(leases, "is_gone", world.is_gone), mock.patch.dict(conditions._KINDS, {ANY: any_ended}):
        world.run()
    return world.outcome()


class _World:
    def __init__(self, seed: int, events: list[Event], database: Database | None) -> None:
        self.seed = seed
        self._events = events
        self._left = list(reversed(events))
        self._rng = Random(f"steps {seed}")
        self._own_database = database is None
        self._database = database or open_database(":memory:", fsync="normal")
        self._loop = VirtualLoop(self._rng, most=_MOST_STEPS)
        self._loop.before_step = self._before_step
        self._witness = Witness(self._rng)
        self._moved_us = 0
        self._numbers = count()
        self._prefix = f"{next(_TIMES):06}-"
        self._fault: tuple[str, float] | None = None
        self._processes: dict[int, Process] = {}
        self._mains: dict[int, Any] = {}
        self._dead: set[int] = set()
        self._wanted = 2 + seed % 2
        self._roots: list[str] = []
        self._steered: dict[str, int] = {}
        rng = Random(f"story {seed}")
        self._reacts = has_react(seed)
        self._stories = [story_of(rng) for _ in range(rng.choice((1, 1, 2)))] if self._reacts else _stories(rng)
        self._moods = _moods(rng, self._stories)

    # -- running

    def run(self) -> None:
        try:
            with self._in_process(0):
                for story in self._stories:
                    self._roots.append(self._start(story))
            for _ in range(self._wanted):
                self._spawn()
            self._loop.run_until(self._is_over)
            if not self._witness.found:
                self._database.transact(check_end, self._roots, self._witness.say)
        except Stuck as stuck:
            self._witness.say(str(stuck))
        finally:
            self._bury()

    def _is_over(self) -> bool:
        if self._witness.found:
            return True
        alive = [main for number, main in self._mains.items() if number not in self._dead]
        return len(alive) == self._wanted and all(main.done() for main in alive)

    def _bury(self) -> None:
        self._found = list(self._witness.found)
        for process in self._processes.values():
            process.store.closed = True
        self._loop.bury()
        if self._own_database:
            self._database.close()

    def outcome(self) -> Outcome:
        statuses = [self._witness.status_of(each) for each in self._roots]
        found, keys = ([each.replace(self._prefix, "") for each in told] for told in (self._found, self._witness.keys))
        keys = [each.partition(":sha256:")[0] for each in keys]  # what is digested holds ids, which are new each time
        return Outcome(self.seed, self._events, found, self._loop.steps, keys, statuses)

    def _start(self, story: dict[str, Any]) -> str:
        entry = entry_of(story["behaviour"], loop_limit=story["limit"], run_us=story["run_us"])
        entry = entry._replace(limits=story.get("limits"))
        root_id: str = self._database.transact(
            start, entry, story["input"], key=None, now_us=self._clock_us(), ids=self._ids
        )
        if self._reacts:
            self._witness.watch_history(root_id)
        self._database.transact(self._witness.see, root_id, "start")
        return root_id

    # -- processes

    @contextmanager
    def _in_process(self, number: int) -> Iterator[None]:
        token = PROCESS.set(number)
        try:
            yield
        finally:
            PROCESS.reset(token)

    def _spawn(self) -> None:
        number = len(self._processes) + 1
        store = FaultyStore(self._database, self._witness, self._next_fault, clock_us=self._clock_us, ids=self._ids)
        stories = zip(self._roots, self._stories, strict=True)
        programs = {root_id: self._program(number, story) for root_id, story in stories}
        process = Process(number, programs, self._tell, store, self._witness, self._rng, self._moods)
        self._processes[number] = process
        with self._in_process(number):
            self._mains[number] = self._loop.create_task(process.live())

    def _program(self, number: int, story: dict[str, Any]) -> SimulatedProgram:
        shared: tuple[Any, ...] = (self._database, self._witness, self._rng, self._moods)
        return Clerk(story, number, *shared) if self._reacts else SimulatedProgram(number, *shared)

    def _tell(self, root_id: str) -> None:
        """Ask somebody what came of the calls that are in doubt; they say it of one of them, or have no time."""
        if self._rng.random() < 0.7:
            now_us = self._clock_us()
            self._database.transact(tell, root_id, self._witness, self._rng.random(), now_us=now_us, ids=self._ids)

    def is_gone(self, owner: Any) -> bool:
        """Whether an owner's process was killed, and the others can see that."""
        return owner.pid in self._dead and self._moods["sees_dead"]

    def _clock_us(self) -> int:
        return _BASE_US + int(self._loop.time() * 1e6) + self._moved_us

    def _ids(self) -> str:
        return f"{self._prefix}{next(self._numbers):04}"

    def _next_fault(self) -> tuple[str, float] | None:
        fault, self._fault = self._fault, None
        if fault is None and self._rng.random() < self._moods["slow_disk"]:
            return "stall", self._rng.uniform(0, 0.002)
        return fault

    # -- events

    def _before_step(self, process: int) -> None:
        while self._left and self._left[-1].step <= self._loop.steps:
            event = self._left[-1]
            if event.kind in ("kill", "stop") and process in (0, *self._loop.killed):
                return  # the next step of a process
            self._left.pop()
            with self._in_process(0):
                getattr(self, f"_{event.kind}")(process, event.amount)

    def _kill(self, process: int, amount: float) -> None:
        self._dead.add(process)
        self._witness.died(process)
        self._loop.park(process)
        self._loop.call_later(amount * 10, self._spawn)

    def _stop(self, process: int, amount: float) -> None:
        self._loop.park(process)
        self._loop.call_later(amount * 20, self._loop.unpark, process)

    def _abort(self, process: int, amount: float) -> None:
        self._fault = ("abort", amount)

    def _lost(self, process: int, amount: float) -> None:
        self._fault = ("lost", amount)

    def _stall(self, process: int, amount: float) -> None:
        self._fault = ("stall", amount)

    def _clock(self, process: int, amount: float) -> None:
        self._moved_us += int((amount - 0.3) * 20_000_000)

    def _cancel(self, process: int, amount: float) -> None:
        root_id = self._roots[int(amount * 1000) % len(self._roots)]
        try:
            self._database.transact(_ask_to_stop, root_id, self._clock_us(), self._ids, by_ledger=amount > 0.5)
        except ConflictError:
            return  # it has ended
        self._database.transact(self._witness.see, root_id, "cancel")

    def _resolve(self, process: int, amount: float) -> None:
        self._tell(self._roots[int(amount * 1000) % len(self._roots)])

    def _steer(self, process: int, amount: float) -> None:
        root_id = self._roots[int(amount * 1000) % len(self._roots)]
        message = Encoded("json", json.dumps(amount).encode())
        try:
            self._database.transact(inbox.ask_to_steer(root_id, message, self._clock_us()))
        except ConflictError:
            return


def _ask_to_stop(tx: Any, root_id: str, now_us: int, ids: Any, *, by_ledger: bool) -> None:
    """From a process of its own, by one of the two doors."""
    if by_ledger:
        control.ask_to_cancel(root_id, CancelMode.NOW, "simulated", now_us)(tx)
    else:
        owner = owner_of(0, "stops")
        stop(tx, root_id, reason="simulated", owner=owner, ttl_us=TTL_US, lease_us=now_us, now_us=now_us, ids=ids)


def _stories(rng: Random) -> list[dict[str, Any]]:
    """One to three agent runs."""
    return [_story(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]


def _story(rng: Random) -> dict[str, Any]:
    behaviour = rng.choice(("rounds", "fan"))
    rounds = rng.randrange(1, 4 if behaviour == "rounds" else 6)
    limit = rng.choice((100, 100, rounds, max(rounds - 1, 0), 1))
    told = {
        "rounds": rounds,
        "tools": rng.randrange(4),
        "policy": rng.choice(("repeatable", "once", "once", "keyed")),
        "breaks": rng.choice((None,) * 10 + ("silence", "error")),
    }
    run_us = rng.choice((None, None, None, None, 3_000_000, 15_000_000))
    return {"behaviour": behaviour, "input": told, "limit": limit, "run_us": run_us}


def _moods(rng: Random, stories: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "deny": rng.choice((0, 0, 0, 0.3)),
        "fail": rng.choice((0, 0, 0, 0.1)),
        "retry": rng.choice((0, 0.2, 0.4)),
        "slow": rng.choice((0.05, 0.2, 0.5)),
        "slow_disk": rng.choice((0, 0.1, 0.4)),
        "hooks": rng.choice((0, 1)),
        "steers": int(all(each["behaviour"] == "rounds" for each in stories)),
        "one_owner": rng.random() < 0.3,
        "sees_dead": rng.random() < 0.5,
    }
