"""Capabilities: one tool, or one runnable, by itself, and how its calls are treated: as an agent treats its tools.

Nothing of it is stored here. Who calls it keeps the record (nodes/capability_visits.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BeforeValidator

from langgraph_ext.engine import hooks
from langgraph_ext.engine.approvals import Needed, call_of, question_about
from langgraph_ext.engine.argument_checks import argument_fault
from langgraph_ext.engine.calling_tools import filled_in, is_async
from langgraph_ext.engine.descriptors import hook_name, told_approval
from langgraph_ext.engine.hooks import Asked
from langgraph_ext.engine.moves import outcome_of
from langgraph_ext.engine.retries import retry_after
from langgraph_ext.engine.spec_checks import check_hooks
from langgraph_ext.engine.spec_drafts import DraftTool, name_of
from langgraph_ext.engine.spec_parts import Part, Seconds
from langgraph_ext.engine.spec_policies import Approval, Deadlines, Hook, Hooks, Retry, ToolPolicy
from langgraph_ext.engine.spec_ranges import range_faults, retry_numbers, seconds_number
from langgraph_ext.engine.spec_tools import ReadTool, effect_of, policy_faults, read
from langgraph_ext.errors import Diagnostic, SpecInvalid

__all__ = ["Capability", "CapabilitySpec", "compile_capability"]

Store = Callable[[Any, str], object]
"""`store(value, what)`: raises if a value cannot be stored."""


def _asked(given: object) -> object:
    return Approval() if given is True else None if given is False else given


class CapabilitySpec(Part):
    """How the calls of one tool or runnable are treated, as its user writes it."""

    policy: ToolPolicy = ToolPolicy()
    timeout_seconds: Seconds | None = Deadlines().tool_seconds
    retry: Retry | None = None
    hooks: Hooks = Hooks()
    interrupt_on: Annotated[Approval | None, BeforeValidator(_asked)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One tool or runnable, and how its calls are treated."""

    name: str
    called: Runnable[Any, Any]
    tool: ReadTool | None
    """What is known of it, if it is a tool."""
    effect: str
    """`repeatable`, `once` or `keyed`."""
    on_unknown: str | Callable[..., Any]
    seconds: float | None
    """How long a call may take."""
    retry: Mapping[str, Any] | None
    before: tuple[hooks.Named, ...]
    after: tuple[hooks.Named, ...]
    approval: Needed | None

    @property
    def told(self) -> dict[str, str]:
        """What of it makes a node another one."""
        asked = self.on_unknown
        return {"policy": self.effect, "on_unknown": asked if isinstance(asked, str) else name_of(asked) or "function"}

    def is_awaited(self, *, in_loop: bool) -> bool:
        """Whether a call of it is awaited, and ends when it is cancelled; else it is made in a thread.

        Args:
            in_loop: Whether its caller awaits things. A tool says by itself how it is called.
        """
        return in_loop if self.tool is None else is_async(self.tool.tool)

    def request(self, args: Any, call_id: str, given: Mapping[str, Any], key: str, *, as_call: bool) -> Any:
        """What it is called with.

        Args:
            args: A tool's arguments, or a runnable's input.
            call_id: The id of the call.
            given: Arguments that the program fills in.
            key: The idempotency key.
            as_call: Whether a tool is given a tool call, and answers with a message.
        """
        if self.tool is None:
            return args
        args = filled_in(args, self.tool.injected, given, self.tool.keys, key)
        if not as_call and not self.tool.takes_call_id:
            return args
        return {"type": "tool_call", "name": self.tool.tool.name, "args": args, "id": call_id}

    def fault_of(self, args: Any) -> str | None:
        """What is wrong with arguments; None if nothing is."""
        return None if self.tool is None else argument_fault(self.tool.tool, args, self.tool.injected)

    def question(self, args: Any, call_id: str) -> dict[str, Any] | None:
        """What a person is shown before it is called; None if nobody has to see that."""
        if self.approval is None:
            return None
        call = call_of(self.name, call_id, args)
        return question_about([call], {self.name: self.approval}, who="The graph")

    async def ask_before(self, args: Any, call_id: str, store: Store) -> Asked:
        """Ask the hooks before a call, of `{"name", "id", "args"}`."""

        def fits(value: Any) -> None:
            if not isinstance(value, dict):
                raise TypeError(f"a request is a dict, and not a {type(value).__name__}")
            hooks.check_same_call(value, self.name, call_id)
            store(value["args"], "args")
            if (fault := self.fault_of(value["args"])) is not None:
                raise TypeError(fault)

        return await hooks.ask(self.before, {"name": self.name, "id": call_id, "args": args}, fits)

    async def ask_after(self, outcome: dict[str, Any], store: Store) -> Asked:
        """Ask the hooks after a call, of `{"value": what it has returned}`."""
        return await hooks.ask(self.after, outcome, lambda value: outcome_of(value, store))

    def retry_after(self, number: int, error: Exception) -> float | None:
        """Seconds until another call; None if there is none."""
        return retry_after(self.retry, number, error)


