"""Middleware: LangChain's AgentMiddleware as part of an agent node (rule A14).

What wraps a model's call runs around it (middleware_calls.py); what looks at messages before and after it is a hook of
the engine's (middleware_hooks.py); tools are the agent's. What would keep a state of its own, jump, or do what the
engine has on record itself is refused, and told what to use instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import SecretBytes, SecretStr

from langgraph_ext import canonical
from langgraph_ext.engine import AgentSpec, Hook, Hooks, Release
from langgraph_ext.engine.spec_models import identity_of, without_secrets
from langgraph_ext.errors import AdmissionError, InvalidArgument
from langgraph_ext.nodes.middleware_calls import Around
from langgraph_ext.nodes.middleware_forms import is_own
from langgraph_ext.nodes.middleware_hooks import AfterModel, BeforeModel
from langgraph_ext.nodes.models import EXTRA, langchain

__all__ = ["Middlewares"]

_INSTEAD = {
    "HumanInTheLoopMiddleware": "interrupt_on=",
    "ModelCallLimitMiddleware": "limits=Limits(model_calls=…)",
    "ToolCallLimitMiddleware": "limits=Limits(tool_calls=…)",
    "SummarizationMiddleware": "compaction=Compaction(soft_tokens=…)",
    "ToolRetryMiddleware": "retry=Retry(…), and tool_policies= for what a call does outside",
    "ToolErrorMiddleware": "hooks=Hooks(after_tool=…); a model reads what a tool has failed with as it is",
    "AutoModeMiddleware": "interrupt_on={tool: Approval(when=…)}",
}
"""LangChain's own whose effect the engine has on record, and the option that does it."""

_OF_EVERY_STATE = {"messages", "jump_to", "structured_response"}

_NEVER_JUMPS = "PIIMiddleware"
"""Declares that it may, and never does. What it writes to streams is done without: they show its answers whole."""


class Middlewares:
    """The middlewares of an agent node, looked at.

    Args:
        given: Instances of AgentMiddleware, the outermost first.

    Raises:
        AdmissionError: LangChain is not installed (`extra_missing`).
        InvalidArgument: One is no middleware, has the name of another one, or does what an agent node does not
            (`middleware_unsupported`).
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self._all = tuple(given)
        if not self._all:
            return
        base = _base()
        seen: set[str] = set()
        for each in self._all:
            if not isinstance(each, base):
                raise InvalidArgument(f"middleware holds a {type(each).__name__}; it takes LangChain's AgentMiddleware")
            if each.name in seen:
                raise InvalidArgument(f"two middlewares are named {each.name!r}; have one's `name` be another")
            seen.add(each.name)
            _check(each)

    @property
    def tools(self) -> tuple[Any, ...]:
        """Theirs, which are the agent's."""
        return tuple(tool for each in self._all for tool in getattr(each, "tools", ()))

    def hooks(self, own: Hooks | Mapping[str, Any] | None) -> Any:
        """The agent's hooks with theirs: inside of its own, and as LangChain asks them."""
        if not self._all:
            return own or Hooks()
        own = own if isinstance(own, Hooks) else Hooks(**(own or {}))
        before = [Hook(call=BeforeModel(each), name=each.name) for each in self._all if is_own(each, "before_model")]
        after = [Hook(call=AfterModel(each), name=each.name) for each in self._all if is_own(each, "after_model")]
        return own.model_copy(
            update={
                "before_model": (*own.before_model, *before),
                "after_model": (*reversed(after), *own.after_model),
            }
        )

    def check(self, spec: AgentSpec) -> None:
        """Look at what they are to be beside.

        Raises:
            InvalidArgument: A history that `before_model` changes is to be summarised as it came
                (`middleware_unsupported`).
        """
        if spec.compaction.soft_tokens is None:
            return
        for each in self._all:
            if is_own(each, "before_model"):
                raise _refusal(
                    each,
                    "changes messages before the model sees them, which summaries are written of as "
                    "they came; leave out compaction.soft_tokens, or have the tools and input= do it",
                )

    def in_release(self, release: Release) -> Release:
        """The release of an agent that has them: their names, classes and, as far as it can be told, arguments."""
        if not self._all:
            return release
        body = canonical.encode({**release.descriptor, "middleware": [_told(each) for each in self._all]})
        return replace(release, body=body, digest=canonical.digest(body))

    def around(self, config: RunnableConfig) -> Around | None:
        """What runs around the model calls of one visit; None if nothing does."""
        layers = [each for each in self._all if is_own(each, "wrap_model_call")]
        is_hidden = any(each.transformers for each in self._all)
        return Around(layers, config, ("nostream",) if is_hidden else ()) if layers or is_hidden else None


