"""Raising: a limit that is reached closes its scope, or a person is asked whether it is raised (rule A6, `on_limit`).

While they are, nothing more is called in that scope; what waits for the answer stays where it is, with what its hooks
have decided. The request has LangChain's shape, with one action: `raise_limit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext.engine import closing, tickets
from langgraph_ext.engine.applying import Applying, agent_run_of
from langgraph_ext.engine.asking import open_request
from langgraph_ext.engine.limits import REASONS
from langgraph_ext.engine.rows import AgentRun, Operation, encoded

__all__ = ["ACTION", "decide", "fault_of", "reached", "spent"]

ACTION = "raise_limit"

_LIMITS = {tickets.EXHAUSTED: "loops"} | {reason: name for name, reason in REASONS.items()}
"""By the reason for which a scope closes: the limit."""


def reached(at: Applying, operation: Operation, agent_run_id: str, reason: str, message: str) -> bool:
    """An operation needs more than a limit of an agent run leaves.

    Returns:
        Whether a person is asked; else the scope closes.
    """
    run = agent_run_of(at.tx, agent_run_id)
    if reason in _LIMITS and run.asks:
        _ask(at, operation, run, _LIMITS[reason])
        return True
    closing.close(at, agent_run_id, reason, message)
    return False


def spent(at: Applying, operation: Operation, planned: tickets.Planned) -> bool:
    """As `reached`, of an operation for which there is no ticket, and will be none (tickets.plan)."""
    assert planned.agent_run_id is not None, "a close names whose it is"
    assert planned.reason is not None, "and why"
    return reached(at, operation, planned.agent_run_id, planned.reason, tickets.told(at, planned))


def _ask(at: Applying, operation: Operation, run: AgentRun, limit: str) -> None:
    """Ask, unless that is asked already."""
    asked = [
        row
        for row in at.tx.all("agent_requests_of_tree", root_id=at.root_id)
        if row["kind"] == "limit" and row["agent_run_id"] == run.agent_run_id
    ]
    if any(row["state"] == "open" for row in asked):
        return
    most = run.loop_limit if limit == "loops" else run.limits[limit]
    used = _used(run, limit)
    args = {"limit": limit, "to": 2 * most}
    told = f"The agent has used {used} of {most} {limit}. Approve to raise the limit to {2 * most}, or edit `to`."
    payload = {
        "action_requests": [{"name": ACTION, "args": args, "description": told}],
        "review_configs": [{"action_name": ACTION, "allowed_decisions": ["approve", "edit", "reject"]}],
        "tool_call_ids": [],
        "used": used,
        "most": most,
    }
    subject = f"{run.agent_run_id}:{limit}:{len(asked) + 1}"
    open_request(at, operation.agent_task_id, kind="limit", subject=subject, payload=payload)


def _used(run: AgentRun, limit: str) -> int:
    counted = {"loops": run.consumed, "tokens": run.tokens_in + run.tokens_out}
    return int(counted[limit] if limit in counted else getattr(run, limit))


def fault_of(payload: Mapping[str, Any], name: str, args: Mapping[str, Any]) -> str | None:
    """What is wrong with a limit that a person has written; None if nothing is."""
    [action] = payload["action_requests"]
    to = args.get("to")
    if (
        type(to) is not int
        or not payload["used"] < to < 2**53
        or args.get("limit", action["args"]["limit"]) != action["args"]["limit"]
    ):
        return f"`to` is a whole number above {payload['used']}, and `limit` stays {action['args']['limit']!r}"
    return None


def decide(at: Applying, agent_run_id: str, payload: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """A person has decided: the limit is raised, or its scope closes."""
    [action], [decision] = payload["action_requests"], answer["decisions"]
    limit, to = action["args"]["limit"], action["args"]["to"]
    if decision["type"] == "reject":
        reason = next(each for each, name in _LIMITS.items() if name == limit)
        closing.close(at, agent_run_id, reason, decision.get("message") or f"a person has not raised limits.{limit}")
        return
    if decision["type"] == "edit":
        to = decision["edited_action"]["args"]["to"]
    run = agent_run_of(at.tx, agent_run_id)
    limits = run.limits if limit == "loops" else {**run.limits, limit: to}
    at.tx.run(
        "agent_run_raise",
        agent_run_id=agent_run_id,
        loop_limit=to if limit == "loops" else run.loop_limit,
        limits=encoded(limits, "limits").decode(),
    )
    at.looks_again = True
    at.event("limit.raised", agent_run_id=agent_run_id, limit=limit, to=to)
