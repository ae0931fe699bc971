"""ScriptedChatModel: a chat model that answers what a script says, and says the same after a restart.

It is a `BaseChatModel` like any provider's: sync and async, whole answers and streams, tools and structured output.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, BaseRunManager, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, PrivateAttr

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.answers import Wording, tokens_of
from langgraph_ext.testing.call_log import CallLog, ScriptedCall
from langgraph_ext.testing.playing import Pause, Play, Work, pursue, pursue_async
from langgraph_ext.testing.script import Asking, Script, assert_exhausted, digest_of
from langgraph_ext.testing.steps import AUTOMATIC, Answer, Returned, Step, say

__all__ = ["ScriptedChatModel"]

_KEY = "scripted_key"
"""The keyword by which the key of a call comes from its config to where it is played."""


class ScriptedChatModel(BaseChatModel):
    """A chat model that plays a script.

    Which step a call gets is decided by what the call is, never by how many were made in this process: a process that
    is killed and started again gets the same step for the same request, and the next one for the next.

    - A list is played along the conversation: a request that shows *n* answers of a model (`AIMessage`s) gets step *n*.
    - With `by="request"` each request that was not seen before gets the next step of the list, one that was seen gets
      its own again: for prompts that show no conversation.
    - A call that is named, by `call_key` in its config's `metadata` or `configurable`, gets the step of that key in a
      mapping; in a list, its key is what tells it from others.
    - One step that stands alone answers every call.

    The same request made again gets the next of its `tries`, or the same step again. All of this is counted in the log.

    Args:
        script: A step, a list of steps, or a mapping from keys (or turns) to steps. A text is `say(text)`.
        roles: A script for each role instead; `role` says which of them this model has, and `as_role` makes the others.
        role: Whose script is played; also the name in the log.
        known_roles: The roles there are; a script of any other is refused.
        log: A file for the calls, which processes may share, also with tools and an `EffectLog`. Without one they are
            kept in memory, and a restart begins anew.
        by: What tells one call of a list from the next: `"turn"`, `"request"`, or a function of the messages that
            returns a turn or a key.
        usage: What is reported where a step says nothing, as for `say`; counted by default.
        chunk_characters: Size of a streamed piece.
        model: Its name.
        max_tokens: The limit of its output that it claims to have.

    Raises:
        InvalidArgument: The script is none, or there is no such role.

    A call raises what its step raises, and `NotFound` (`script_exhausted`) if the script has none for it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    script: Any = None
    roles: Any = None
    role: str = ""
    known_roles: Any = None
    log: Any = None
    by: Any = "turn"
    usage: Any = AUTOMATIC
    chunk_characters: int = 4
    model: str = "scripted"
    max_tokens: int | None = None

    _scripts: dict[str, Script] = PrivateAttr()
    _calls: CallLog = PrivateAttr()

    def __init__(
        self,
        *,
        script: Any = None,
        roles: Mapping[str, Any] | None = None,
        role: str = "",
        known_roles: Collection[str] | None = None,
        log: Any = None,
        by: Literal["turn", "request"] | Callable[[list[BaseMessage]], int | str] = "turn",
        **rest: Any,
    ) -> None:
        rest |= {"script": script, "roles": roles, "role": role, "known_roles": known_roles, "log": log, "by": by}
        super().__init__(**rest)
        self._scripts = _scripts(script, roles, role, known_roles)
        self._calls = CallLog(log)
        self._check(role)
        if not callable(by) and by not in ("turn", "request"):
            raise InvalidArgument(f"by is {by!r}; it must be 'turn', 'request' or a function of the messages")
        if self.chunk_characters < 1:
            raise InvalidArgument(f"chunk_characters is {self.chunk_characters}; a piece has at least one")

    @property
    def calls(self) -> list[ScriptedCall]:
        """All calls on the log, of every process, that this model's roles have made, in the order of their begin."""
        return [each for each in self._calls.calls() if each.kind == "model" and each.name in self._scripts]

    def as_role(self, role: str) -> Self:
        """The same model, with the same log, that plays the script of another role.

        Raises:
            InvalidArgument: There is no such role.
        """
        self._check(role)
        return self.model_copy(update={"role": role})

    def assert_exhausted(self) -> None:
        """Every step of every role was had by some call, each try too, and no call came for which there was none.

        Raises:
            AssertionError: Some were not; the message names them.
        """
        assert_exhausted(self._scripts, "model", self._calls)

    # -- as langchain-core calls it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """As of any chat model; each call has on record which tools were bound, and for which structured output."""
        output = kwargs.get("ls_structured_output_format")
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        if output is not None:
            kwargs["structured_output"] = convert_to_openai_tool(output["schema"])["function"]["name"]
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def get_num_tokens(self, text: str) -> int:
        """A token for four characters."""
        return tokens_of(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        """A token for four characters of the messages' texts."""
        return sum(tokens_of(str(message.content)) for message in messages)

    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: Any = None, **kwargs: Any
    ) -> AIMessage:
        """As of any chat model."""
        return super().invoke(input, config, stop=stop, **_named(config, kwargs))

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: Any = None, **kwargs: Any
    ) -> AIMessage:
        """As `invoke`."""
        return await super().ainvoke(input, config, stop=stop, **_named(config, kwargs))

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: Any = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """As of any chat model."""
        yield from super().stream(input, config, stop=stop, **_named(config, kwargs))

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: Any = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """As `stream`."""
        async for chunk in super().astream(input, config, stop=stop, **_named(config, kwargs)):
            yield chunk

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        play, wording = self._begin(messages, stop, run_manager, kwargs, streamed=False)
        with play.on_record():
            for _ in pursue(_acts(play, wording)):
                pass
        return _result(wording)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        play, wording = await asyncio.to_thread(self._begin, messages, stop, run_manager, kwargs, streamed=False)
        async with play.on_record_async():
            async for _ in pursue_async(_acts(play, wording)):
                pass
        return _result(wording)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        play, wording = self._begin(messages, stop, run_manager, kwargs, streamed=True)
        with play.on_record():
            for chunk in pursue(_acts(play, wording)):
                yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        play, wording = await asyncio.to_thread(self._begin, messages, stop, run_manager, kwargs, streamed=True)
        async with play.on_record_async():
            async for chunk in pursue_async(_acts(play, wording)):
                yield ChatGenerationChunk(message=chunk)

    # -- a call and its step

    def _begin(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: BaseRunManager | None,
        kwargs: dict[str, Any],
        *,
        streamed: bool,
    ) -> tuple[Play, Wording]:
        """Put a call on record, with its step."""
        key = kwargs.pop(_KEY, None)
        if key is None and run_manager is not None:  # events of version 3 come by no other way
            key = run_manager.metadata.get("call_key")
        request = _request(messages, stop, kwargs)
        turn: int | None = None
        if callable(self.by) and key is None:
            found = self.by(messages)
            turn, key = (found, None) if isinstance(found, int) else (None, str(found))
        elif self.by == "turn":
            turn = sum(isinstance(message, AIMessage) for message in messages)
        digest = digest_of(request)
        request["streamed"] = streamed
        asking = Asking(kind="model", name=self.role, request=request, digest=digest, turn=turn, key=key)
        call, step = self._scripts[self.role].begin(asking, self._calls)
        # a step that is no answer comes to its end only if it ends the process there
        answer = step if isinstance(step, Answer) else Answer(ending=step.ending)
        return Play(call, step, self._calls), Wording(
            answer=answer, call=call, model=self.model, usage=self.usage, piece=self.chunk_characters
        )

    def _check(self, role: str) -> None:
        if role not in self._scripts:
            there = ", ".join(map(repr, self._scripts))
            raise InvalidArgument(f"there is no role {role!r}; the script has {there}. Pass one of them as role=")