def _base() -> Any:
    found = langchain("langchain.agents.middleware")
    if found is None:
        raise AdmissionError(f"middleware needs LangChain; install it: {EXTRA}", code="extra_missing")
    return found.AgentMiddleware


def _check(middleware: Any) -> None:
    """Refuse what would be there in vain, or do unseen what is to be on record."""
    for why in _reasons(middleware):
        raise _refusal(middleware, why)


def _reasons(middleware: Any) -> Iterator[str]:
    """Why an agent node does not take a middleware."""
    classes = {each.__name__ for each in type(middleware).__mro__ if each.__module__.partition(".")[0] == "langchain"}
    for name in sorted(classes & _INSTEAD.keys()):
        yield f"does what the engine has on record itself; use {_INSTEAD[name]}"
    if is_own(middleware, "wrap_tool_call"):
        yield "uses wrap_tool_call, and tool calls are the engine's; use hooks=Hooks(before_tool=…, after_tool=…)"
    for method in ("before_agent", "after_agent"):
        if is_own(middleware, method):
            yield f"uses {method}; use input= and output=, or a node before or behind this one"
    if keys := _state_of(middleware):
        yield f"keeps a state of its own ({', '.join(keys)}), and an agent run has none for it"
    if _NEVER_JUMPS not in classes:
        yield from _jumps(middleware)
    if any(isinstance(tool, Mapping) for tool in getattr(middleware, "tools", ())):
        yield "brings tools that a provider runs; bind them in wrap_model_call"


def _jumps(middleware: Any) -> Iterator[str]:
    for method in ("before_model", "after_model"):
        if _may_jump(middleware, method):
            yield f"may jump from {method}; use hooks=Hooks({method}=…), which may deny a call"
    if middleware.transformers:
        yield "rewrites streams (transformers), which an agent node does not"


def _state_of(middleware: Any) -> list[str]:
    schema = middleware.state_schema
    try:
        hints = get_type_hints(schema)
    except (NameError, TypeError):  # one name that cannot be resolved does not hide the others
        hints = getattr(schema, "__annotations__", {})
    return sorted(hints.keys() - _OF_EVERY_STATE)


def _may_jump(middleware: Any, method: str) -> bool:
    return any(getattr(getattr(type(middleware), each, None), "__can_jump_to__", ()) for each in (method, "a" + method))


def _refusal(middleware: Any, why: str) -> InvalidArgument:
    return InvalidArgument(
        f"middleware {middleware.name!r} {why}",
        code="middleware_unsupported",
        details={"middleware": type(middleware).__name__},
    )


# -- in a release


def _told(middleware: Any) -> dict[str, Any]:
    """What makes a middleware another one: what it was made with, where it keeps that under the same name, and models.

    What else it holds may be of this process alone, such as a cache, and would make it another one in each.
    """
    arguments = signature(type(middleware).__init__).parameters
    kept = {name: value for name, value in vars(middleware).items() if name in arguments or _has_models(value)}
    return {
        "name": middleware.name,
        "class": type(middleware).__qualname__,
        "arguments": without_secrets({name: _plainly(value) for name, value in kept.items()}),
    }


def _has_models(value: Any) -> bool:
    return isinstance(value, BaseChatModel) or (
        isinstance(value, list | tuple) and any(isinstance(each, BaseChatModel) for each in value)
    )


def _plainly(value: Any) -> Any:
    """A value as JSON: models and tools by what they are, functions by name, what has no such form by its class."""
    if value is None or isinstance(value, bool | str | SecretStr | SecretBytes):
        return value
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, BaseChatModel):
        return identity_of(value)
    if isinstance(value, BaseTool):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plainly(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plainly, value), key=str)
    if isinstance(value, list | tuple):
        return [_plainly(each) for each in value]
    return getattr(value, "__qualname__", type(value).__qualname__)
