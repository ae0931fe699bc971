"""Models inside middlewares: LangChain's callbacks tell of each before it is called.

What a middleware calls past LangChain, such as an HTTP client of its own, nothing here sees.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from langgraph_ext.engine.calling_models import usage_of
from langgraph_ext.engine.messages import plain
from langgraph_ext.saver.callback_forms import EitherForm

__all__ = ["ModelsInside", "NoModels", "heard_by"]


def heard_by(handler: BaseCallbackHandler, config: RunnableConfig) -> RunnableConfig:
    """A config by which a handler is told as well, and first: nothing is reserved before it agrees."""
    found = merge_configs(config, {"callbacks": [handler]})
    callbacks = found["callbacks"]
    if isinstance(callbacks, BaseCallbackManager):
        for handlers in (callbacks.handlers, callbacks.inheritable_handlers):
            handlers.remove(handler)
            handlers.insert(0, handler)
    elif callbacks is not None:
        found["callbacks"] = [handler, *(each for each in callbacks if each is not handler)]
    return found


class ModelsInside(BaseCallbackHandler):
    """Has every model that a middleware calls itself wait until its call is on record.

    Args:
        operation_id: Calls of this operation are the engine's own.
        enter: Waits until a call is on record.
        used: Is told what it has used, on the engine's loop.
        from_thread: Waits in a thread for what is awaited there.
    """

    raise_error = True
    run_inline = True

    def __init__(
        self,
        operation_id: str,
        enter: Callable[[], Awaitable[None]],
        used: Callable[[dict[str, Any]], None],
        from_thread: Callable[[Awaitable[None]], None],
    ) -> None:
        self._operation_id, self._enter, self._used, self._from_thread = operation_id, enter, used, from_thread
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._sent: dict[UUID, list[BaseMessage]] = {}

    def _on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **told: Any) -> None:
        if self._is_inside(messages[0], **told):
            if threading.get_ident() == self._thread:
                raise RuntimeError(
                    "an async middleware calls a model and holds the event loop up; have it await ainvoke"
                )
            self._from_thread(self._enter())

    async def _aon_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **told: Any) -> None:
        if self._is_inside(messages[0], **told):
            if asyncio.get_running_loop() is self._loop:
                await self._enter()
            else:
                await asyncio.to_thread(self._from_thread, self._enter())

    def _on_llm_start(self, serialized: Any, prompts: list[str], **told: Any) -> None:
        self._on_chat_model_start(serialized, [[HumanMessage(each) for each in prompts]], **told)

    async def _aon_llm_start(self, serialized: Any, prompts: list[str], **told: Any) -> None:
        await self._aon_chat_model_start(serialized, [[HumanMessage(each) for each in prompts]], **told)

    on_chat_model_start: Any = EitherForm(_on_chat_model_start, _aon_chat_model_start)
    on_llm_start: Any = EitherForm(_on_llm_start, _aon_llm_start)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **told: Any) -> None:
        """It has answered: what it used counts."""
        sent = self._sent.pop(run_id, None)
        if sent is None or not response.generations or not response.generations[0]:
            return
        first = response.generations[0][0]
        answer = getattr(first, "message", None)
        answer = answer if isinstance(answer, AIMessage) else AIMessage(first.text)
        usage = usage_of({"messages": [plain(each) for each in sent]}, plain(answer))
        self._loop.call_soon_threadsafe(self._used, usage)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **told: Any) -> None:
        """It has failed; its call was made all the same."""
        self._sent.pop(run_id, None)

    def _is_inside(
        self, messages: list[BaseMessage], *, run_id: UUID, metadata: Mapping[str, Any] | None = None, **told: Any
    ) -> bool:
        if (metadata or {}).get("operation_id") == self._operation_id:
            return False
        self._sent[run_id] = messages
        return True


class NoModels(BaseCallbackHandler):
    """Refuses every model that is called where no call can be put on record."""

    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self.has_refused = False

    def on_chat_model_start(self, *args: Any, **told: Any) -> None:
        """Refuse it."""
        self.has_refused = True
        raise RuntimeError("before_model and after_model call no model: that call would be on no record")

    def on_llm_start(self, *args: Any, **told: Any) -> None:
        """As `on_chat_model_start`."""
        self.on_chat_model_start()
