"""Visits: the door's half that nodes of graphs use, for agent runs that they drive in their visits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.carrying import COME_TO_NOTHING, Before, Carried, Given, carried, is_left, look_back
from langgraph_ext.engine.contexts import Plain, count_of, end_of, names_of, stored_messages
from langgraph_ext.engine.last_names import last_names
from langgraph_ext.engine.messages import revived
from langgraph_ext.engine.reading import named as id_named
from langgraph_ext.engine.records import AgentRunRecord
from langgraph_ext.engine.release_program import ReleaseProgram
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.rows import AgentRun, decoded, first_task
from langgraph_ext.engine.runtimes import First
from langgraph_ext.engine.starting import Continues
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.visiting import Caller, Driven, Visit, stop_in
from langgraph_ext.ledger.agent_threads import thread_of

__all__ = ["Came", "Done", "Named", "Started", "Visits"]


_LEFT = "its graph was given new input instead"
"""Why an agent run is stopped that nobody goes on with."""


class Named(NamedTuple):
    """What a visit is called: the same each time it is come to."""

    node: str
    """The beginning of the names of all visits of its node."""
    visit: str
    otherwise: str
    """What the same visit is called where its graph saves otherwise."""

    @property
    def key(self) -> str:
        """Both."""
        return f"{self.node}{self.visit}"


class Came(NamedTuple):
    """What an agent run has come to."""

    messages: list[BaseMessage]
    """Those of its history that its caller does not know."""
    commands: list[Any]
    """What its tools have answered besides messages, as visiting.Taken says it, in the order of their calls."""

    @classmethod
    def of(cls, messages: list[Plain], commands: list[Any]) -> Came:
        """The same, of plain messages."""
        return cls(revived(messages), commands)


class Started(NamedTuple):
    """The agent run of a visit."""

    agent_run_id: str
    first: First | None = None
    """What its driver looks at first, if it was begun just now, under the lease of its graph's thread."""


class Done(NamedTuple):
    """How far an agent run was driven."""

    run: AgentRunRecord
    came: Came | None
    """What it has come to, if it has ended just now."""


