"""Tool calls: what becomes of each one that a model has asked for (rule E15): a call, or a rejection it can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_ext.engine.argument_checks import argument_fault
from langgraph_ext.engine.limits import REASONS
from langgraph_ext.engine.messages import Asked, result_message
from langgraph_ext.engine.moves import error_outcome
from langgraph_ext.engine.runtimes import Runtime

__all__ = ["TRUNCATED", "beyond_limit", "member_of", "rejected"]

TRUNCATED = "response_truncated"


def member_of(asked: Asked, number: int, at: Mapping[str, Any], runtime: Runtime, cut_off: bool) -> dict[str, Any]:
    """A member of the batch that a decision's calls become.

    Args:
        asked: The call.
        number: Its ordinal.
        at: The continuation: whose role it is, and how many models it has called.
        runtime: What the behaviour may look at.
        cut_off: Whether the decision was cut off, so that none of its calls is made (rule A9).
    """
    member = {"call_id": asked.call_id, "name": asked.name, "purpose": f"tool:{at['n']}:{number}"}
    fault = (TRUNCATED, _CUT_OFF) if cut_off else _fault(asked, at, runtime)
    if fault is not None:
        return rejected(member, {"code": fault[0], "message": fault[1]})
    tool = runtime.spec["tools"][asked.name]
    return member | {
        "arguments": {"id": asked.call_id, "args": asked.args},
        "policy": tool["effect"],
        "on_unknown": _on_unknown(tool),
    }


def rejected(member: Mapping[str, Any], error: Mapping[str, str]) -> dict[str, Any]:
    """The member, for which nothing is dispatched: what the model is told instead."""
    named = {name: member[name] for name in ("call_id", "name", "purpose")}
    outcome = error_outcome(error["code"], error["message"])
    return named | {"result": member.get("result") or result_message(member["call_id"], member["name"], outcome)}


def beyond_limit(members: Sequence[Mapping[str, Any]], runtime: Runtime) -> dict[str, str] | None:
    """Why a decision's calls are more than the agent run may make; None if they are not."""
    assert runtime.run is not None, "a behaviour that keeps a context has it"
    most = None if runtime.run.asks else (runtime.run.limits or {}).get("tool_calls")  # then each call asks by itself
    wanted = sum("result" not in each for each in members)
    if most is None or runtime.run.tool_calls + wanted <= most:
        return None
    told = f"limits.tool_calls is {most}, {runtime.run.tool_calls} were made, and {wanted} more are asked for"
    return {"code": REASONS["tool_calls"], "message": told}


_CUT_OFF = "the answer was cut off at its length limit, so none of its calls was made; make fewer, or shorter ones"


def _fault(asked: Asked, at: Mapping[str, Any], runtime: Runtime) -> tuple[str, str] | None:
    tools = runtime.spec["tools"]
    allowed = runtime.spec["roles"][at["role"]]["tools"]
    there = f"there are: {', '.join(allowed) or 'none'}"
    if asked.name not in tools:
        return "tool_unknown", f"there is no tool {asked.name!r}; {there}"
    if asked.name not in allowed:
        return "tool_not_allowed", f"tool {asked.name!r} is not for this role; {there}"
    if asked.args is None:
        return "tool_arguments_invalid", "the arguments are not the JSON of an object"
    if runtime.live is None:
        return None
    fault = argument_fault(runtime.live.tools[asked.name], asked.args, tools[asked.name]["injected"])
    return None if fault is None else ("tool_arguments_invalid", fault)


def _on_unknown(tool: Mapping[str, Any]) -> str:
    """Who finds out what came of a call of which nobody knows. One that may be repeated is not worth asking for."""
    if tool["effect"] != "once":
        return "error"
    said = tool["on_unknown"]
    return said if isinstance(said, str) else "reconcile"
