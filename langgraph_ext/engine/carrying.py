"""Carrying: what an agent run that came to nothing has done is known to the one that follows it (rules A4 and A8).

One that has failed, or was stopped, may have acted: its decisions and results, one for each tool call, stand in the
history of the next of its node, as if that had made them itself.
"""

from __future__ import annotations

from typing import Any

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.contexts import stored_messages
from langgraph_ext.engine.rows import AgentTask, decoded
from langgraph_ext.engine.states import AgentStatus

__all__ = ["COME_TO_NOTHING", "Plain", "with_carried"]

COME_TO_NOTHING = (AgentStatus.FAILED, AgentStatus.CANCELLED)
"""How an agent run has ended that another one follows."""

Plain = dict[str, Any]


def with_carried(tx: Tx, given: list[Plain], before: Row | None) -> list[Plain]:
    """The messages that an agent run begins with.

    Args:
        tx: The transaction.
        given: What its node gives it; each with an id.
        before: The agent run of its node before it; None if there is none.

    Returns:
        `given`, and behind what that one was given the messages that it has added, if it came to nothing in the same
        conversation.
    """
    if before is None or before["status"] not in COME_TO_NOTHING:
        return given
    known = [_id(each) for each in given]
    asked = [_id(each) for each in decoded(before["input"])["messages"] if each["type"] == "human"]
    if not asked or not set(asked) <= set(known):
        return given  # of another branch
    added = [each for each in _history(tx, before) if _id(each) not in known]
    place = 1 + max(number for number, each in enumerate(known) if each in asked)
    return [*given[:place], *added, *given[place:]]


def _history(tx: Tx, run: Row) -> list[Plain]:
    """The messages of an agent run's first task, without summaries."""
    tasks = map(AgentTask.from_row, tx.all("agent_tasks_of_tree", root_id=run["agent_run_id"]))
    first = next(each for each in tasks if each.agent_run_id == run["agent_run_id"] and each.parent_operation is None)
    return [message for _, kind, message, _ in stored_messages(tx, first.agent_task_id) if kind != "summary"]


def _id(message: Plain) -> Any:
    return message["data"].get("id")
