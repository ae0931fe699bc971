"""Carrying: the agent runs of a node go on with one history, turn by turn (rules A4, A5 and A8).

A chat's turns add to what is stored, and do not each store it anew. One that has failed, or was stopped, may have
acted: what it has added, with one result for each tool call, is known to the next. So is that of one which nobody goes
on with: its graph was given new input instead, and it is stopped then. A conversation that was changed, or
another branch of it, begins a history of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.contexts import end_of, stored_messages
from langgraph_ext.engine.rows import first_task
from langgraph_ext.engine.starting import Continues
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.ledger.lineage import has_taken
from langgraph_ext.ledger.records import AttemptStatus, RunStatus

__all__ = ["COME_TO_NOTHING", "Before", "Carried", "Plain", "carried", "is_left", "look_back"]

COME_TO_NOTHING = (AgentStatus.FAILED, AgentStatus.CANCELLED)
"""How an agent run has ended that another one of the same visit follows."""

Plain = dict[str, Any]


class Before(NamedTuple):
    """The agent run of a node before the one that is to begin."""

    agent_run_id: str
    is_taken: bool
    """Whether its node has returned what it has added; else that is nowhere but here."""
    continues: Continues
    """Its history, to its end."""
    messages: tuple[tuple[str, Plain], ...]
    """That, with the kind of each, without summaries."""


class Carried(NamedTuple):
    """What a new agent run begins with."""

    messages: list[Plain]
    """Those that it adds to a history, or begins one with."""
    continues: Continues | None


def look_back(tx: Tx, row: Row | None, place: tuple[str, str] | None, *, is_own: bool) -> Before | None:
    """Read the agent run before; None if there is none, or it goes on yet, or its history is another one's by now.

    Args:
        tx: The transaction.
        row: The agent run.
        place: Namespace and id of the checkpoint that the visit executes; None if that is not stored.
        is_own: Whether it is of the same visit.
    """
    if row is None or not AgentStatus(row["status"]).ended:
        return None
    first = first_task(tx, row["agent_run_id"])
    if end_of(tx, first) is not None:
        return None
    rows = stored_messages(tx, first.context_id)
    return Before(
        row["agent_run_id"],
        not is_own and _is_taken(tx, row, place),
        Continues(first.context_id, rows[-1][0] if rows else 0),
        tuple((kind, message) for _, kind, message, _ in rows if kind != "summary"),
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


def carried(given: Sequence[Plain], before: Before | None) -> Carried:
    """What an agent run begins with.

    Args:
        given: The conversation, as its node is given it; each message with an id.
        before: The agent run of its node before it.

    Returns:
        What is new of it, behind the history of that, if it begins with the conversation so far; of one that came to
        nothing with what that has added besides, which its node has not returned. Else the whole of it.
    """
    if before is None:
        return Carried(list(given), None)
    place, besides = 0, list[str]()
    for kind, message in before.messages:
        if place < len(given) and _said(message) == _said(given[place]):
            place += 1
        else:
            besides.append(kind)
    if place and (not besides or (not before.is_taken and "input" not in besides)):
        return Carried(list(given[place:]), before.continues)
    return Carried(list(given), None)


def _said(message: Plain) -> Any:
    """What makes a message the same one: one that was rewritten under its id is another."""
    data = message["data"]
    calls = [(each["id"], each["name"], each["args"]) for each in data.get("tool_calls") or ()]
    return data.get("id"), message["type"], data["content"], calls
