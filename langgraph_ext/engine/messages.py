"""Messages: how langchain-core's messages are stored, and what the engine reads off a model's answer (rules E14, E15).

Plain messages are what `message_to_dict` writes: `{"type", "data"}`. Everything here is pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

import orjson
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    RemoveMessage,
    ToolCall,
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
    "begun_messages",
    "fault_of",
    "input_messages",
    "is_broken_off",
    "is_truncated",
    "plain",
    "result_message",
    "revived",
    "said_of",
    "sendable",
    "steering_message",
    "storable",
    "summary_message",
    "text_message",
    "tokens_of",
    "told_outcome",
    "with_note",
    "without_objects",
]

_TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"}
)
"""Values of the metadata below, in lower case, that say that the answer was cut off."""

_FINISH = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
"""Where providers say why an answer ended."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""A tool's name that every provider takes."""


class Asked(NamedTuple):
    """One tool call of a decision, as the model wrote it."""

    call_id: str
    name: str
    args: dict[str, Any] | None
    """None: they are not the JSON of an object, or of one that cannot be stored."""


def plain(message: BaseMessage) -> dict[str, Any]:
    """A message as it is stored."""
    return message_to_dict(message)


def revived(messages: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """Stored messages as langchain-core's."""
    return messages_from_dict(list(map(dict, messages)))


def tokens_of(message: Mapping[str, Any]) -> int:
    """How many tokens a message is about: a token for four characters, as langchain-core counts."""
    return count_tokens_approximately(revived([message]))


def said_of(message: BaseMessage | Mapping[str, Any]) -> str | None:
    """What a message says, but for its id, as a digest; None if that is no JSON, and the same as nothing.

    Args:
        message: langchain-core's, or plain.
    """
    if isinstance(message, BaseMessage):
        asked = message.tool_calls if isinstance(message, AIMessage) else None
        kind, content = message.type, message.content
    else:
        kind, content, asked = message["type"], message["data"]["content"], message["data"].get("tool_calls")
    calls = [(each["id"], each["name"], each["args"]) for each in asked] if asked else []
    try:
        return sha256(orjson.dumps((kind, content, calls), option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    except TypeError:
        return None


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
    given = value
    if isinstance(value, Mapping) and "messages" in value:
        if more := sorted(map(str, value.keys() - {"messages"})):
            raise InvalidArgument(
                f'the input of a ReAct agent is {{"messages": […]}} and nothing else; take {", ".join(more)} out. A '
                "conversation goes on by giving all of its messages"
            )
        given = value["messages"]
    if isinstance(given, str) and given:
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise InvalidArgument(
            'the input of a ReAct agent is a text, a list of messages, or {"messages": […]}, and not empty'
        )
    try:
        return [plain(_message(each)) for each in given]
    except Exception as error:
        message = f"the input of a ReAct agent holds what is no message: {error}"
        raise InvalidArgument(message) from error


def begun_messages(value: Any) -> list[dict[str, Any]]:
    """As `input_messages`, of an input that is on record: of one that goes on with a history, what it adds to that."""
    if isinstance(value, Mapping) and "continues" in value:
        return input_messages(value["messages"]) if value["messages"] else []
    return input_messages(value)


def without_objects(value: Any) -> Any:
    """An input with langchain-core's messages as plain ones: itself, in a list, or under `messages`."""
    if isinstance(value, BaseMessage):
        return [plain(value)]
    if isinstance(value, Mapping) and set(value) == {"messages"}:
        return {"messages": without_objects(value["messages"])}
    if isinstance(value, list | tuple):
        return [plain(each) if isinstance(each, BaseMessage) else each for each in value]
    return value


def _message(given: Any) -> BaseMessage:
    is_plain = isinstance(given, Mapping) and set(given) == {"type", "data"}
    message = revived([given])[0] if is_plain else convert_to_messages([given])[0]
    if isinstance(message, RemoveMessage):
        raise ValueError("a history only grows: nothing is removed from it")
    return message


def steering_message(value: Any) -> dict[str, Any]:
    """What somebody has told a running agent, as the user's message; whatever it is, the model is told of it."""
    if isinstance(value, BaseMessage) or (isinstance(value, Mapping) and {"role", "content"} <= set(value)):
        try:
            message = plain(_message(value if isinstance(value, BaseMessage) else dict(value)))
            canonical.encode_plain(message, where="message")
            tokens_of(message)
        except Exception:  # noqa: BLE001 - langchain-core raises errors of many kinds
            value = repr(value) if isinstance(value, BaseMessage) else value
        else:
            return message
    text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
    return text_message(text.encode(errors="replace").decode())


def answer_of(pieces: Sequence[AIMessage], operation_id: str) -> AIMessage:
    """A model's answer from its pieces, with an id of its own for every tool call (rule A9).

    Arguments count only if they are whole JSON: langchain-core completes what breaks off.
    """
    chunks = [each for each in pieces if isinstance(each, AIMessageChunk)]
    if not chunks:  # a model that does not stream
        answer = pieces[0].model_copy(deep=True)
        lost = [call for call in answer.tool_calls if not _is_storable(call["args"])]
        answer.tool_calls = [call for call in answer.tool_calls if call not in lost]
        answer.invalid_tool_calls += [_invalid(call["name"], call["id"], json.dumps(call["args"])) for call in lost]
        return with_call_ids(answer, operation_id)
    whole = add_ai_message_chunks(chunks[0], *chunks[1:]) if len(chunks) > 1 else chunks[0]
    fields = whole.model_dump(exclude={"type", "tool_call_chunks", "chunk_position"})
    if whole.tool_call_chunks:
        fields["tool_calls"], fields["invalid_tool_calls"] = [], []
        for piece in whole.tool_call_chunks:
            name, call_id, args = piece["name"], piece["id"], _arguments(piece["args"])
            if args is None or not name:
                fields["invalid_tool_calls"].append(_invalid(name, call_id, piece["args"]))
            else:
                fields["tool_calls"].append(ToolCall(name=name, args=args, id=call_id, type="tool_call"))
    return with_call_ids(AIMessage(**fields), operation_id)


def with_call_ids(answer: AIMessage, operation_id: str) -> AIMessage:
    """The same answer, in which every tool call has an id that no other one has."""
    calls = [*answer.tool_calls, *answer.invalid_tool_calls]
    given = {call["id"] for call in calls}
    made = (_call_id(operation_id, number) for number in count())
    seen: set[str | None] = set()
    for call in calls:
        if not call["id"] or call["id"] in seen:
            call["id"] = next(each for each in made if each not in given)
        seen.add(call["id"])
    return answer


def _call_id(operation_id: str, number: int) -> str:
    """One that every provider takes, whatever ids look like here: OpenAI's are at most 40 characters."""
    return "call_" + canonical.digest(f"{operation_id}:{number}".encode()).removeprefix("sha256:")[:24]


def _arguments(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_storable(found) else None


def _is_storable(args: dict[str, Any]) -> bool:
    """Whether they can be: Python reads NaN, halves of characters, and longer integers than there are here."""
    try:
        canonical.encode(args)
    except TypeError:
        return False
    return True


def _invalid(name: str | None, call_id: str | None, args: str | None) -> InvalidToolCall:
    error = "not the JSON of an object"
    return InvalidToolCall(name=name, args=args, id=call_id, error=error, type="invalid_tool_call")


def storable(answer: AIMessage) -> AIMessage:
    """An answer as JSON can hold it: of its metadata what cannot be is named, of its text half characters are replaced.

    Raises:
        TypeError: Something else of it cannot be.
    """
    try:
        canonical.encode_plain(plain(answer), where="answer")
        return answer
    except TypeError:
        metadata = {name: _named(getattr(answer, name)) for name in ("response_metadata", "additional_kwargs")}
    content = answer.content.encode(errors="replace").decode() if isinstance(answer.content, str) else answer.content
    found = answer.model_copy(update={"content": content, **metadata})
    canonical.encode_plain(plain(found), where="answer")
    return found


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name; what JSON cannot hold is named instead."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        try:
            canonical.encode_plain({name: value})
            found[name] = value
        except TypeError:
            found[name] = {"not_stored": type(value).__name__}
    return found


def fault_of(answer: AIMessage) -> str | None:
    """Why an answer that is complete is none (rule E14); None if it is one."""
    if any(not call["name"] for call in answer.invalid_tool_calls):
        return "it holds fragments that belong to no tool call"
    if not answer.tool_calls and not answer.invalid_tool_calls and not answer_text(answer):
        said = next((told for name in _FINISH if isinstance(told := answer.response_metadata.get(name), str)), None)
        return "it holds neither text nor tool calls" + (f" ({said})" if said else "")
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


def sendable(messages: Iterable[BaseMessage], tools: Collection[str]) -> list[BaseMessage]:
    """A history as every provider takes it back, whatever its model has written.

    A call that could not be read is sent as one all the same, with what was written as its argument: many integrations
    leave it out, and then its result belongs to nothing; others send what servers cannot read either. A tool that there
    is not is called what a tool may be called.

    Args:
        messages: The history.
        tools: Names of the tools that are offered; those are sent as they are.
    """
    return [_sendable(each, tools) for each in messages]


def _sendable(message: BaseMessage, tools: Collection[str]) -> BaseMessage:
    if isinstance(message, ToolMessage) and message.name is not None:
        name = _tool_name(message.name, tools)
        return message if name == message.name else message.model_copy(update={"name": name})
    if not isinstance(message, AIMessage):
        return message
    if not message.invalid_tool_calls and all(call["name"] in tools for call in message.tool_calls):
        return message
    calls = [call | {"name": _tool_name(call["name"], tools)} for call in message.tool_calls]
    for call in message.invalid_tool_calls:
        name, args = _tool_name(call["name"] or "", tools), {"not_json": call["args"] or ""}
        calls.append(ToolCall(name=name, args=args, id=call["id"], type="tool_call"))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def _tool_name(name: str, tools: Collection[str]) -> str:
    if name in tools or _TOOL_NAME.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def result_message(call_id: str, name: str, outcome: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a model is told of a tool call: the tool's message, or what went wrong."""
    if outcome is not None and "value" in outcome:
        message: dict[str, Any] = outcome["value"]["message"]
        message["data"]["tool_call_id"] = call_id  # its own, whatever a hook has made of it
        return message
    error = {"code": "cancelled", "message": "it has not begun"} if outcome is None else outcome["error"]
    text = f"{error['code']}: {error['message']}"
    return plain(ToolMessage(text, tool_call_id=call_id, name=name, status="error"))


def with_note(message: dict[str, Any], note: str) -> dict[str, Any]:
    """A tool's message with a text before what it says."""
    content = message["data"]["content"]
    text = f"{note}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": note}, *content]
    return {**message, "data": {**message["data"], "content": text}}


def told_outcome(call_id: str, name: str, result: Any) -> dict[str, Any]:
    """What somebody else says that a tool call came to: its result, as the tool would have returned it."""
    text = result if isinstance(result, str) else canonical.encode(result, where="result").decode()
    return {"value": {"message": plain(ToolMessage(text, tool_call_id=call_id, name=name))}}
