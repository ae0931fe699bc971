"""Messages: how langchain-core's messages are stored, and what the engine reads off a model's answer (rules E14, E15).

Plain messages are what `message_to_dict` writes: `{"type", "data"}`. Everything here is pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument

__all__ = [
    "Asked",
    "answer_of",
    "answer_text",
    "asked_for",
    "fault_of",
    "input_messages",
    "is_broken_off",
    "is_truncated",
    "plain",
    "result_message",
    "revived",
    "steering_message",
    "summary_message",
    "text_message",
    "tokens_of",
    "told_outcome",
]

_TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"}
)
"""Values of the metadata below, in lower case, that say that the answer was cut off."""

_FINISH = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
"""Where providers say why an answer ended."""


class Asked(NamedTuple):
    """One tool call of a decision, as the model wrote it."""

    call_id: str
    name: str
    args: dict[str, Any] | None
    """None: they are not the JSON of an object."""


def plain(message: BaseMessage) -> dict[str, Any]:
    """A message as it is stored."""
    return message_to_dict(message)


def revived(messages: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """Stored messages as langchain-core's."""
    return messages_from_dict(list(map(dict, messages)))


def tokens_of(message: Mapping[str, Any]) -> int:
    """How many tokens a message is about: a token for four characters, as langchain-core counts."""
    return count_tokens_approximately(revived([message]))


def text_message(text: str) -> dict[str, Any]:
    """A text as the user's message."""
    return plain(HumanMessage(text))


def summary_message(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a model has written as a summary, as the message that stands for what it covers."""
    [message] = revived([answer])
    return text_message(f"Summary of the conversation so far:\n\n{message.text}")


def input_messages(value: Any) -> list[dict[str, Any]]:
    """An agent run's input as messages: text, messages, or `{"messages": […]}`; plain, or as langchain-core takes them.

    Raises:
        InvalidArgument: It is nothing of that, or empty.
    """
    given = value.get("messages") if isinstance(value, Mapping) and set(value) == {"messages"} else value
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise InvalidArgument(
            'the input of a ReAct agent is a text, a list of messages, or {"messages": […]}, and not empty'
        )
    try:
        return [plain(_message(each)) for each in given]
    except Exception as error:
        message = f"the input of a ReAct agent holds what is no message: {type(error).__name__}"
        raise InvalidArgument(message) from error


def _message(given: Any) -> BaseMessage:
    if isinstance(given, Mapping) and set(given) == {"type", "data"}:
        return revived([given])[0]
    return convert_to_messages([given])[0]


def steering_message(value: Any) -> dict[str, Any]:
    """What somebody has told a running agent, as the user's message."""
    if isinstance(value, Mapping) and {"role", "content"} <= set(value):
        try:
            return plain(_message(dict(value)))
        except (ValueError, TypeError, NotImplementedError):
            pass  # whatever it is, the model is told of it
    return text_message(value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False))


def answer_of(pieces: Sequence[AIMessage], operation_id: str) -> AIMessage:
    """A model's answer from its pieces, with an id of its own for every tool call (rule A9).

    Arguments count only if they are whole JSON: langchain-core completes what breaks off.
    """
    chunks = [each for each in pieces if isinstance(each, AIMessageChunk)]
    if not chunks:  # a model that does not stream
        return with_call_ids(pieces[0].model_copy(deep=True), operation_id)
    whole = add_ai_message_chunks(chunks[0], *chunks[1:]) if len(chunks) > 1 else chunks[0]
    fields = whole.model_dump(exclude={"type", "tool_call_chunks", "chunk_position"})
    if whole.tool_call_chunks:
        fields["tool_calls"], fields["invalid_tool_calls"] = [], []
        for piece in whole.tool_call_chunks:
            args = _arguments(piece["args"])
            call = {"name": piece["name"], "id": piece["id"]}
            if args is None or not piece["name"]:
                fields["invalid_tool_calls"].append(
                    {**call, "type": "invalid_tool_call", "args": piece["args"], "error": "not the JSON of an object"}
                )
            else:
                fields["tool_calls"].append({**call, "type": "tool_call", "args": args})
    return with_call_ids(AIMessage(**fields), operation_id)


def with_call_ids(answer: AIMessage, operation_id: str) -> AIMessage:
    """The same answer, in which every tool call has an id that no other one has."""
    seen: set[str] = set()
    calls = [*answer.tool_calls, *answer.invalid_tool_calls]
    for number, call in enumerate(calls):
        if not call["id"] or call["id"] in seen:
            call["id"] = f"call_{operation_id}_{number}"
        seen.add(str(call["id"]))
    return answer


def _arguments(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def fault_of(answer: AIMessage) -> str | None:
    """Why an answer that is complete is none (rule E14); None if it is one."""
    if any(not call["name"] for call in answer.invalid_tool_calls):
        return "it holds fragments that belong to no tool call"
    if not answer.tool_calls and not answer.invalid_tool_calls and not answer_text(answer):
        return "it holds neither text nor tool calls"
    return None


def answer_text(answer: AIMessage) -> str:
    """The text of an answer, without reasoning and other blocks."""
    return str(answer.text)


def is_truncated(answer: AIMessage) -> bool:
    """Whether the model was cut off (rule A9)."""
    said = (answer.response_metadata.get(name) for name in _FINISH)
    return any(isinstance(each, str) and each.lower() in _TRUNCATED for each in said)


def is_broken_off(answer: AIMessage) -> bool:
    """Whether a stream has ended before its answer: a provider's, which says with every answer why that has ended."""
    told = answer.response_metadata
    return "model_provider" in told and not any(told.get(name) for name in _FINISH)


def asked_for(answer: AIMessage) -> list[Asked]:
    """The tool calls of an answer: those that can be read, then the others, each in their order."""
    calls = [Asked(str(each["id"]), each["name"], dict(each["args"])) for each in answer.tool_calls]
    return calls + [Asked(str(each["id"]), str(each["name"]), None) for each in answer.invalid_tool_calls]


def result_message(call_id: str, name: str, outcome: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a model is told of a tool call: the tool's message, or what went wrong."""
    if outcome is not None and "value" in outcome:
        message: dict[str, Any] = outcome["value"]["message"]
        message["data"]["tool_call_id"] = call_id  # its own, whatever a hook has made of it
        return message
    error = {"code": "cancelled", "message": "it has not begun"} if outcome is None else outcome["error"]
    text = f"{error['code']}: {error['message']}"
    return plain(ToolMessage(text, tool_call_id=call_id, name=name, status="error"))


def told_outcome(call_id: str, name: str, result: Any) -> dict[str, Any]:
    """What somebody else says that a tool call came to: its result, as the tool would have returned it."""
    text = result if isinstance(result, str) else canonical.encode(result, where="result").decode()
    return {"value": {"message": plain(ToolMessage(text, tool_call_id=call_id, name=name))}}
