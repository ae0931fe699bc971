"""Calling models: one physical call of a chat model, as a stream: one that has fallen silent is noticed (E23)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from types import MappingProxyType
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool

from langgraph_ext.engine.cancelled import is_told_to_stop
from langgraph_ext.engine.messages import answer_of, fault_of, is_broken_off, plain, sendable, storable, tokens_of
from langgraph_ext.engine.program import Failed
from langgraph_ext.engine.rows import encoded
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger.texts import cut, message_of

__all__ = ["call_model", "usage_of"]

_MOST_TOKENS = 2**40
"""Of one call: a number that is larger is no number of tokens."""

_MOST_CAUSES = 8
"""Of an error, that are gone through to the first."""

_LONGEST_WAIT = 300.0
"""Of what a server may ask for, in seconds."""


async def call_model(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool | dict[str, Any]],
    operation_id: str,
    *,
    settings: Mapping[str, Any] = MappingProxyType({}),
    first_seconds: float | None,
    idle_seconds: float | None,
    config: RunnableConfig,
) -> AIMessage:
    """Ask a model, and wait for its whole answer.

    Args:
        model: The chat model.
        messages: What it is sent.
        tools: What it may call; a dict is one that its provider runs.
        operation_id: Names tool calls that the model has not named.
        settings: More arguments of this call.
        first_seconds: How long to wait for its first output; None: as long as it takes.
        idle_seconds: How long to wait for each later one.
        config: Of the call.

    Raises:
        LangGraphExtError: It was refused, and not made, by a callback of this package's.
        Failed: It has failed (`call_failed`, `deadline_exceeded`), or answered with what is no answer
            (`model_protocol_error`); with what had come until then.
    """
    bound: Runnable[Any, AIMessage] = model
    if tools or settings:
        bound = model.bind_tools(tools, **settings) if tools else model.bind(**settings)
    pieces: list[AIMessage] = []
    sent = sendable(messages, {tool.name for tool in tools if isinstance(tool, BaseTool)})
    limit, patience = asyncio.timeout(first_seconds), _Patience(first_seconds, idle_seconds)
    try:
        async with limit, aclosing(bound.astream(sent, config)) as stream:  # type: ignore[type-var]
            async for piece in stream:
                assert isinstance(piece, AIMessage), "a chat model answers with its messages"
                pieces.append(piece)
                if is_told_to_stop():  # and the client has not heard it, as asyncio.wait_for does not before 3.12
                    raise asyncio.CancelledError
                limit.reschedule(patience.until(piece))
    except TimeoutError as error:
        if not limit.expired():
            raise _failed(error, pieces, operation_id) from error
        raise Failed(
            "deadline_exceeded",
            f"the model {patience}; allow it more, or ask for less",
            partial=_partial(pieces, operation_id),
            retryable=True,  # as langchain-core says of a model's timeouts
        ) from error
    except LangGraphExtError:  # who counts calls refuses it
        raise
    except Exception as error:
        raise _failed(error, pieces, operation_id) from error
    return _answer(pieces, operation_id)


def _answer(pieces: Sequence[AIMessage], operation_id: str) -> AIMessage:
    """The answer that a model's output comes to.

    Raises:
        Failed: It is none.
    """
    if not pieces:
        raise Failed("model_protocol_error", "the model's answer is not one: it holds nothing")
    answer = answer_of(pieces, operation_id)
    if is_broken_off(answer):
        message = "the stream has ended without saying why the answer did: it has broken off"
        raise Failed("call_failed", message, partial=_partial(pieces, operation_id), retryable=True)
    fault = fault_of(answer)
    if fault is not None:
        message = f"the model's answer is not one: {fault}"
        raise Failed("model_protocol_error", message, partial=_partial(pieces, operation_id))
    try:
        return storable(answer)
    except TypeError as error:
        message = f"the model's answer cannot be stored: {message_of(error)}"
        raise Failed("model_protocol_error", message) from None


class _Patience:
    """How long a model is waited for: `first` until its first output, and `idle` from one output to the next.

    Some servers send a piece that says nothing when they have taken the request: then the longer of both holds.
    """

    def __init__(self, first: float | None, idle: float | None) -> None:
        self._first, self._idle = first, idle
        self._begun = asyncio.get_running_loop().time()
        self._has_said = False

    def until(self, piece: AIMessage) -> float | None:
        """When to give up, on the loop's clock, now that a piece has come; None: never."""
        self._has_said = self._has_said or _says(piece)
        if self._idle is None:
            return None
        idle = asyncio.get_running_loop().time() + self._idle
        if self._has_said:
            return idle
        return None if self._first is None else max(self._begun + self._first, idle)

    def __str__(self) -> str:
        """What has happened when it is at its end."""
        return f"said nothing more for {self._idle:g} s" if self._has_said else f"said nothing for {self._first:g} s"


def _says(piece: AIMessage) -> bool:
    return bool(piece.content or piece.additional_kwargs or piece.tool_calls or _fragments(piece))


def _failed(error: Exception, pieces: Sequence[AIMessage], operation_id: str) -> Failed:
    """What a model has raised, and whether that makes it worth another call.

    It does if it says so itself, or is a client's own timeout; and what says nothing of it, in the middle of an answer,
    is no fault of the request.
    """
    if isinstance(error, LangChainException):
        may_help = bool(getattr(error, "is_retryable", False))
    else:
        may_help = isinstance(error, TimeoutError) or bool(pieces)
    return Failed(
        "call_failed",
        cut(_told(error)),
        partial=_partial(pieces, operation_id),
        retryable=may_help,
        after_seconds=_retry_after(error),
    )


def _told(error: BaseException) -> str:
    """What an error says, and what it came of."""
    told, seen = f"{type(error).__name__}: {message_of(error)}", [error]
    while (cause := seen[-1].__cause__) is not None and cause not in seen and len(seen) < _MOST_CAUSES:
        seen.append(cause)
    return told if len(seen) == 1 else f"{told} (by {type(seen[-1]).__name__}: {message_of(seen[-1])})"


def _retry_after(error: Exception) -> float:
    """Seconds that a server has asked to wait for; 0 if it has not, or has named a date."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", 0.0))
    except (TypeError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_WAIT) if seconds == seconds else 0.0


def _partial(pieces: Sequence[AIMessage], operation_id: str) -> Any:
    """What had come, for the record: tool calls in the parts in which they came."""
    if not pieces:
        return None
    with suppress(Exception):  # pieces that do not fit together; that the call has failed is told all the same
        found = plain(answer_of(pieces, operation_id))
        found["data"]["tool_call_chunks"] = [dict(each) for piece in pieces for each in _fragments(piece)]
        encoded(found, "partial")
        return found
    return None


def _fragments(piece: AIMessage) -> Sequence[Any]:
    return getattr(piece, "tool_call_chunks", ())


def usage_of(request: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a call has used: as the model says, else estimated and marked so (rule A12).

    Args:
        request: What it was sent: its messages, plain, or how many tokens they are about.
        answer: What came back, plain.
    """
    said = answer["data"].get("usage_metadata")
    if said and all(0 <= said[name] < _MOST_TOKENS for name in ("input_tokens", "output_tokens")):
        return {"tokens_in": said["input_tokens"], "tokens_out": said["output_tokens"], "estimated": False}
    messages = request.get("messages")
    sent = request["tokens"] if messages is None else sum(map(tokens_of, messages))
    return {"tokens_in": sent, "tokens_out": tokens_of(answer), "estimated": True}
