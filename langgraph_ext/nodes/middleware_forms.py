"""Forms of middleware: what LangChain's middlewares are given and return, in whichever form they are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langgraph.runtime import Runtime, get_runtime

from langgraph_ext.engine.in_threads import in_thread

__all__ = ["Handler", "is_own", "layer", "only", "overrides", "parted", "runtime_here", "whole"]

Handler = Callable[[Any], Awaitable[Any]]
"""From a `ModelRequest` to a `ModelResponse`."""


def is_own(middleware: object, method: str) -> bool:
    """Whether a middleware has a method of its own, in either form."""
    return overrides(middleware, method) or overrides(middleware, "a" + method)


def overrides(middleware: object, method: str) -> bool:
    """Whether a middleware has one form of a method of its own."""
    from langchain.agents.middleware import AgentMiddleware  # noqa: PLC0415 - an optional extra

    return getattr(type(middleware), method) is not getattr(AgentMiddleware, method)


def runtime_here() -> Runtime[Any]:
    """LangGraph's, of the node that runs here; an empty one elsewhere."""
    with suppress(RuntimeError, KeyError):
        return get_runtime()
    return Runtime()


def parted(messages: Sequence[BaseMessage]) -> tuple[SystemMessage | None, list[BaseMessage]]:
    """A system prompt, if there is one, and what is behind it: as LangChain shows them to middlewares."""
    if messages and isinstance(messages[0], SystemMessage):
        return messages[0], list(messages[1:])
    return None, list(messages)


def whole(system: SystemMessage | None, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What `parted` has parted."""
    return [*messages] if system is None else [system, *messages]


def layer(middleware: Any, inner: Handler, from_thread: Callable[[Any], Any]) -> Handler:
    """One middleware around what is inside it."""
    if overrides(middleware, "awrap_model_call"):

        async def awaited(request: Any) -> Any:
            return _response(middleware, await middleware.awrap_model_call(request, inner))

        return awaited

    async def called(request: Any) -> Any:
        result = await in_thread(middleware.wrap_model_call, request, lambda asked: from_thread(inner(asked)))
        return _response(middleware, result)

    return called


def _response(middleware: Any, result: Any) -> Any:
    """What a middleware has returned, as a `ModelResponse`."""
    from langchain.agents.middleware import ExtendedModelResponse, ModelResponse  # noqa: PLC0415 - an optional extra

    if isinstance(result, AIMessage):
        return ModelResponse(result=[result])
    if isinstance(result, ExtendedModelResponse):
        if result.command is not None:
            raise TypeError(f"middleware {middleware.name!r} returns a Command; an agent node has no state to update")
        result = result.model_response
    if not isinstance(result, ModelResponse):
        raise TypeError(f"middleware {middleware.name!r} returns a {type(result).__name__}, and no model response")
    return result


def only(response: Any) -> AIMessage:
    """The answer that a `ModelResponse` holds."""
    if len(response.result) != 1 or not isinstance(response.result[0], AIMessage):
        raise TypeError("a middleware's response is one AIMessage")
    return response.result[0]
