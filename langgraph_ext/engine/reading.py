"""Reading: what can be seen of agent runs, while they go and after, from any process: the door's half that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.engine.applying import operation_of
from langgraph_ext.engine.contexts import end_of, stored_messages
from langgraph_ext.engine.messages import revived
from langgraph_ext.engine.records import (
    AgentRunRecord,
    AgentTaskRecord,
    CallRecord,
    OperationRecord,
    RequestRecord,
    SlotRecord,
    TicketRecord,
    TranscriptEntry,
)
from langgraph_ext.engine.requests import requests_of
from langgraph_ext.engine.rows import AgentRun, AgentTask, Operation, Ticket, first_task, read_root
from langgraph_ext.engine.store import Store
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import Event
from langgraph_ext.ledger.rows import at_least, moment, text_or_none

__all__ = ["Reading", "named", "operation_given_out"]

T = TypeVar("T")


class Reading:
    """The part of the engine that only reads."""

    ledger: RunLedger
    _store: Store

    def get_run(self, agent_run_id: str) -> AgentRunRecord:
        """An agent run as it is.

        Raises:
            NotFound: There is none (`agent_run_not_found`).
        """
        return AgentRunRecord.of(self._store.database.read(read_root, named(agent_run_id)))

    async def aget_run(self, agent_run_id: str) -> AgentRunRecord:
        """As `get_run`."""
        return AgentRunRecord.of(await self._store.read(read_root, named(agent_run_id)))

    def runs(self, *, before: str | None = None, limit: int = 100) -> list[AgentRunRecord]:
        """A page of agent runs, newest first.

        Args:
            before: The last id of the page before.
            limit: At most so many, from 1.
        """
        return self._store.database.read(_ask_runs(before, limit))

    async def aruns(self, *, before: str | None = None, limit: int = 100) -> list[AgentRunRecord]:
        """As `runs`."""
        return await self._store.read(_ask_runs(before, limit))

    def tasks(self, agent_run_id: str) -> list[AgentTaskRecord]:
        """The agent tasks of an agent run, with the phase in which each stands.

        Raises:
            NotFound: There is no such agent run (`agent_run_not_found`); so do all methods below.
        """
        return self._store.database.read(_ask(_tasks, agent_run_id))

    async def atasks(self, agent_run_id: str) -> list[AgentTaskRecord]:
        """As `tasks`."""
        return await self._store.read(_ask(_tasks, agent_run_id))

    def operations(self, agent_run_id: str) -> list[OperationRecord]:
        """What an agent run has called, or is about to: models and tools, with their physical calls and their usage."""
        return self._store.database.read(_ask(_operations, agent_run_id))

    async def aoperations(self, agent_run_id: str) -> list[OperationRecord]:
        """As `operations`."""
        return await self._store.read(_ask(_operations, agent_run_id))

    def doubts(self, agent_run_id: str) -> list[OperationRecord]:
        """The calls of which nobody knows whether they did anything; `resolve` says what came of one.

        Of an agent run that has ended, too: nothing more is done in it about them, so look outside.
        """
        return self._store.database.read(_ask(_doubts, agent_run_id))

    async def adoubts(self, agent_run_id: str) -> list[OperationRecord]:
        """As `doubts`."""
        return await self._store.read(_ask(_doubts, agent_run_id))

    def requests(self, agent_run_id: str, *, pending: bool = False) -> list[RequestRecord]:
        """What an agent run has asked people, the oldest first; `pending`: what nobody has answered.

        `answer` answers one.
        """
        return self._store.database.read(_ask(partial(_requests, pending=pending), agent_run_id))

    async def arequests(self, agent_run_id: str, *, pending: bool = False) -> list[RequestRecord]:
        """As `requests`."""
        return await self._store.read(_ask(partial(_requests, pending=pending), agent_run_id))

    def slots(self, agent_run_id: str) -> list[SlotRecord]:
        """The tool calls of all decisions, in their order, and what came of each."""
        return self._store.database.read(_ask(_slots, agent_run_id))

    async def aslots(self, agent_run_id: str) -> list[SlotRecord]:
        """As `slots`."""
        return await self._store.read(_ask(_slots, agent_run_id))

    def tickets(self, agent_run_id: str) -> list[TicketRecord]:
        """The units of the loop limit that were asked for, in that order."""
        return self._store.database.read(_ask(_tickets, agent_run_id))

    async def atickets(self, agent_run_id: str) -> list[TicketRecord]:
        """As `tickets`."""
        return await self._store.read(_ask(_tickets, agent_run_id))

    def transcript(self, agent_run_id: str, *, after: int = 0, limit: int = 1_000) -> list[TranscriptEntry]:
        """A page of the history of an agent run's first role; what was compacted stays in it.

        Of one that goes on with the history of an earlier one, as a chat's turns do, what it has added.

        Args:
            agent_run_id: Which.
            after: The last seq of the page before.
            limit: At most so many, from 1.
        """
        return self._store.database.read(_ask_transcript(agent_run_id, after, limit))

    async def atranscript(self, agent_run_id: str, *, after: int = 0, limit: int = 1_000) -> list[TranscriptEntry]:
        """As `transcript`."""
        return await self._store.read(_ask_transcript(agent_run_id, after, limit))

    def events(self, agent_run_id: str, *, after: int = 0, limit: int = 100) -> list[Event]:
        """A page of an agent run's events; as `RunLedger.events`."""
        return self.ledger.events(agent_run_id, after=after, limit=limit)

    async def aevents(self, agent_run_id: str, *, after: int = 0, limit: int = 100) -> list[Event]:
        """As `events`."""
        return await self.ledger.aevents(agent_run_id, after=after, limit=limit)

    def follow(self, agent_run_id: str, *, after: int = 0) -> Iterator[Event]:
        """An agent run's events as they come; as `RunLedger.follow`."""
        return self.ledger.follow(agent_run_id, after=after)

    def afollow(self, agent_run_id: str, *, after: int = 0) -> AsyncIterator[Event]:
        """As `follow`."""
        return self.ledger.afollow(agent_run_id, after=after)


