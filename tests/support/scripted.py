"""What the processes of the scripted model's tests do, and the ways to call a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable

from langgraph_ext.testing import ScriptedChatModel, exits, fails, returns, say, scripted_tool, tries

__all__ = ["LETTERS", "WAYS", "ask", "ask_many", "chunks", "conversation", "leave", "use"]

LETTERS = "abcdefghijklmnop"


def conversation(answers: int = 0) -> list[BaseMessage]:
    """What a model is shown that has answered so often."""
    said: list[BaseMessage] = [HumanMessage("hello")]
    for n in range(answers):
        said += [AIMessage(f"answer {n}"), HumanMessage("and then?")]
    return said


def chunks(model: Runnable[Any, Any], messages: Any, form: str, into: list[AIMessageChunk] | None = None) -> list[Any]:
    """Stream; what came is in `into` also when it breaks."""
    found: list[AIMessageChunk] = [] if into is None else into

    async def collect() -> None:
        async for chunk in model.astream(messages):
            found.append(chunk)

    if form == "async":
        asyncio.run(collect())
        return found
    for chunk in model.stream(messages):
        found.append(chunk)  # one by one: what came before it broke is kept
    return found


def _streamed(form: str) -> Callable[[Any, Any], Any]:
    def way(model: Any, messages: Any) -> Any:
        first, *others = chunks(model, messages, form)
        for other in others:
            first += other
        return first

    return way


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda model, messages: model.invoke(messages),
    "ainvoke": lambda model, messages: asyncio.run(model.ainvoke(messages)),
    "stream": _streamed("sync"),
    "astream": _streamed("async"),
}
"""Each calls a model and returns the whole answer."""


def ask(log: str, way: str, answers: int = 0) -> str:
    """Ask a model whose second answer dies before, in the middle and after, and then comes."""
    dying = tries(*[exits(moment, say("second answer")) for moment in ("before", "middle", "after")], "second answer")
    script = ["first answer", dying, tries(fails(TimeoutError("slow")), "third answer")]
    model = ScriptedChatModel(script=script, log=log)
    try:
        return str(WAYS[way](model, conversation(answers)).content)
    except TimeoutError as error:
        return f"raised {error}"


def leave(log: str, how: Any) -> None:
    """Die in one of the ways."""
    ScriptedChatModel(script=exits("before", how=how, code=7), log=log).invoke("hello")


def ask_many(log: str, times: int) -> list[str]:
    """Make the same request again and again: who comes n-th is told the n-th letter."""
    model = ScriptedChatModel(script=[tries(*LETTERS)], log=log)
    return [str(model.invoke("hello").content) for _ in range(times)]


def use(log: str, form: str) -> Any:
    """Call a tool that dies before, in the middle and after, and then returns."""
    sent = returns("sent")
    script = tries(*[exits(moment, sent) for moment in ("before", "middle", "after")], sent)
    tool = scripted_tool("send", script, log=log)
    asked = {"type": "tool_call", "name": "send", "args": {"to": "me"}, "id": "call-0"}
    found = tool.invoke(asked) if form == "sync" else asyncio.run(tool.ainvoke(asked))
    return found.content