def compile_capability(called: Any, name: str | None, spec: CapabilitySpec) -> Capability:
    """Look at a tool or runnable, and at how it is to be treated. Nothing is called.

    Args:
        called: A langchain-core tool, a function with a docstring, or another runnable.
        name: What it is called; None: by its own name.
        spec: How its calls are treated.

    Raises:
        SpecInvalid: Something is wrong; everything is told.
    """
    known = None if isinstance(called, Runnable) and not isinstance(called, BaseTool) else _read(called)
    found = [*_faults(spec), *(known if isinstance(known, list) else _policy_faults(called, known, spec))]
    if found or isinstance(known, list):
        raise SpecInvalid(found)
    runnable: Runnable[Any, Any] = called if known is None else known.tool
    policy, approval = spec.policy, spec.interrupt_on
    own = name or runnable.get_name()
    return Capability(
        name=own,
        called=runnable,
        tool=known,
        effect=str(_effect_of(runnable, known, policy)),
        on_unknown=policy.on_unknown,
        seconds=spec.timeout_seconds,
        retry=None if spec.retry is None else spec.retry.model_dump(),
        before=tuple(map(_named, spec.hooks.before_tool)),
        after=tuple(map(_named, spec.hooks.after_tool)),
        approval=None if approval is None else _needed(approval),
    )


def _read(called: Any) -> ReadTool | list[Diagnostic]:
    if (not callable(called) and not isinstance(called, BaseTool)) or inspect.isclass(called):
        message = f"is of type {type(called).__name__}; give a langchain-core tool, a function, or a runnable"
        return [Diagnostic(code="schema_invalid", path=_AT, message=message)]
    return read(DraftTool(_AT, None, called))


_AT = "/capability"


def _effect_of(called: Any, known: ReadTool | None, policy: ToolPolicy) -> object:
    """What a call does outside: as for an agent's tools; that of a model alone may be repeated."""
    if known is not None:
        return effect_of(known, policy)
    return policy.effect or ("repeatable" if isinstance(called, BaseLanguageModel) else "once")


def _policy_faults(called: Any, known: ReadTool | None, spec: CapabilitySpec) -> Iterator[Diagnostic]:
    if known is not None:
        yield from policy_faults(known, spec.policy, "/policy/effect")
        return
    if spec.policy.effect == "keyed":
        yield Diagnostic(
            code="keyed_without_key",
            path="/policy/effect",
            related=(_AT,),
            message="a runnable that is no tool takes no idempotency key; make a tool of it, with an argument marked "
            "InjectedIdempotencyKey",
        )
    if spec.interrupt_on is not None:
        yield Diagnostic(
            code="approval_without_arguments",
            path="/interrupt_on",
            related=(_AT,),
            message="a person decides on the arguments of a tool, and this is a runnable; make a tool of it",
        )


def _faults(spec: CapabilitySpec) -> Iterator[Diagnostic]:
    yield from range_faults([seconds_number("/timeout_seconds", spec.timeout_seconds), *retry_numbers(spec.retry)])
    yield from check_hooks(spec.hooks)
    for kind in ("before_model", "after_model"):
        if getattr(spec.hooks, kind):
            message = "this has no model of its own; give before_tool and after_tool, which are asked of its calls"
            yield Diagnostic(code="hook_without_model", path=f"/hooks/{kind}", message=message)


def _named(hook: Hook) -> hooks.Named:
    return hooks.Named(hook_name(hook), hook.required, hook.call)


def _needed(approval: Approval) -> Needed:
    text = approval.description
    return Needed(told_approval(approval), approval.when, text if callable(text) else None)
