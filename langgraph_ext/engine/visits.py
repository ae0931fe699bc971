"""Visits: the door's half that nodes of graphs use, for agent runs that they drive in their visits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.reading import named
from langgraph_ext.engine.records import AgentRunRecord
from langgraph_ext.engine.release_program import ReleaseProgram
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.rows import read_root
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.visiting import Driven, Visit, stop_in

__all__ = ["Visits"]


class Visits:
    """The part of the engine that nodes of graphs use."""

    behaviours: Behaviours
    _store: Store
    _works: set[Any]

    def _start(self, spec: Any, input: Any, key: str | None, visit: Visit | None = None) -> Callable[..., str]:
        raise NotImplementedError

    def start_in(self, visit: Visit, release: Release, input: Any, key: str) -> AgentRunRecord:
        """Begin the agent run of a visit, or find it: one that has failed or was cancelled is followed by another.

        Args:
            visit: What its attempt lends.
            release: What it is to be.
            input: JSON; of a new one.
            key: The visit's name.

        Raises:
            ConflictError: The attempt may not act any more (`attempt_mismatch`).
            InvalidArgument: The input cannot be one.
        """
        return AgentRunRecord.of(self._store.database.transact(self._starting(visit, release, input, key)))

    async def astart_in(self, visit: Visit, release: Release, input: Any, key: str) -> AgentRunRecord:
        """As `start_in`."""
        return AgentRunRecord.of(await self._store.transact(self._starting(visit, release, input, key)))

    async def adrive_in(self, visit: Visit, agent_run_id: str, release: Release) -> AgentRunRecord:
        """Drive it as far as it goes. Cancelling this stops nothing: `stop_in` does.

        Raises:
            LeaseError: The graph's thread was lost (`lease_lost`).
            LangGraphExtError: The release is not the one that it was started with (`definition_changed`); or a model
                call was refused, and not made, by the budget of the graph's run or as that was cancelled.
        """
        program = ReleaseProgram(release, self.behaviours, self._store, caller=visit.caller)
        driven = Driven(self._store, program, release.digest, named(agent_run_id), visit.held)
        self._works.add(driven)
        try:
            return AgentRunRecord.of(await driven.drive())
        finally:
            self._works.discard(driven)

    def stop_in(self, visit: Visit, agent_run_id: str, reason: str) -> AgentRunRecord:
        """Stop it for good, once nobody drives it any more: each of its tool calls has a result then."""
        return AgentRunRecord.of(self._store.database.transact(self._stopping(visit, agent_run_id, reason)))

    async def astop_in(self, visit: Visit, agent_run_id: str, reason: str) -> AgentRunRecord:
        """As `stop_in`."""
        return AgentRunRecord.of(await self._store.transact(self._stopping(visit, agent_run_id, reason)))

    def _starting(self, visit: Visit, release: Release, input: Any, key: str) -> Callable[[Tx], Any]:
        def begin(tx: Tx) -> Any:
            number = 1
            while (known := tx.maybe("agent_run_keyed", key=f"{key}#{number}")) is not None:
                if known["status"] not in ("failed", "cancelled"):
                    visit.guard(tx)
                    return read_root(tx, known["agent_run_id"])
                number += 1
            return read_root(tx, self._start(release, input, f"{key}#{number}", visit)(tx))

        return begin

    def _stopping(self, visit: Visit, agent_run_id: str, reason: str) -> Callable[[Tx], Any]:
        ids, now_us = self._store.ids, self._store.clock_us()
        return partial(stop_in, root_id=named(agent_run_id), held=visit.held, reason=reason, ids=ids, now_us=now_us)
