"""Middleware as hooks: LangChain's `before_model` and `after_model`, asked as hooks of the engine are (rules E18, A14).

LangChain's write to a state, which the next call finds changed. Here a history stays as it came, and a hook changes
what one call sends. So `before_model` is asked of every beginning of the history that ends where a model was called,
one after the other, each with what it made of the one before: what it once took out stays out. It has to do the same
whenever it is asked the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.graph.message import add_messages

from langgraph_ext.engine.hooks import Deny, Replace
from langgraph_ext.engine.in_threads import in_thread
from langgraph_ext.engine.messages import plain, revived
from langgraph_ext.nodes.middleware_forms import overrides, parted, runtime_here, whole
from langgraph_ext.nodes.middleware_models import NoModels, heard_by

__all__ = ["AfterModel", "BeforeModel"]


class BeforeModel:
    """A middleware's `before_model` as a hook."""

    def __init__(self, middleware: Any) -> None:
        self._ask = _asked(middleware, "before_model")

    async def __call__(self, given: Any) -> Replace | Deny | None:
        """As a hook of the engine, of a request."""
        system, history = parted(revived(given["messages"]))
        same = [plain(each) for each in whole(system, history)]
        named = _with_ids(history)
        messages: list[BaseMessage] = []
        done = 0
        for upto in _calls_in(history):
            messages = [*messages, *history[done:upto]]
            done = upto
            found = await self._ask(messages)
            if isinstance(found, Deny):
                return found
            messages = found
        sent = [plain(_without_id(each, named)) for each in whole(system, messages)]
        return None if sent == same else Replace({**given, "messages": sent})


class AfterModel:
    """A middleware's `after_model` as a hook, behind what the model was sent."""

    def __init__(self, middleware: Any, sent: Sequence[BaseMessage] = ()) -> None:
        self._middleware, self._sent = middleware, sent

    def behind(self, messages: Sequence[BaseMessage]) -> AfterModel:
        """As a hook's."""
        return AfterModel(self._middleware, messages)

    async def __call__(self, given: Any) -> Replace | Deny | None:
        """As a hook of the engine, of what has come of a call; of an error it is not asked."""
        if "value" not in given:
            return None
        _, history = parted([each.model_copy() for each in self._sent])
        [answer] = revived([given["value"]["message"]])
        before, same = [*history, answer], plain(answer)
        named = _with_ids(before)
        found = await _asked(self._middleware, "after_model")(before)
        if isinstance(found, Deny):
            return found
        if [each.id for each in found] != [each.id for each in before] or found[:-1] != before[:-1]:
            raise TypeError("after_model changes other messages than the answer")
        told = plain(_without_id(found[-1], named))
        return None if told == same else Replace({"value": {"message": told}})


def _asked(middleware: Any, method: str) -> Callable[[list[BaseMessage]], Awaitable[list[BaseMessage] | Deny]]:
    """How a middleware is asked about messages: what it makes of them."""
    is_async = overrides(middleware, "a" + method)

    async def call(messages: list[BaseMessage]) -> Any:
        state = {"messages": list(messages)}
        if is_async:
            return await getattr(middleware, "a" + method)(state, runtime_here())
        return await in_thread(getattr(middleware, method), state, runtime_here())

    async def ask(messages: list[BaseMessage]) -> list[BaseMessage] | Deny:
        guard = NoModels()
        with set_config_context(heard_by(guard, ensure_config())) as context:
            update = await asyncio.create_task(call([each.model_copy() for each in messages]), context=context)
        if guard.has_refused:
            return Deny(f"{middleware.name}.{method} calls a model, which would be on no record; wrap_model_call may")
        return _updated(messages, update, f"{middleware.name}.{method}")

    return ask


def _updated(messages: list[BaseMessage], update: Any, name: str) -> list[BaseMessage] | Deny:
    """Messages with an update of LangGraph's state."""
    if update is None:
        return messages
    others = [repr(key) for key in update if key != "messages"] if isinstance(update, Mapping) else ["no dict"]
    if others:
        return Deny(f"{name} returns {', '.join(sorted(others))}; of an agent node it may change messages alone")
    found: Any = add_messages(messages, update["messages"])  # type: ignore[arg-type]
    return list(found)


def _calls_in(history: Sequence[BaseMessage]) -> list[int]:
    """Where models were called, and now: so many messages each was sent."""
    return [n for n, each in enumerate(history) if n and isinstance(each, AIMessage)] + [len(history)]


def _with_ids(messages: Sequence[BaseMessage]) -> set[str]:
    """Give messages ids that have none, for as long as a middleware is asked: LangGraph finds them by these."""
    given = {f"unnamed:{n}" for n, each in enumerate(messages) if each.id is None}
    for n, each in enumerate(messages):
        if each.id is None:
            each.id = f"unnamed:{n}"
    return given


def _without_id(message: BaseMessage, named: set[str]) -> BaseMessage:
    return message.model_copy(update={"id": None}) if message.id in named else message
