"""Carrying: the agent runs of a node go on with one history, turn by turn (rules A4, A5 and A8).

A chat's turns add to what is stored, and do not each store it anew. One that has failed, or was stopped, may have
acted: what it has added, with one result for each tool call, is known to the next. So is that of one which nobody goes
on with: its graph was given new input instead, and it is stopped then. A conversation that was changed, or
another branch of it, begins a history of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.contexts import Name, Plain, end_of, head_of
from langgraph_ext.engine.last_names import LastNames
from langgraph_ext.engine.messages import plain, said_of
from langgraph_ext.engine.rows import first_task
from langgraph_ext.engine.starting import Continues
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.ledger.lineage import has_taken
from langgraph_ext.ledger.records import AttemptStatus, RunStatus

__all__ = ["COME_TO_NOTHING", "Before", "Carried", "Given", "carried", "is_left", "look_back"]

COME_TO_NOTHING = (AgentStatus.FAILED, AgentStatus.CANCELLED)
"""How an agent run has ended that another one of the same visit follows."""


class Given(NamedTuple):
    """A conversation, as a node is given it."""

    messages: list[BaseMessage]
    """Each with an id."""
    names: list[tuple[str | None, str | None]]
    """By message: its id, and what it says (messages.said_of)."""

    @classmethod
    def of(cls, messages: list[BaseMessage]) -> Given:
        """One of these messages."""
        return cls(messages, [(each.id, said_of(each)) for each in messages])


class Before(NamedTuple):
    """The agent run of a node before the one that is to begin."""

    agent_run_id: str
    is_taken: bool
    """Whether its node has returned what it has added; else that is nowhere but here."""
    continues: Continues
    """Its history, to its end."""
    names: list[Name]
    """Of its messages, without summaries."""


class Carried(NamedTuple):
    """What a new agent run begins with."""

    messages: list[Plain]
    """Those that it adds to a history, or begins one with."""
    continues: Continues | None


def look_back(
    tx: Tx, row: Row | None, place: tuple[str, str] | None, *, is_own: bool, last: LastNames
) -> Before | None:
    """Read the agent run before; None if there is none, or it goes on yet, or its history is another one's by now.

    Args:
        tx: The transaction; it only reads.
        row: The agent run.
        place: Namespace and id of the checkpoint that the visit executes; None if that is not stored.
        is_own: Whether it is of the same visit.
        last: What is kept of names.
    """
    if row is None or not AgentStatus(row["status"]).ended:
        return None
    first = first_task(tx, row["agent_run_id"])
    if end_of(tx, first) is not None:
        return None
    return Before(
        row["agent_run_id"],
        not is_own and _is_taken(tx, row, place),
        Continues(first.context_id, head_of(tx, first.context_id, summaries=False).upto),
        last.read(tx, first.context_id),
    )


def _is_taken(tx: Tx, row: Row, place: tuple[str, str] | None) -> bool:
    """Whether what an agent run has added came into the state of its graph."""
    visit = tx.one("agent_run_visit", run=row["run"])
    if place is not None and visit["checkpoint_ns"] == place[0]:
        thread_id, ns = row["thread_id"], place[0]
        found = has_taken(tx, thread_id=thread_id, checkpoint_ns=ns, executed=visit["checkpoint_id"], later=place[1])
        return found is None or found
    return bool(row["status"] == AgentStatus.SUCCEEDED and visit["parent"] != RunStatus.CANCELLED)


def is_left(tx: Tx, row: Row) -> bool:
    """Whether an agent run goes on in nobody's visit: its attempt is over, and the graph went another way."""
    if AgentStatus(row["status"]).ended:
        return False
    visit = tx.one("agent_run_visit", run=row["run"])
    if visit["attempt"] is None:  # under a lease of its own; one cannot tell a visit that runs beside this one
        return False
    return AttemptStatus(visit["attempt"]).ended or visit["parent"] == RunStatus.CANCELLED


def carried(given: Given, before: Before | None) -> Carried:
    """What an agent run begins with.

    Args:
        given: The conversation, as its node is given it.
        before: The agent run of its node before it.

    Returns:
        What is new of it, behind the history of that, if it begins with the conversation so far; of one that came to
        nothing with what that has added besides, which its node has not returned. Else the whole of it.
    """
    place, besides = 0, list[str]()
    for each in () if before is None else before.names:
        if place < len(given.names) and each.said is not None and given.names[place] == (each.message_id, each.said):
            place += 1
        else:
            besides.append(each.kind)
    if before is not None and place and (not besides or (not before.is_taken and "input" not in besides)):
        return Carried([plain(each) for each in given.messages[place:]], before.continues)
    return Carried([plain(each) for each in given.messages], None)
