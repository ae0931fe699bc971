"""Answers as langchain-core has them: chunks of a stream, or one message, made of the same step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk

from langgraph_ext.testing.call_log import ScriptedCall
from langgraph_ext.testing.steps import AUTOMATIC, Answer, ToolCallPart, Usage

__all__ = ["Wording", "tokens_of"]

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """An answer to one call, in a model's words."""

    answer: Answer
    call: ScriptedCall
    model: str
    usage: Any
    """What the model reports where the step says nothing; `AUTOMATIC` is counted."""
    piece: int
    """Characters of a chunk."""

    def chunks(self) -> Iterator[AIMessageChunk]:
        """All but the last: pieces of text, then of each call its name and id, and pieces of its arguments."""
        for part in self._parts():
            if isinstance(part, str):
                yield from (AIMessageChunk(content=piece, id=self.id) for piece in self._pieces(part))
        for index, part in enumerate(self._tool_calls()):
            yield self._called(index, part.name, "", cast("str | None", part.id))
            yield from (self._called(index, None, piece, None) for piece in self._pieces(part.args))

    def last(self) -> AIMessageChunk:
        """How it has ended, and what it used."""
        return AIMessageChunk(content="", chunk_position="last", **self._ending())

    def message(self) -> AIMessage:
        """All of it. Arguments that are not JSON are no tool call here; of a stream langchain-core repairs some."""
        text = "".join(part for part in self._parts() if isinstance(part, str))
        sound, broken = [], []
        for part in self._tool_calls():
            call_id = cast("str | None", part.id)
            args, error = _parsed(part.args)
            if error is None:
                sound.append(tool_call(name=part.name, args=args, id=call_id))
            else:
                broken.append(invalid_tool_call(name=part.name, args=part.args, id=call_id, error=error))
        return AIMessage(content=text, tool_calls=sound, invalid_tool_calls=broken, **self._ending())

    @property
    def id(self) -> str:
        """Of the message, and so of each chunk; another one for each call, as a provider's are."""
        return self.answer.message_id or f"scripted-{self.call.call_id}"

    def _ending(self) -> dict[str, Any]:
        finished = self.answer.finish_reason or ("tool_calls" if self._tool_calls() else "stop")
        refusal = self.answer.refusal
        return {
            "id": self.id,
            "usage_metadata": self._usage(),
            "response_metadata": {"finish_reason": finished, "model_name": self.model},
            "additional_kwargs": {} if refusal is None else {"refusal": refusal},
        }

    def _called(self, index: int, name: str | None, args: str, call_id: str | None) -> AIMessageChunk:
        chunk = tool_call_chunk(name=name, args=args, id=call_id, index=index)
        return AIMessageChunk(content="", id=self.id, tool_call_chunks=[chunk])

    def _pieces(self, text: str) -> list[str]:
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]

    def _parts(self) -> Sequence[str | ToolCallPart]:
        return self.answer.parts

    def _tool_calls(self) -> list[ToolCallPart]:
        """With their ids: those that nobody named follow from the place in the script."""
        named = "-".join(word for word in ("call", self.call.name, _word(self.call.place)) if word)
        found = [part for part in self._parts() if isinstance(part, ToolCallPart)]
        return [
            ToolCallPart(part.name, part.args, f"{named}-{n}" if part.id is AUTOMATIC else part.id)
            for n, part in enumerate(found)
        ]

    def _usage(self) -> UsageMetadata | None:
        given: Usage | Any = self.usage if self.answer.usage is AUTOMATIC else self.answer.usage
        if given is AUTOMATIC:
            said = "".join(part if isinstance(part, str) else part.name + part.args for part in self._parts())
            shown = json.dumps([each["content"] for each in self.call.messages], default=repr)
            given = (tokens_of(shown), tokens_of(said))
        if isinstance(given, tuple):
            counted = {"input_tokens": given[0], "output_tokens": given[1], "total_tokens": sum(given)}
            return cast("UsageMetadata", counted)
        return None if given is None else cast("UsageMetadata", dict(given))


def tokens_of(text: str) -> int:
    """A token for four characters, rounded up: the same everywhere, without a tokenizer."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _parsed(args: str) -> tuple[dict[str, Any], str | None]:
    """Arguments, and why they are none."""
    try:
        found = json.loads(args or "{}")
    except ValueError as error:
        return {}, str(error)
    return (found, None) if isinstance(found, dict) else ({}, "the arguments are no object")


def _word(place: int | str | None) -> str:
    """A place, of the characters that providers allow in an id."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(place))
