"""Calling tools: one physical call of a langchain-core tool, with what is injected into it (rules A9 to A11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from langgraph_ext.engine.argument_checks import without_injected
from langgraph_ext.engine.in_threads import in_thread
from langgraph_ext.engine.in_time import in_time
from langgraph_ext.engine.messages import plain
from langgraph_ext.engine.program import Failed, NotKnown
from langgraph_ext.engine.rows import encoded
from langgraph_ext.engine.visiting import Take, Taken
from langgraph_ext.ledger.texts import message_of

__all__ = ["call_tool", "filled_in", "is_async"]


async def call_tool(
    tool: BaseTool,
    request: Mapping[str, Any],
    *,
    injected: Collection[str],
    given: Mapping[str, Any],
    keys: Collection[str],
    idempotency_key: str,
    policy: str,
    seconds: float | None,
    config: RunnableConfig,
    take: Take | None = None,
) -> dict[str, Any]:
    """Call a tool as a model has asked for it: `{"message"}`, plain, with what else the caller takes from it.

    Args:
        tool: The tool.
        request: `{"id", "args"}`.
        injected: Arguments that no model gives: what it gave for them is dropped.
        given: Those of them that the program's caller fills in.
        keys: Those of them that take the idempotency key.
        idempotency_key: The same at every call of this operation.
        policy: Of the operation.
        seconds: How long it may take; None: as long as it likes.
        config: Of the call.
        take: Makes a message of what else a tool may return.

    Raises:
        NotKnown: It took too long, and may have been done, or be done yet: a sync tool goes on in its thread. One that
            takes a key is called again with it.
        Failed: It took too long, and is one that may be repeated (`deadline_exceeded`); or it has answered with what
            is no message (`tool_result_invalid`), such as a `Command`.
    """
    args = filled_in(request["args"], injected, given, keys, idempotency_key)
    call = {"type": "tool_call", "name": tool.name, "args": args, "id": request["id"]}
    invoked = tool.ainvoke(call, config) if is_async(tool) else in_thread(tool.invoke, call, config)

    def late() -> Exception:
        told = f"tool {tool.name!r} took longer than {seconds:g} s; allow it more, or let it do less"
        if policy == "repeatable" and is_async(tool):
            return Failed("deadline_exceeded", told)
        return NotKnown(told, goes_on=not is_async(tool), again=policy == "keyed")

    answer = await in_time(invoked, seconds, late)
    if isinstance(answer, ToolMessage):
        return {"message": _stored(answer)}
    taken = None if take is None else _taken(take, answer, request["id"], tool.name)
    if taken is None:  # it has run: the model is told so
        kind = type(answer).__name__
        raise Failed("tool_result_invalid", f"the call was made, and its result is a {kind}, which is no message")
    more = {} if taken.command is None else {"command": taken.command, "ends": taken.ends}
    return {"message": _stored(taken.message), **more}


def filled_in(
    args: Mapping[str, Any], injected: Collection[str], given: Mapping[str, Any], keys: Collection[str], key: str
) -> dict[str, Any]:
    """What a tool is called with: what was asked for, without what nobody may ask for, and what the program gives."""
    return {**without_injected(args, injected), **given, **dict.fromkeys(keys, key)}


def _taken(take: Take, answer: Any, call_id: str, tool: str) -> Taken | None:
    try:
        return take(answer, call_id, tool)
    except Exception as error:  # noqa: BLE001 - of whatever stores it; the call was made
        told = f"the call was made, and its result cannot be stored: {message_of(error)}"
        raise Failed("tool_result_invalid", told) from None


def is_async(tool: BaseTool) -> bool:
    """Whether it is ended by being cancelled; what langchain-core runs in a thread is not."""
    if hasattr(tool, "coroutine"):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _stored(answer: ToolMessage) -> dict[str, Any]:
    """The message as it is stored. An artifact that JSON cannot hold is named instead: the call was made.

    Raises:
        Failed: JSON cannot hold the rest of it (`tool_result_invalid`).
    """
    message = plain(answer)
    try:
        encoded(message["data"].get("artifact"), "artifact")
    except TypeError:
        message["data"]["artifact"] = {"not_stored": type(answer.artifact).__name__}
    try:
        encoded(message, "result")
    except TypeError as error:
        told = f"the call was made, and its result cannot be stored: {message_of(error)}"
        raise Failed("tool_result_invalid", told) from None
    return message
