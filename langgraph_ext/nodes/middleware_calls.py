"""Middleware around calls: LangChain's `wrap_model_call` around what the engine calls (rules A12 and A14).

A middleware may call its handler as often as it likes, or a model of its own. The engine has one call on record when it
begins; each further one is put on record, and counted, before it is made: the middleware stands still meanwhile, and
`around` leaves with `AskedAgain` until the engine comes back with the next number. It is held in this process alone:
after a crash the middlewares begin anew, with the next call that is on record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langchain_core.tools import BaseTool

from langgraph_ext.engine.around_models import ModelCall, Send
from langgraph_ext.engine.calling_models import usage_of
from langgraph_ext.engine.messages import plain
from langgraph_ext.engine.program import AskedAgain, Failed
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger.texts import cut, message_of
from langgraph_ext.nodes.middleware_forms import Handler, layer, only, parted, runtime_here
from langgraph_ext.nodes.middleware_models import ModelsInside, heard_by

__all__ = ["Around"]

T = TypeVar("T")


class Around:
    """What runs around the calls of one visit's models: an `AroundModel`.

    Args:
        layers: Middlewares with a `wrap_model_call`, the outermost first.
        config: What they call models of their own with.
        tags: Of every call: LangGraph's `nostream`, if what a model says is not to be seen before it was looked at.
    """

    def __init__(self, layers: Sequence[Any], config: RunnableConfig, tags: tuple[str, ...]) -> None:
        self._layers, self._config, self._tags = layers, config, tags
        self._standing: dict[str, _Going] = {}
        """Those that wait for their next call to be on record, by operation."""

    async def __call__(self, call: ModelCall, send: Send) -> AIMessage:
        """As `AroundModel`."""
        call = call._replace(tags=(*call.tags, *self._tags))
        if not self._layers:
            return await send(call)
        going = self._standing.pop(call.operation_id, None)
        if going is None:
            going = _Going(self._layers, call, send, self._config)
            self._forget_with_loop(call.operation_id, going)
        else:
            going.allow()
        try:
            return await going.come()
        except AskedAgain:
            self._standing[call.operation_id] = going
            raise
        except BaseException:
            await going.end()
            raise

    def _forget_with_loop(self, operation_id: str, going: _Going) -> None:
        """Stop them when the operation's loop ends: nobody comes back for them then."""

        def forget(_: Any) -> None:
            going.stop()
            if self._standing.get(operation_id) is going:
                del self._standing[operation_id]

        loop = asyncio.current_task()
        assert loop is not None, "a call is made in a task"
        loop.add_done_callback(forget)


