"""What the APIs of OpenAI and Anthropic say of the messages of a request: histories that break it are refused with 400.

Both functions take the messages as they stand in the body of a request, and return what is wrong with them, a sentence
each. What is checked is what a history of an agent can get wrong: who follows whom, which result belongs to which tool
call, and of what form their ids, names and arguments are. Images and other content are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["anthropic_faults", "openai_faults"]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_AUTHOR = re.compile(r"[^\s<|\\/>]{1,64}")
_LONGEST_ID = 40  # of a tool call, in chat completions
_TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]+")

Message = Mapping[str, Any]


def openai_faults(messages: Sequence[Message]) -> list[str]:
    """What is wrong with the `messages` of a request for chat completions.

    Arguments of tool calls are to be the JSON of an object: OpenAI takes back what its model wrote, but servers that
    speak its API (vLLM, llama.cpp, SGLang) parse them.
    """
    found = [] if messages else ["there is no message"]
    open_calls: list[str] = []
    for n, message in enumerate(messages):
        at = f"messages[{n}]"
        if message.get("role") == "tool":
            found += _openai_result(at, message, open_calls)
            continue
        found += _unanswered(at, open_calls)
        found += _openai_message(at, message)
        open_calls = [call.get("id") for call in message.get("tool_calls") or ()]
    return found + _unanswered("the end", open_calls)


def _unanswered(at: str, open_calls: Sequence[str]) -> list[str]:
    return [f"{at}: tool call {each!r} has no tool message before it" for each in open_calls]


def _openai_result(at: str, message: Message, open_calls: list[str]) -> Iterator[str]:
    if not _is_content(message.get("content")):
        yield f"{at}: content is neither text nor parts"
    call_id = message.get("tool_call_id")
    if call_id in open_calls:
        open_calls.remove(call_id)
    else:
        yield f"{at}: {call_id!r} is no tool call of the assistant message before it that has no tool message yet"


def _openai_message(at: str, message: Message) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ("developer", "system", "user", "assistant"):
        yield f"{at}: there is no role {role!r}"
    if "name" in message and not _AUTHOR.fullmatch(str(message["name"])):
        yield f"{at}: name {message['name']!r} is not of the form allowed"
    if "tool_calls" in message:
        yield from _openai_calls(at, role, message["tool_calls"])
    has_more = role == "assistant" and any(message.get(name) for name in ("tool_calls", "refusal", "audio"))
    if not _is_content(content) and not (content is None and has_more):
        yield f"{at}: content is neither text nor parts"


def _is_content(content: object) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and bool(content))


def _openai_calls(at: str, role: object, calls: Any) -> Iterator[str]:
    if role != "assistant" or not isinstance(calls, list) or not calls:
        yield f"{at}: tool_calls are a list of the assistant's, and not empty"
        return
    ids = [call.get("id") for call in calls]
    if len({*ids}) < len(ids):
        yield f"{at}: two tool calls have one id"
    for n, call in enumerate(calls):
        yield from (f"{at}.tool_calls[{n}]: {fault}" for fault in _openai_call(call))


def _openai_call(call: Message) -> Iterator[str]:
    call_id, function = call.get("id"), call.get("function") or {}
    if not isinstance(call_id, str) or not 0 < len(call_id) <= _LONGEST_ID:
        yield f"id {call_id!r} is no text of 1 to {_LONGEST_ID} characters"
    if call.get("type") != "function":
        yield f"type {call.get('type')!r} is not function"
    if not _TOOL_NAME.fullmatch(str(function.get("name"))):
        yield f"name {function.get('name')!r} is not of the form allowed"
    if not _is_object(function.get("arguments")):
        yield "arguments are not the JSON of an object, as text"


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments, parse_constant=_no_json), dict)
    except ValueError:
        return False


def _no_json(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def anthropic_faults(messages: Sequence[Message]) -> list[str]:
    """What is wrong with the `messages` of a request to the Messages API. The system prompt is none of them.

    Messages of one role in a row count as one.
    """
    turns = _turns(messages)
    found = [] if turns and turns[0][0] == "user" else ["the first message is not the user's"]
    used: set[str] = set()
    open_uses: list[str] = []
    for n, (role, blocks) in enumerate(turns):
        at, is_last = f"turn {n}", n == len(turns) - 1
        if role not in ("user", "assistant"):
            found.append(f"{at}: there is no role {role!r}")
        if not blocks and not (is_last and role == "assistant"):
            found.append(f"{at}: it has no content")
        found += [f"{at}: {fault}" for fault in _anthropic_texts(role, blocks, is_last)]
        found += [f"{at}: {fault}" for fault in _anthropic_results(role, blocks, open_uses)]
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        found += [f"{at}: {fault}" for use in uses for fault in _anthropic_use(role, use, used)]
        open_uses = [use.get("id", "") for use in uses]
    return found + [f"the end: tool use {each!r} has no result" for each in open_uses]


def _turns(messages: Sequence[Message]) -> list[tuple[object, list[Message]]]:
    turns: list[tuple[object, list[Message]]] = []
    for message in messages:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if turns and turns[-1][0] == message.get("role"):
            turns[-1][1].extend(blocks)
        else:
            turns.append((message.get("role"), blocks))
    return turns


def _anthropic_texts(role: object, blocks: Sequence[Message], is_last: bool) -> Iterator[str]:
    texts = [block.get("text") or "" for block in blocks if block.get("type") == "text"]
    if any(not text.strip() for text in texts):
        yield "a text is empty"
    if (
        is_last
        and role == "assistant"
        and blocks
        and blocks[-1].get("type") == "text"
        and texts[-1] != texts[-1].rstrip()
    ):
        yield "the last text of the assistant ends with white space"


def _anthropic_results(role: object, blocks: Sequence[Message], open_uses: Sequence[str]) -> Iterator[str]:
    """Results stand first in the user's turn, one for each tool use of the turn before."""
    places = [n for n, block in enumerate(blocks) if block.get("type") == "tool_result"]
    if places and role != "user":
        yield "results are the user's"
    if places != list(range(len(places))):
        yield "something stands before a result"
    answered = [blocks[n].get("tool_use_id") for n in places]
    yield from (f"tool use {each!r} has no result" for each in open_uses if each not in answered)
    yield from (f"{each!r} is no tool use of the turn before" for each in answered if each not in open_uses)
    if len({*answered}) < len(answered):
        yield "a tool use has two results"


def _anthropic_use(role: object, use: Message, used: set[str]) -> Iterator[str]:
    use_id = use.get("id", "")
    if role != "assistant":
        yield "tool uses are the assistant's"
    if not _TOOL_USE_ID.fullmatch(use_id):
        yield f"id {use_id!r} is not of the form allowed"
    if use_id in used:
        yield f"id {use_id!r} was used before"  # in the whole request
    used.add(use_id)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(use.get("name"))):
        yield f"name {use.get('name')!r} is not of the form allowed"
    if not isinstance(use.get("input"), Mapping):
        yield "the input is no object"
