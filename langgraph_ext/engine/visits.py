"""Visits: the door's half that nodes of graphs use, for agent runs that they drive in their visits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from langgraph_ext.database import Tx
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.carrying import COME_TO_NOTHING, Plain, with_carried
from langgraph_ext.engine.reading import named as id_named
from langgraph_ext.engine.records import AgentRunRecord
from langgraph_ext.engine.release_program import ReleaseProgram
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.rows import AgentRun, read_root
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.visiting import Caller, Driven, Visit, stop_in

__all__ = ["Named", "Visits"]


class Named(NamedTuple):
    """What a visit is called: the same each time it is come to."""

    node: str
    """The beginning of the names of all visits of its node."""
    visit: str


class Visits:
    """The part of the engine that nodes of graphs use."""

    behaviours: Behaviours
    _store: Store
    _works: set[Any]

    # -- the other half's

    def _start(self, spec: Any, input: Any, key: str | None, visit: Visit | None = None) -> Callable[..., str]:
        raise NotImplementedError

    def _stop(self, agent_run_id: str, reason: str | None) -> Callable[..., AgentRun]:
        raise NotImplementedError

    async def _drive(self, agent_run_id: str, spec: Any, caller: Caller | None = None) -> AgentRunRecord:
        raise NotImplementedError

    # -- runs of visits

    def start_in(self, visit: Visit | Caller, release: Release, given: list[Plain], named: Named) -> AgentRunRecord:
        """Begin the agent run of a visit, or find it: one that came to nothing is followed by another.

        Args:
            visit: What its attempt lends; or, if the graph keeps no record of attempts, who calls.
            release: What it is to be.
            given: The messages that a new one begins with, plain, each with an id; and what an earlier one of its node
                has added to them, that came to nothing.
            named: What the visit is called.

        Raises:
            ConflictError: The attempt may not act any more (`attempt_mismatch`).
            InvalidArgument: The messages cannot be stored.
        """
        return AgentRunRecord.of(self._store.database.transact(self._starting(visit, release, given, named)))

    async def astart_in(
        self, visit: Visit | Caller, release: Release, given: list[Plain], named: Named
    ) -> AgentRunRecord:
        """As `start_in`."""
        return AgentRunRecord.of(await self._store.transact(self._starting(visit, release, given, named)))

    async def adrive_in(self, visit: Visit | Caller, agent_run_id: str, release: Release) -> AgentRunRecord:
        """Drive it as far as it goes. Cancelling this stops nothing: `stop_in` does.

        Raises:
            LeaseError: The graph's thread was lost (`lease_lost`).
            LangGraphExtError: The release is not the one that it was started with (`definition_changed`); or a model
                call was refused, and not made, by the budget of the graph's run or as that was cancelled.
        """
        if isinstance(visit, Caller):  # under a lease of its own
            return await self._drive(agent_run_id, release, visit)
        program = ReleaseProgram(release, self.behaviours, self._store, caller=visit.caller)
        driven = Driven(self._store, program, release.digest, id_named(agent_run_id), visit.held)
        self._works.add(driven)
        try:
            return AgentRunRecord.of(await driven.drive())
        finally:
            self._works.discard(driven)

    def stop_in(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> AgentRunRecord:
        """Stop it for good, once nobody drives it any more: each of its tool calls has a result then."""
        return AgentRunRecord.of(self._store.database.transact(self._stopping(visit, agent_run_id, reason)))

    async def astop_in(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> AgentRunRecord:
        """As `stop_in`."""
        return AgentRunRecord.of(await self._store.transact(self._stopping(visit, agent_run_id, reason)))

    def _starting(
        self, visit: Visit | Caller, release: Release, given: list[Plain], named: Named
    ) -> Callable[[Tx], AgentRun]:
        lent = visit if isinstance(visit, Visit) else None

        def begin(tx: Tx) -> AgentRun:
            number, key = 1, f"{named.node}{named.visit}"
            before = lent and tx.maybe("agent_run_before", thread_id=lent.held.thread_id, beginning=named.node)
            while (known := tx.maybe("agent_run_keyed", key=f"{key}#{number}")) is not None:
                if known["status"] not in COME_TO_NOTHING:
                    if lent is not None:
                        lent.guard(tx)
                    return read_root(tx, known["agent_run_id"])
                number, before = number + 1, known
            messages = with_carried(tx, given, before)
            return read_root(tx, self._start(release, {"messages": messages}, f"{key}#{number}", lent)(tx))

        return begin

    def _stopping(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> Callable[[Tx], AgentRun]:
        if isinstance(visit, Caller):
            return self._stop(agent_run_id, reason)
        ids, now_us = self._store.ids, self._store.clock_us()
        return partial(stop_in, root_id=id_named(agent_run_id), held=visit.held, reason=reason, ids=ids, now_us=now_us)
