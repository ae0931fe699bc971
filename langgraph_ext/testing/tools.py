"""Scripted tools: langchain-core tools that do what a script says, and put on record what they did outside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, PrivateAttr, create_model

from langgraph_ext.testing.call_log import CallLog, LogPath, ScriptedCall
from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.playing import Pause, Play, Work, pursue, pursue_async
from langgraph_ext.testing.script import Asking, Script, assert_exhausted, digest_of
from langgraph_ext.testing.steps import Answer, Returned, Step, returns

__all__ = ["ScriptedTool", "scripted_tool"]

_ANY_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
_call_id: ContextVar[str | None] = ContextVar("tool_call_id", default=None)


class ScriptedTool(BaseTool):
    """A tool that plays a script; `scripted_tool` makes one."""

    _script: Script = PrivateAttr()
    _calls: CallLog = PrivateAttr()
    _effects: EffectLog | None = PrivateAttr(default=None)
    _key: Callable[[dict[str, Any]], str] | None = PrivateAttr(default=None)

    @property
    def calls(self) -> list[ScriptedCall]:
        """Its calls, of every process that shares the log, also those that came to nothing."""
        return [each for each in self._calls.calls() if (each.kind, each.name) == ("tool", self.name)]

    def assert_exhausted(self) -> None:
        """Every step was had by some call, each try too, and no call came for which there was none.

        Raises:
            AssertionError: Some were not; the message names them.
        """
        assert_exhausted({self.name: self._script}, "tool", self._calls)

    def run(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        """As of any tool."""
        token = _call_id.set(tool_call_id)
        try:
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **kwargs)
        finally:
            _call_id.reset(token)

    async def arun(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        """As `run`."""
        token = _call_id.set(tool_call_id)
        try:
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **kwargs)
        finally:
            _call_id.reset(token)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        play, given = self._begin(args, kwargs)
        with play.on_record():
            [value] = pursue(self._acts(play, given))
        return value[0]

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        play, given = await asyncio.to_thread(self._begin, args, kwargs)
        async with play.on_record_async():
            [value] = [each async for each in pursue_async(self._acts(play, given))]
        return value[0]

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Play, dict[str, Any]]:
        given = {**kwargs, **({"input": args[0]} if args else {})}
        names = given if isinstance(self.args_schema, dict) else self.args  # without what is injected
        shown = {name: value for name, value in given.items() if name in names}
        request = {"args": json.loads(json.dumps(shown, default=repr)), "tool_call_id": _call_id.get()}
        digest = digest_of(request)
        key = request["tool_call_id"] if self._script.keyed else None
        asking = Asking(kind="tool", name=self.name, request=request, digest=digest, key=key)
        call, step = self._script.begin(asking, self._calls)
        return Play(call, step, self._calls), given

    def _acts(self, play: Play, given: dict[str, Any]) -> Iterator[Pause | Work | tuple[Any]]:
        """A call from its begin to its end; its value comes in a tuple."""
        yield from play.opening()
        play.failing()
        if self._effects is not None:
            yield Work(lambda: self._act(play.call))
        play.leave("middle")
        value = play.step.value if isinstance(play.step, Returned) else None
        value = value(**given) if callable(value) else value
        yield play.answered()
        play.leave("after")
        yield (value,)

    def _act(self, call: ScriptedCall) -> None:
        assert self._effects is not None
        facts = {name: value for name, value in call.request.items() if value is not None}
        words = [self.name, json.dumps(call.args, sort_keys=True), call.request["tool_call_id"]]
        key = " ".join(word for word in words if word) if self._key is None else self._key(call.args)
        self._effects.record(key, tool=self.name, **facts)


def scripted_tool(
    name: str,
    script: Any = None,
    *,
    log: LogPath | None = None,
    args: Mapping[str, Any] | type[BaseModel] | None = None,
    key: Callable[[dict[str, Any]], str] | None = None,
    description: str = "",
    **options: Any,
) -> ScriptedTool:
    """A tool, for sync and async code, that does what a script says.

    Args:
        name: Its name.
        script: A step, which every call gets: `returns(value)`, `fails(error)`, `hangs()`, `exits("middle")`, or
            several as `tries`; what is no step is returned (a function is called with the arguments, and what it
            returns is). A list gives each call that was not seen before its next step; a mapping, the step of its tool
            call id. A call is the same again if its arguments are, and its tool call id.
        log: A file for its calls, and for what it did outside; or the `EffectLog` of a crash test, which then knows
            each act as an effect. Without one, the calls are kept in memory, and the acts are not kept.
        args: A pydantic model, a JSON schema, or types by name, `{"city": str}`; by default it takes any arguments.
        key: The key of an act, made of its arguments; by default name, arguments and tool call id.
        description: What the model is told of it.
        options: As of any langchain-core tool: `return_direct`, `metadata`, `response_format` …

    Raises:
        InvalidArgument: The script is none.
    """
    schema: Any = args
    if args is None:
        schema = _ANY_ARGUMENTS
    elif isinstance(args, Mapping) and all(isinstance(each, type) for each in args.values()):
        schema = create_model(name, **{field: (each, ...) for field, each in args.items()})  # type: ignore[call-overload]
    made = ScriptedTool(name=name, description=description or f"{name}, as scripted.", args_schema=schema, **options)
    made._script = Script(script, _step, f"tool {name!r}")
    made._calls = CallLog(log)
    made._key = key
    if log is not None:
        made._effects = log if isinstance(log, EffectLog) else EffectLog(log)
    return made


def _step(given: Any) -> Step:
    if isinstance(given, Answer):
        raise TypeError("a tool does not say anything; use returns(…), fails(…), hangs(…), exits(…)")
    return given if isinstance(given, Step) else returns(given)