def _acts(play: Play, wording: Wording) -> Iterator[Pause | Work | AIMessageChunk]:
    """An answer from its begin to its end; the last chunk is said when the end is on record."""
    yield from play.opening()
    if not isinstance(play.step, Answer):
        play.failing()
    chunks = list(wording.chunks())
    half = len(chunks) // 2
    yield from chunks[:half]
    play.leave("middle")
    yield from chunks[half:]
    play.failing()
    yield play.answered()
    yield wording.last()
    play.leave("after")


def _result(wording: Wording) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=wording.message())])


def _request(messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    named = {name: kwargs.get(name) for name in ("tool_choice", "structured_output")}
    return {
        "messages": [_shown(message) for message in messages],
        "tools": kwargs.get("tools", []),
        "stop": stop,
        **named,
        "kwargs": {name: value for name, value in kwargs.items() if name not in {"tools", *named}},
    }


def _shown(message: BaseMessage) -> dict[str, Any]:
    """A message as a request shows it: without its id and metadata, which differ each time."""
    found = {"type": message.type.removesuffix("MessageChunk").lower(), "content": message.content}
    for name in ("name", "tool_calls", "invalid_tool_calls", "tool_call_id"):
        if value := getattr(message, name, None):
            found[name] = value
    return found


def _named(config: RunnableConfig | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The same arguments, with the key that the config gives to the call."""
    found = ensure_config(config)
    for given in (found.get("metadata"), found.get("configurable")):
        if given and given.get("call_key") is not None:
            return {_KEY: str(given["call_key"]), **kwargs}
    return kwargs


def _scripts(
    script: Any, roles: Mapping[str, Any] | None, role: str, known: Collection[str] | None
) -> dict[str, Script]:
    if (script is None) == (roles is None):
        raise InvalidArgument("a scripted model needs a script, or roles={role: script}; not both")
    given = {role: script} if roles is None else roles
    strange = [name for name in given if known is not None and name not in known]
    if strange:
        raise InvalidArgument(f"there is a script for {strange!r}, and no such role; known are {sorted(known or ())!r}")
    where = "script" if roles is None else "roles[{!r}]"
    return {name: Script(each, _step, where.format(name)) for name, each in given.items()}


def _step(given: Any) -> Step:
    if isinstance(given, str):
        return say(given)
    if isinstance(given, Returned) or not isinstance(given, Step):
        raise TypeError(f"{type(given).__name__} is nothing that a model does; use say(…), call(…), fails(…)")
    return given