def named(given: object, what: str = "agent_run_id") -> str:
    """An id that a caller has given.

    Raises:
        InvalidArgument: It is no text.
    """
    return text_or_none(given, what) or ""


def operation_given_out(tx: Tx, operation_id: str) -> OperationRecord:
    """An operation that is there, with its calls."""
    return _given_out(tx, operation_of(tx, operation_id))


def _ask(fn: Callable[[Tx, AgentRun], T], agent_run_id: str) -> Callable[[Tx], T]:
    root_id = named(agent_run_id)
    return lambda tx: fn(tx, read_root(tx, root_id))


def _ask_runs(before: str | None, limit: int) -> Callable[[Tx], list[AgentRunRecord]]:
    before = text_or_none(before, "before") or "\U0010ffff"
    size = at_least(1, limit, "limit")
    return lambda tx: [
        AgentRunRecord.of(AgentRun.from_row(row)) for row in tx.all("agent_runs_page", before=before, size=size)
    ]


def _ask_transcript(agent_run_id: str, after: int, limit: int) -> Callable[[Tx], list[TranscriptEntry]]:
    after, limit = at_least(0, after, "after"), at_least(1, limit, "limit")
    return _ask(partial(_transcript, after=after, size=limit), agent_run_id)


def _tasks(tx: Tx, root: AgentRun) -> list[AgentTaskRecord]:
    rows = tx.all("agent_tasks_of_tree", root_id=root.agent_run_id)
    return [AgentTaskRecord.of(AgentTask.from_row(row)) for row in rows]


def _operations(tx: Tx, root: AgentRun) -> list[OperationRecord]:
    rows = tx.all("agent_operations_of_tree", root_id=root.agent_run_id)
    return [_given_out(tx, Operation.from_row(row)) for row in rows]


def _doubts(tx: Tx, root: AgentRun) -> list[OperationRecord]:
    rows = map(Operation.from_row, tx.all("agent_operations_of_tree", root_id=root.agent_run_id))
    return [_given_out(tx, each) for each in rows if each.is_in_doubt]


def _requests(tx: Tx, root: AgentRun, *, pending: bool) -> list[RequestRecord]:
    return [RequestRecord.of(each) for each in requests_of(tx, root.agent_run_id, pending=pending)]


def _slots(tx: Tx, root: AgentRun) -> list[SlotRecord]:
    return [SlotRecord.of(row) for row in tx.all("agent_members_of_tree", root_id=root.agent_run_id)]


def _tickets(tx: Tx, root: AgentRun) -> list[TicketRecord]:
    rows: list[Row] = tx.all("agent_tickets_of_tree", root_id=root.agent_run_id)
    return [TicketRecord.of(Ticket.from_row(row)) for row in rows]


def _transcript(tx: Tx, root: AgentRun, *, after: int, size: int) -> list[TranscriptEntry]:
    first = first_task(tx, root.agent_run_id)
    begin, end = max(after, first.context_from), end_of(tx, first)
    rows = stored_messages(tx, first.context_id, after=begin, upto=GREATEST if end is None else end, size=size)
    return [
        TranscriptEntry(seq=seq, kind=kind, message=revived([message])[0], stored_at=moment(stored_us))
        for seq, kind, message, stored_us in rows
    ]


def _given_out(tx: Tx, operation: Operation) -> OperationRecord:
    rows: list[Any] = tx.all("agent_calls_of", operation_id=operation.operation_id)
    return OperationRecord.of(operation, tuple(CallRecord.of(row) for row in rows))