class _Going:
    """The middlewares around one operation, on their way."""

    def __init__(self, layers: Sequence[Any], call: ModelCall, send: Send, config: RunnableConfig) -> None:
        self._call, self._send = call, send
        self._names = {each.name for each in call.tools if isinstance(each, BaseTool)}
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        """One call at a time."""
        self._is_free = True
        """Whether nothing was sent yet for the call that is on record."""
        self._wish: asyncio.Future[None] | None = None
        """Of who waits for another one."""
        self._woken = asyncio.Event()
        self._answer: AIMessage | None = None
        """What the call that is on record has brought."""
        self._usage: dict[str, Any] | None = None
        """And what it has used."""
        self._failure: Failed | None = None
        """Or with what it has failed."""
        self._failed: list[tuple[Exception, Failed]] = []
        """What calls have failed with: as the middlewares see it, and as the engine does."""
        self._refused: LangGraphExtError | None = None
        self._ids: set[str | None] = set()
        """Of answers that were seen."""
        self._from_threads: set[Future[Any]] = set()
        self._outside = copy_context()
        inside = ModelsInside(call.operation_id, self._enter_alone, self._used, self.from_thread)
        with set_config_context(heard_by(inside, config)) as context:
            self._task = self._loop.create_task(self._run(layers), context=context.copy())
        self._task.add_done_callback(lambda _: self._woken.set())

    # -- for the engine

    async def come(self) -> AIMessage:
        """Wait for their answer.

        Raises:
            AskedAgain: They make another call, as soon as it is on record.
            Failed: They have failed.
            LangGraphExtError: A call was refused, and not made: no middleware has a say in that.
        """
        await self._woken.wait()
        self._woken.clear()
        if self._refused is not None:
            raise self._refused
        if not self._task.done():
            raise self._again()
        try:
            return self._counted(self._task.result())
        except LangGraphExtError:
            raise
        except Exception as error:
            raise self._as_failed(error) from error

    def allow(self) -> None:
        """Another call is on record."""
        self._answer = self._failure = self._usage = None
        wish, self._wish = self._wish, None
        assert wish is not None, "somebody waits for it"
        if not wish.done():
            wish.set_result(None)

    async def end(self) -> None:
        """Stop them, and wait until they have."""
        self.stop()
        await asyncio.wait({self._task})

    def stop(self) -> None:
        """Nobody waits for them any more."""
        self._task.cancel()
        self._task.add_done_callback(_say_nothing)
        for each in tuple(self._from_threads):
            each.cancel()

    # -- for the middlewares

    async def _run(self, layers: Sequence[Any]) -> AIMessage:
        from langchain.agents.middleware import ModelRequest  # noqa: PLC0415 - an optional extra

        call, handler = self._call, cast(Handler, self._ask)
        for each in reversed(layers):
            handler = layer(each, handler, self.from_thread)
        system, told = parted(call.messages)
        messages: Any = told
        request: Any = ModelRequest(
            model=call.model,
            messages=messages,
            system_message=system,
            tools=list(call.tools),
            state=cast(Any, {"messages": list(messages)}),
            runtime=runtime_here(),
        )
        return only(await handler(request))

    async def _ask(self, request: Any) -> Any:
        """The innermost handler: one physical call."""
        from langchain.agents.middleware import ModelResponse  # noqa: PLC0415 - an optional extra

        call = self._as_call(request)
        async with self._turn:
            await self._enter()
            try:
                sending = self._loop.create_task(_awaited(self._send(call)), context=self._outside.copy())
                answer = await sending
            except Failed as failed:
                seen = failed.__cause__ if isinstance(failed.__cause__, Exception) else failed
                self._failed.append((seen, failed))
                self._failure = failed
                raise seen from None
            except LangGraphExtError as refused:
                self._refused = refused
                self._woken.set()
                return await self._loop.create_future()  # for ever: they are told to stop
            self._answer = answer
            self._ids.add(answer.id)
            self._used(usage_of({"messages": [plain(each) for each in call.messages]}, plain(answer)))
        return ModelResponse(result=[answer])

    def from_thread(self, act: Awaitable[T]) -> T:
        """Wait in a thread for what is awaited on the engine's loop."""
        future = asyncio.run_coroutine_threadsafe(_awaited(act), self._loop)
        self._from_threads.add(future)
        try:
            if self._task.cancelling():
                future.cancel()
            return future.result()
        finally:
            self._from_threads.discard(future)

    async def _enter(self) -> None:
        """Take the call that is on record, or wait for the next one."""
        if self._is_free:
            self._is_free = False
            return
        self._wish = self._loop.create_future()
        self._woken.set()
        await self._wish

    async def _enter_alone(self) -> None:
        """As `_enter`, of a model that a middleware calls itself."""
        async with self._turn:
            await self._enter()

    def _used(self, usage: dict[str, Any]) -> None:
        """Add up what was used for the call that is on record."""
        known = self._usage or {"tokens_in": 0, "tokens_out": 0, "estimated": False}
        self._usage = {
            "tokens_in": known["tokens_in"] + usage["tokens_in"],
            "tokens_out": known["tokens_out"] + usage["tokens_out"],
            "estimated": known["estimated"] or usage["estimated"],
        }

    def _as_call(self, request: Any) -> ModelCall:
        """What a middleware asks for.

        Raises:
            TypeError: The engine does not do that.
        """
        if not isinstance(request.model, BaseChatModel):
            raise TypeError(f"a middleware asks for a {type(request.model).__name__}, which is no chat model")
        if request.response_format is not None:
            raise TypeError("a middleware asks for a response_format; that is the node's")
        tools = [each for each in request.tools if isinstance(each, BaseTool)]
        if unknown := sorted({each.name for each in tools} - self._names):
            raise TypeError(f"a middleware offers tools that the agent does not have: {unknown}; give them to tools=")
        choice = {} if request.tool_choice is None or not request.tools else {"tool_choice": request.tool_choice}
        system = [] if request.system_message is None else [request.system_message]
        return self._call._replace(
            model=request.model,
            messages=[*system, *request.messages],
            tools=request.tools,
            settings={**choice, **request.model_settings},
        )

    # -- what the engine is told

    def _again(self) -> AskedAgain:
        """What has become of the call that is on record, as another one is made."""
        if self._failure is not None:
            return AskedAgain(self._failure.code, self._failure.message, partial=self._failure.partial)
        told = "a middleware has made another call before the answer counted"
        partial = None if self._answer is None else plain(self._answer)
        return AskedAgain("asked_again", told, partial=partial, usage=self._usage)

    def _counted(self, answer: AIMessage) -> AIMessage:
        """Their answer, with an id of its own and the usage of the call that is on record."""
        if answer is self._answer:
            return answer
        update: dict[str, Any] = {}
        if answer.id not in self._ids:
            update["id"] = self._call.operation_id
        if self._usage is not None:
            tokens_in, tokens_out = self._usage["tokens_in"], self._usage["tokens_out"]
            total = tokens_in + tokens_out
            update["usage_metadata"] = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": total}
        return answer.model_copy(update=update, deep=True)

    def _as_failed(self, error: Exception) -> Failed:
        """What the middlewares have raised: what their call has, or something of their own."""
        for seen, failed in self._failed:
            if error is seen:
                return failed
        return Failed(
            "call_failed",
            cut(f"{type(error).__name__}: {message_of(error)}"),
            partial=None if self._answer is None else plain(self._answer),
            retryable=getattr(error, "is_retryable", False) is True,
            usage=self._usage,
        )


async def _awaited(act: Awaitable[T]) -> T:
    return await act


def _say_nothing(task: asyncio.Task[Any]) -> None:
    """Asked, so that it is not logged as forgotten."""
    if not task.cancelled():
        task.exception()
