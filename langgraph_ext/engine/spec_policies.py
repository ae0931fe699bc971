"""Policies: what bounds an agent and how its tools, hooks and history are treated. All but hooks have defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from langgraph_ext.engine.spec_parts import Count, Flag, Function, Model, Named, Part, Seconds, Text, Usd

__all__ = [
    "HOOK_KINDS",
    "Approval",
    "Compaction",
    "Deadlines",
    "Decision",
    "Effect",
    "Hook",
    "Hooks",
    "Limits",
    "OnLimit",
    "OnUnknown",
    "Retry",
    "ToolPolicy",
    "asked",
]

Effect = Literal["repeatable", "once", "keyed"]
OnUnknown = Literal["ask", "error"]
OnLimit = Literal["ask", "finish", "error"]
Decision = Literal["approve", "edit", "reject", "respond"]


class Limits(Part):
    """The most that one agent run may use (rules E24 and A12). None: unlimited.

    `model_calls` counts dispatches, retries and those before a crash included; `loops` counts accepted decisions.
    """

    model_calls: Count | None = None
    tool_calls: Count | None = None
    tokens: Count | None = None
    """Model tokens, in and out."""
    cost_usd: Usd | None = None
    loops: Count = 100
    on_limit: OnLimit = "error"
    """At the first limit reached: ask a person, finish with what there is, or end with an error."""


class Deadlines(Part):
    """How long things may take, in seconds (rule E23). None: as long as they like.

    The clocks stop while the run waits for a person; a takeover resets none.
    """

    run_seconds: Seconds | None = 3600.0
    """Active time of the whole run."""
    tool_seconds: Seconds | None = 60.0
    model_seconds: Seconds | None = 120.0
    """From the call of a model to its first output."""
    model_idle_seconds: Seconds | None = 60.0
    """Between two outputs of a model that streams."""
    per_tool: Named[Seconds | None] = Field(default_factory=lambda: MappingProxyType({}))
    """By tool name, instead of `tool_seconds`."""


class Retry(Part):
    """How often an operation is called, if its error says that another call may help (rule E23)."""

    calls: Count = 2
    """All calls of one operation together, the first included."""
    wait_seconds: Seconds = 2.0
    """From the end of a call to the next."""


def _unknown(given: object) -> object:
    if given in ("ask", "error") or callable(given):
        return given
    raise ValueError("on_unknown is 'ask', 'error', or a function that finds out what came of the call")


class ToolPolicy(Part):
    """What calling a tool does outside, and what to do when nobody knows whether it was done (rule A10)."""

    effect: Effect | None = None
    """`"repeatable"`: calling again changes nothing more. `"once"`: never called again unasked. `"keyed"`: its
    idempotency key tells the outside one call again. None: as the tool's metadata says, else `"once"`."""
    on_unknown: Annotated[OnUnknown | Callable[..., Any], PlainValidator(_unknown)] = "ask"
    """A person is asked, the model is told of an error, or this function finds out."""


def _described(given: object) -> object:
    if given is None or isinstance(given, str) or callable(given):
        return given
    raise ValueError("a description is text, or a function that returns it")


class Approval(Part):
    """What a person decides before a tool is called (rule A6)."""

    allowed_decisions: frozenset[Decision] = frozenset(("approve", "edit", "reject", "respond"))
    description: Annotated[str | Callable[..., Any] | None, PlainValidator(_described)] = None
    """What the person is shown, or a function that writes it."""
    when: Function | None = None
    """Whether this call needs the approval; asked once, and stored. None: every call does."""


def asked(given: object) -> object:
    """Approvals as they are written: True is one with every decision, False is none."""
    if not isinstance(given, Mapping):
        return given
    return {name: Approval() if each is True else each for name, each in given.items() if each is not False}


class Hook(Part):
    """A function asked before or after each model or tool call of an agent (rule E18).

    It may allow, replace or deny. One that raises denies, unless it is not `required`.
    """

    call: Function
    name: Text | None = None
    """By which the release knows it again; None: the function's own. Unique among the hooks of one kind."""
    required: Flag = True


def _as_hook(given: object) -> object:
    return Hook(call=given) if callable(given) else given


HookList = tuple[Annotated[Hook, BeforeValidator(_as_hook)], ...]

HOOK_KINDS = ("before_model", "after_model", "before_tool", "after_tool")


class Hooks(Part):
    """Functions, or `Hook`s, in the order in which they are asked."""

    before_model: HookList = ()
    after_model: HookList = ()
    before_tool: HookList = ()
    after_tool: HookList = ()


class Compaction(Part):
    """When the history of a role is summarised (rule E17), in tokens of the request."""

    soft_tokens: Count | None = None
    """Above it, the history is summarised before the model is called. None: never."""
    hard_tokens: Count | None = None
    """Above it, even so, the agent run ends (`context_window_exceeded`)."""
    model: Model | None = None
    """Which writes the summary; None: the role's own."""
    system_prompt: Text | None = None