class Visits:
    """The part of the engine that nodes of graphs use."""

    behaviours: Behaviours
    _store: Store
    _works: set[Any]

    # -- the other half's

    def _start(
        self,
        spec: Any,
        input: Any,
        key: str | None,
        visit: Visit | None = None,
        continues: Continues | None = None,
    ) -> Callable[..., str]:
        raise NotImplementedError

    def _stop(self, agent_run_id: str, reason: str | None) -> Callable[..., AgentRun]:
        raise NotImplementedError

    async def _drive(self, agent_run_id: str, spec: Any, caller: Caller | None = None) -> AgentRunRecord:
        raise NotImplementedError

    # -- runs of visits

    def start_in(self, visit: Visit | Caller, release: Release, given: Given, named: Named) -> Started:
        """Begin the agent run of a visit, or find it: one that came to nothing is followed by another.

        Args:
            visit: What its attempt lends; or, if the graph keeps no record of attempts, who calls.
            release: What it is to be.
            given: The conversation that a new one begins with. It goes on with the history of the one before it of its
                node, as far as that holds it.
            named: What the visit is called.

        Raises:
            ConflictError: The attempt may not act any more (`attempt_mismatch`).
            InvalidArgument: The messages cannot be stored.
        """
        stopped = set[str]()
        while True:
            before = self._store.database.read(self._looking(visit, named, stopped))
            if isinstance(before, str):
                self._store.database.transact(self._stopping(visit, before, _LEFT))
                stopped.add(before)
                continue
            starting = self._starting(visit, release, carried(given, before), named, before)
            found = self._store.database.transact(starting)
            if found is not None:
                return found

    async def astart_in(self, visit: Visit | Caller, release: Release, given: Given, named: Named) -> Started:
        """As `start_in`."""
        stopped = set[str]()
        while True:
            before = await self._store.read(self._looking(visit, named, stopped))
            if isinstance(before, str):
                await self._store.transact(self._stopping(visit, before, _LEFT))
                stopped.add(before)
                continue
            starting = self._starting(visit, release, carried(given, before), named, before)
            found = await self._store.transact(starting)
            if found is not None:
                return found

    def came_of(self, agent_run_id: str, known: Collection[str]) -> Came:
        """What an agent run has come to, for a caller who knows messages with these ids."""
        return Came.of(*self._store.database.read(_came, id_named(agent_run_id), known))

    async def acame_of(self, agent_run_id: str, known: Collection[str]) -> Came:
        """As `came_of`."""
        return Came.of(*await self._store.read(_came, id_named(agent_run_id), known))

    async def adrive_in(
        self,
        visit: Visit | Caller,
        started: Started,
        release: Release,
        known: Collection[str],
    ) -> Done:
        """Drive it as far as it goes. Cancelling this stops nothing: `stop_in` does.

        Args:
            visit: As for `start_in`.
            started: What that has returned; what it has seen is good for one call.
            release: The agent run's.
            known: Ids of the messages that the caller knows.

        Raises:
            LeaseError: The graph's thread was lost (`lease_lost`).
            LangGraphExtError: The release is not the one that it was started with (`definition_changed`); or a model
                call was refused, and not made, by the budget of the graph's run or as that was cancelled.
        """
        if isinstance(visit, Caller):  # under a lease of its own
            return Done(await self._drive(started.agent_run_id, release, visit), None)
        driven = self._driven(visit, id_named(started.agent_run_id), release, known)
        self._works.add(driven)
        try:
            root = await driven.drive(started.first)
        finally:
            self._works.discard(driven)
        return Done(AgentRunRecord.of(root), None if driven.end is None else Came.of(*driven.end))

    def _driven(self, visit: Visit, root_id: str, release: Release, known: Collection[str] | None = None) -> Driven:
        program = ReleaseProgram(release, self.behaviours, self._store, caller=visit.caller)
        at_end = None if known is None else partial(_came, root_id=root_id, known=known)
        return Driven(self._store, program, release.digest, root_id, visit.held, at_end)

    def stop_in(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> AgentRunRecord:
        """Stop it for good, once nobody drives it any more: each of its tool calls has a result then."""
        return AgentRunRecord.of(self._store.database.transact(self._stopping(visit, agent_run_id, reason)))

    async def astop_in(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> AgentRunRecord:
        """As `stop_in`."""
        return AgentRunRecord.of(await self._store.transact(self._stopping(visit, agent_run_id, reason)))

    def _looking(
        self, visit: Visit | Caller, named: Named, but: Collection[str]
    ) -> Callable[[Tx], Before | str | None]:
        """Look whether the visit's agent run is to begin, and which was before it; outside of a write transaction.

        One that goes on in nobody's visit is to be stopped first, but once: its id is returned.
        """

        def look(tx: Tx) -> Before | str | None:
            number, own = _standing(tx, named)
            if _known(tx, named, own) is not None:
                return None
            found, is_own = _prior(tx, visit, named, number)
            if found is not None and found["agent_run_id"] not in but and is_left(tx, found):
                return str(found["agent_run_id"])
            place = visit.place if isinstance(visit, Visit) else None
            return look_back(tx, found, place, is_own=is_own, last=last_names(self._store.database))

        return look

    def _starting(
        self, visit: Visit | Caller, release: Release, first: Carried, named: Named, before: Before | None
    ) -> Callable[[Tx], Started | None]:
        """Begin the agent run of a visit, or find it; None if another one of its node has begun meanwhile."""
        lent = visit if isinstance(visit, Visit) else None
        input = {"messages": first.messages}

        def begin(tx: Tx) -> Started | None:
            number, own = _standing(tx, named)
            if (known := _known(tx, named, own)) is not None:
                if lent is not None:
                    lent.guard(tx)
                _rehome(tx, known, lent)
                return Started(known["agent_run_id"])
            if first.continues is not None:
                found, _ = _prior(tx, visit, named, number)
                if found is None or before is None or found["agent_run_id"] != before.agent_run_id:
                    return None
            key = f"{named.key}#{number + 1}"
            begun = self._start(release, input, key, lent, first.continues)(tx)
            return Started(begun, None if lent is None else self._driven(lent, begun, release).first_look(tx))

        return begin

    def _stopping(self, visit: Visit | Caller, agent_run_id: str, reason: str) -> Callable[[Tx], AgentRun]:
        if isinstance(visit, Caller):
            return self._stop(agent_run_id, reason)
        ids, now_us = self._store.ids, self._store.clock_us()
        return partial(stop_in, root_id=id_named(agent_run_id), held=visit.held, reason=reason, ids=ids, now_us=now_us)


def _standing(tx: Tx, named: Named) -> tuple[int, Row | None]:
    """How many agent runs of a visit came to nothing, and the one behind them, if there is one."""
    number = 0
    while True:
        row = tx.maybe("agent_run_keyed", key=f"{named.key}#{number + 1}")
        if row is None or row["status"] not in COME_TO_NOTHING:
            return number, row
        number += 1


def _known(tx: Tx, named: Named, own: Row | None) -> Row | None:
    """The agent run of a visit: its own, or one that goes on yet from where its graph saved otherwise."""
    if own is not None:
        return own
    row = tx.maybe("agent_run_keyed", key=f"{named.node}{named.otherwise}#1")
    return None if row is None or AgentStatus(row["status"]).ended else row


def _prior(tx: Tx, visit: Visit | Caller, named: Named, number: int) -> tuple[Row | None, bool]:
    """The agent run before that of a visit, and whether it is of the same one; else it is its node's newest."""
    if number > 0:
        return tx.one("agent_run_keyed", key=f"{named.key}#{number}"), True
    if isinstance(visit, Visit):
        return tx.maybe("agent_run_before", thread_id=visit.held.thread_id, beginning=named.node), False
    return tx.maybe("agent_run_beginning", beginning=named.node, end=named.node + "\U0010ffff"), False


def _rehome(tx: Tx, known: Row, lent: Visit | None) -> None:
    """Have an agent run go on under the lease that there is now: its graph saves otherwise than when it began."""
    agent_run_id = known["agent_run_id"]
    thread_id = thread_of(agent_run_id) if lent is None else lent.held.thread_id
    if known["thread_id"] != thread_id:
        tx.run("agent_run_rehome", agent_run_id=agent_run_id, thread_id=thread_id)


def _came(tx: Tx, root_id: str, known: Collection[str]) -> tuple[list[Plain], list[Any]]:
    """Messages of the history up to the run's end that nobody knows, without summaries; and its tools' commands."""
    first = first_task(tx, root_id)
    end = end_of(tx, first)
    upto = GREATEST if end is None else end
    names = names_of(tx, first.context_id, after=first.context_from, upto=upto)
    its_input = sum(each.kind == "input" for each in names)
    if count_of(tx, first.context_id, upto=first.context_from) + its_input != len(known):
        names = names_of(tx, first.context_id, upto=upto)  # it goes on with what came to nothing, and was not returned
    new = {each.seq for each in names if each.message_id not in known}
    rows = stored_messages(tx, first.context_id, after=min(new) - 1, upto=max(new)) if new else []
    tools = [row for row in tx.all("agent_operations_of_tree", root_id=root_id) if row["kind"] == "tool"]
    outcomes = [decoded(row["outcome"]) or {} for row in tools]
    commands = [(each.get("value") or {}).get("command") for each in outcomes]
    return [message for seq, _, message, _ in rows if seq in new], [each for each in commands if each is not None]
