"""Approvals: the tool calls of a decision that a person sees before any of them is made, and what they decide (A6).

What is shown and what is answered have LangChain's shapes, so that what renders its human-in-the-loop requests renders
these: `{"action_requests": [{"name", "args", "description"}], "review_configs": [{"action_name",
"allowed_decisions"}]}`, and `{"decisions": [{"type": "approve" | "edit" | "reject" | "respond", …}]}`, one for each
action in their order. Everything here is pure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import ToolCall, ToolMessage

from langgraph_ext import canonical
from langgraph_ext.engine.argument_checks import argument_fault
from langgraph_ext.engine.batches import Member
from langgraph_ext.engine.messages import plain, result_message
from langgraph_ext.engine.moves import error_outcome
from langgraph_ext.engine.runtimes import Runtime
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.texts import message_of

__all__ = [
    "Needed",
    "ToolCallRequest",
    "asked_about",
    "call_of",
    "checked_decisions",
    "decided",
    "question_about",
]

Members = Sequence[Mapping[str, Any]]
"""Of a batch, as they are frozen (tool_calls.py)."""


class ToolCallRequest(NamedTuple):
    """What `Approval.when` is given."""

    tool_call: ToolCall
    """`{"name", "args", "id", "type"}`."""


class Needed(NamedTuple):
    """What a person decides before each call of a tool."""

    approval: Mapping[str, Any]
    """As a release's descriptor has it (`told_approval`)."""
    when: Callable[..., Any] | None
    """Whether a call needs it."""
    text: Callable[..., Any] | None
    """Writes what the person is shown."""


def asked_about(members: Members, runtime: Runtime) -> dict[str, Any] | None:
    """What a person is shown of a decision's calls; None if none of them needs that.

    Rejected calls are made by nobody, and need nothing.
    """
    live = runtime.live
    assert live is not None, "an agent that is driven has what lives of its spec"
    needed = {
        name: Needed(approval, live.approval_when.get(name), live.approval_text.get(name))
        for name, approval in runtime.spec["interrupt_on"].items()
    }
    members = [each for each in members if "result" not in each and each["name"] in needed]
    calls = [call_of(each["name"], each["call_id"], each["arguments"]["args"]) for each in members]
    return question_about(calls, needed, who="The agent")


def question_about(calls: Sequence[ToolCall], needed: Mapping[str, Needed], *, who: str) -> dict[str, Any] | None:
    """What a person is shown of calls; None if none of them needs that. A `when` that raises wants to be asked about.

    Args:
        calls: The calls; functions of users are given them.
        needed: By tool name.
        who: Wants to make them; the beginning of a sentence.
    """
    asked = [call for call in calls if _is_needed(call, needed[call["name"]].when)]
    if not asked:
        return None
    configs = [{"action_name": call["name"], **_allowed(needed[call["name"]].approval)} for call in asked]
    requests = [
        {"name": call["name"], "args": call["args"], "description": _described(call, needed[call["name"]], who)}
        for call in asked
    ]
    return {
        "action_requests": requests,
        "review_configs": configs,
        "tool_call_ids": [call["id"] for call in asked],
    }


def call_of(name: str, call_id: str, args: Any) -> ToolCall:
    """A call as functions of users are given it: a copy."""
    return ToolCall(name=name, args=canonical.decode(canonical.encode_plain(args)), id=call_id, type="tool_call")


def _is_needed(call: ToolCall, when: Callable[..., Any] | None) -> bool:
    if when is None:
        return True
    try:
        return bool(when(ToolCallRequest(call)))
    except Exception:  # noqa: BLE001 - a user's function; whom it cannot tell for is asked about
        return True


def _allowed(approval: Mapping[str, Any]) -> dict[str, Any]:
    return {"allowed_decisions": list(approval["allowed_decisions"])}


def _described(call: ToolCall, needed: Needed, who: str) -> str:
    args = canonical.encode_plain(call["args"], where="args").decode()
    shown = f"{who} wants to call {call['name']} with {args}. It is made only if you approve."
    if needed.text is not None:
        try:
            return str(needed.text(call, *({}, None)[: _extra(needed.text)]))
        except Exception as error:  # noqa: BLE001 - a user's function; what it is about is shown all the same
            return f"{shown}\n(its description failed: {type(error).__name__}: {message_of(error)})"
    said = needed.approval["description"]
    return said if isinstance(said, str) else shown


