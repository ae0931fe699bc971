"""A14: which of LangChain's middlewares an agent node takes, and how its release names them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NotRequired

import pytest
from langchain.agents import middleware as shipped
from langchain.agents.middleware import AgentMiddleware, AgentState, dynamic_prompt, hook_config
from langchain_core.tools import tool

from langgraph_ext import AgentNode
from langgraph_ext.engine import Compaction, Hooks
from langgraph_ext.errors import AdmissionError, InvalidArgument, SpecInvalid
from langgraph_ext.testing import ScriptedChatModel

MODEL = ScriptedChatModel(script=["done"])


def agent(*middleware: Any, **more: Any) -> AgentNode:
    return AgentNode(name="a", model=MODEL, middleware=middleware, **more)


@tool
def search(text: str) -> str:
    """Search."""
    return text


class Counts(AgentState[Any]):
    count: NotRequired[int]


class Remembers(AgentMiddleware[Any, Any]):
    state_schema = Counts


class Jumps(AgentMiddleware[Any, Any]):
    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"}


class Begins(AgentMiddleware[Any, Any]):
    async def abefore_agent(self, state: Any, runtime: Any) -> Any:
        return None


class Streams(AgentMiddleware[Any, Any]):
    transformers = (object,)  # type: ignore[assignment]


class Provided(AgentMiddleware[Any, Any]):
    tools = [{"type": "web_search"}]  # type: ignore[list-item]  # noqa: RUF012


class Approves(shipped.HumanInTheLoopMiddleware[Any, Any, Any]):
    """One's own, of LangChain's."""


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: shipped.HumanInTheLoopMiddleware({"t": True}), "interrupt_on="),
    (lambda: Approves({"t": True}), "interrupt_on="),
    (lambda: shipped.ModelCallLimitMiddleware(run_limit=1), r"limits=Limits\(model_calls"),
    (lambda: shipped.ToolCallLimitMiddleware(run_limit=1), r"limits=Limits\(tool_calls"),
    (lambda: shipped.SummarizationMiddleware(MODEL), "compaction="),
    (shipped.ToolRetryMiddleware, "retry="),
    (lambda: shipped.LLMToolEmulator(model=MODEL), "wrap_tool_call, and tool calls are the engine's; use hooks="),
    (shipped.TodoListMiddleware, r"state of its own \(todos\)"),
    (shipped.ShellToolMiddleware, "uses before_agent"),
    (Remembers, r"state of its own \(count\)"),
    (Jumps, "may jump from before_model"),
    (Begins, "uses before_agent; use input="),
    (Streams, "rewrites streams"),
    (Provided, "tools that a provider runs"),
]


@pytest.mark.parametrize(("make", "told"), REFUSED)
def test_a14_what_the_engine_owns_or_has_no_place_for_is_refused(make: Callable[[], Any], told: str) -> None:
    """By its name, and with the option that does it here."""
    middleware = make()
    with pytest.raises(InvalidArgument, match=told) as caught:
        agent(middleware)
    assert "middleware_unsupported" == caught.value.code
    assert repr(middleware.name) in str(caught.value)


def test_a14_what_is_shipped_is_taken_where_it_keeps_nothing(tmp_path: Path) -> None:
    """Each with its tools."""
    taken = [
        shipped.ModelRetryMiddleware(),
        shipped.ModelFallbackMiddleware(MODEL),
        shipped.LLMToolSelectorMiddleware(model=MODEL),
        shipped.ContextEditingMiddleware(),
        shipped.PIIMiddleware("email"),
        shipped.PIIMiddleware("ip", apply_to_output=True),
        shipped.FilesystemFileSearchMiddleware(root_path=str(tmp_path)),
    ]
    node = agent(*taken, tools=[search])
    assert {"search", "glob_search", "grep_search"} == node.release.live.tools.keys()


def test_a14_what_is_no_middleware_or_named_twice_is_told() -> None:
    with pytest.raises(InvalidArgument, match="holds a type; it takes LangChain's AgentMiddleware"):
        agent(shipped.ModelRetryMiddleware)
    with pytest.raises(InvalidArgument, match="two middlewares are named 'ModelRetryMiddleware'"):
        agent(shipped.ModelRetryMiddleware(), shipped.ModelRetryMiddleware(max_retries=1))
    with pytest.raises(SpecInvalid, match="hook"):
        agent(
            shipped.PIIMiddleware("email"), hooks=Hooks(before_model=[{"call": print, "name": "PIIMiddleware[email]"}])
        )


def test_a14_what_is_hidden_from_a_model_is_not_summarised_either() -> None:
    """A summary is written of the history as it came."""
    with pytest.raises(InvalidArgument, match=r"compaction\.soft_tokens"):
        agent(shipped.PIIMiddleware("email"), compaction=Compaction(soft_tokens=1000))
    agent(shipped.ModelRetryMiddleware(), compaction=Compaction(soft_tokens=1000))


def test_a14_another_middleware_is_another_release() -> None:
    """So is another order, and what one was made with; what is the same in another process is the same release."""

    @dynamic_prompt
    def prompt(request: Any) -> str:
        return "Be kind."

    retry = shipped.ModelRetryMiddleware
    made = [
        agent(),
        agent(retry()),
        agent(retry(max_retries=5)),
        agent(prompt),
        agent(prompt, retry()),
        agent(retry(), prompt),
        agent(shipped.PIIMiddleware("email")),
        agent(shipped.PIIMiddleware("email", strategy="mask")),
        agent(shipped.ModelFallbackMiddleware(MODEL)),
        agent(shipped.ModelFallbackMiddleware(MODEL, MODEL)),
    ]
    assert len(made) == len({each.release.digest for each in made})
    assert agent(prompt, retry()).release == agent(prompt, retry()).release


def test_a14_a_release_holds_no_secret_of_a_middleware() -> None:
    """And nothing that is of one process alone."""

    class Calls(AgentMiddleware[Any, Any]):
        def __init__(self, url: str, api_key: str) -> None:
            self.url, self.api_key = url, api_key
            self.cache = object()

    release = agent(Calls("https://me:word@example.org/x", api_key="sk-secret")).release
    [told] = release.descriptor["middleware"]
    assert {"url": "https://example.org/x"} == told["arguments"]


def test_a14_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == "langchain"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(AdmissionError, match=r"pip install 'langgraph-ext\[langchain\]'") as caught:
        agent(object())
    assert "extra_missing" == caught.value.code
    agent()