def _extra(describe: Callable[..., Any]) -> int:
    """How many arguments it takes behind the call: LangChain's take the state and the runtime; here there are none."""
    try:
        inspect.signature(describe).bind(None)
    except TypeError:
        return 2
    return 0


def checked_decisions(
    payload: Mapping[str, Any], answer: Any, fault_of: Callable[[str, dict[str, Any]], str | None]
) -> list[dict[str, Any]]:
    """The decisions in an answer, as they are stored: one for each action, in their order.

    Args:
        payload: What was asked.
        answer: What a person said.
        fault_of: What is wrong with arguments that a tool is given instead, by its name; None if nothing is.

    Raises:
        InvalidArgument: It decides something else, or not everything (`answer_invalid`).
    """
    actions, configs = payload["action_requests"], payload["review_configs"]
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list | tuple):
        raise _invalid('answer with {"decisions": [{"type": "approve"}, …]}, one for each action')
    if len(decisions) != len(actions):
        raise _invalid(f"{len(actions)} actions were asked about, and {len(decisions)} decisions given; give one each")
    found = []
    for number, (action, config, given) in enumerate(zip(actions, configs, decisions, strict=True)):
        decision, fault = _decision(action, config["allowed_decisions"], given, fault_of)
        if fault is not None:
            raise _invalid(f"decision {number + 1}, on {action['name']!r}: {fault}")
        found.append(decision)
    return found


def _decision(
    action: Mapping[str, Any], allowed: Sequence[str], given: Any, fault_of: Callable[..., str | None]
) -> tuple[dict[str, Any], str | None]:
    """One decision without what does not belong to it, and what is wrong with it."""
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind not in allowed:
        return {}, f'its "type" is {kind!r}; it must be one of {", ".join(allowed)}'
    message = given.get("message")
    if message is not None and not isinstance(message, str):
        return {}, '"message" is no text'
    if kind == "respond" and message is None:
        return {}, 'a response has the "message" that the model is told'
    told = {} if message is None or kind not in ("reject", "respond") else {"message": _text(message)}
    if kind != "edit":
        return {"type": kind, **told}, None
    edited = given.get("edited_action")
    if not isinstance(edited, Mapping) or edited.get("name") != action["name"]:
        return {}, f'an edit has an "edited_action" with the name {action["name"]!r}, and other args'
    args = edited.get("args")
    fault = "its args are no object" if not isinstance(args, dict) else fault_of(action["name"], args)
    return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}, fault


def _text(message: str) -> str:
    return message.encode(errors="replace").decode()


def _invalid(why: str) -> InvalidArgument:
    return InvalidArgument(f"nothing was decided: {why}", code="answer_invalid")


def decided(
    members: Sequence[Member], payload: Mapping[str, Any], answer: Mapping[str, Any], runtime: Runtime
) -> list[Any]:
    """What becomes of the members that were asked about, as `DecideBatch` takes it.

    Args:
        members: All of the batch.
        payload: What was asked.
        answer: What was decided.
        runtime: What the behaviour may look at.
    """
    decisions = dict(zip(payload["tool_call_ids"], answer["decisions"], strict=True))
    return [
        {"ordinal": each.ordinal, "decision": decisions[each.call_id]}
        | _effect_of(each, decisions[each.call_id], runtime)
        for each in members
        if each.call_id in decisions
    ]


def _effect_of(member: Member, decision: Mapping[str, Any], runtime: Runtime) -> dict[str, Any]:
    call_id, name, message = member.call_id, member.name, decision.get("message")
    if decision["type"] == "approve":
        return {}
    if decision["type"] == "edit":
        args = decision["edited_action"]["args"]
        assert runtime.live is not None, "as above"
        fault = argument_fault(runtime.live.tools[name], args, runtime.spec["tools"][name]["injected"])
        if fault is not None:  # what its schema could not tell whoever looked at the answer
            return {"result": result_message(call_id, name, error_outcome("tool_arguments_invalid", fault))}
        return {"arguments": {"id": call_id, "args": args}}
    if decision["type"] == "respond":
        return {"result": plain(ToolMessage(message, tool_call_id=call_id, name=name))}
    why = f": {message}" if message else ". Do not ask for it again unless you are told to."
    text = f"A person has rejected this call of {name}, and it was not made{why}"
    return {"result": plain(ToolMessage(text, tool_call_id=call_id, name=name, status="error"))}
