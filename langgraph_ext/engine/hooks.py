"""Hooks: functions that are asked before and after each model or tool call (rule E18).

A hook is called with what is about to be sent, or what has come back, as plain values, and returns None to allow it,
`Replace(value)`, or `Deny(message)`. It is given a copy: only what it returns counts. Hooks of one kind are asked in
their declared order, each with what the one before has made of it, until one denies. What they decided is stored before
the next step, and they are not asked again.

A hook that is asked of answers may have a method `behind(messages)`: what that returns is asked in its place, of the
answer to these messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.engine.cancelled import is_end_of_caller
from langgraph_ext.engine.in_threads import in_thread
from langgraph_ext.ledger.texts import message_of

__all__ = ["Asked", "Deny", "Named", "Replace", "ask", "behind", "check_same_call"]


class Replace(NamedTuple):
    """Another value instead; JSON."""

    value: Any


class Deny(NamedTuple):
    """It must not be."""

    message: str
    """What is wrong; a model may read it."""


class Named(NamedTuple):
    """A hook under its name."""

    name: str
    required: bool
    """Whether it denies if it raises; else it is passed over."""
    call: Callable[[Any], Any]


class _Misfit(TypeError):
    """A hook has returned what none may."""


class Asked(NamedTuple):
    """What came of asking."""

    value: Any
    decisions: list[dict[str, Any]]
    """One a hook that was asked: its name, and what it decided; for the record."""
    denied: str | None


def behind(hooks: Sequence[Named], messages: Sequence[BaseMessage]) -> list[Named]:
    """The same hooks, where those that want to know it know what the model was sent."""
    return [each._replace(call=each.call.behind(messages)) if hasattr(each.call, "behind") else each for each in hooks]


async def ask(hooks: Sequence[Named], value: Any, fits: Callable[[Any], object]) -> Asked:
    """Ask hooks of one kind.

    Args:
        hooks: In their order.
        value: What they are asked about.
        fits: Raises if a value cannot stand in its place; a hook that has given it counts as one that has raised.
    """
    decisions: list[dict[str, Any]] = []
    for hook in hooks:
        try:
            decided = await _ask(hook, value, fits)
        except BaseException as error:  # a user's function; whatever it raises denies
            if is_end_of_caller(error):
                raise
            if not hook.required:
                decisions.append({"hook": hook.name, "decision": "failed", "error": type(error).__name__})
                continue
            # what a hook raises itself may hold anything
            told = str(error) if isinstance(error, _Misfit) else f"raised {type(error).__name__}"
            message = f"hook {hook.name!r} {told}"
            decided = Deny(message)
        decisions.append({"hook": hook.name, "decision": _word(decided)})
        if isinstance(decided, Deny):
            return Asked(value, decisions, message_of(decided.message))
        if isinstance(decided, Replace):
            value = decided.value
    return Asked(value, decisions, None)


def check_same_call(value: dict[str, Any], name: str, call_id: str) -> None:
    """See that what a hook has made of a tool's request is a request of the same call.

    Raises:
        TypeError: It is none.
    """
    same = {"name": name, "id": call_id}
    if {**same, **value} != {**same, "args": value.get("args")} or not {"id", "args"} <= value.keys():
        raise TypeError("a tool's request has the name and the id that it had, and args")


async def _ask(hook: Named, value: Any, fits: Callable[[Any], object]) -> Replace | Deny | None:
    given = deepcopy(value)
    decided = hook.call(given) if inspect.iscoroutinefunction(hook.call) else await in_thread(hook.call, given)
    if inspect.isawaitable(decided):
        decided = await decided
    if isinstance(decided, Replace):
        fits(decided.value)
    if not isinstance(decided, Replace | Deny | None):
        raise _Misfit(f"has returned a {type(decided).__name__}; a hook returns None, Replace(…) or Deny(…)")
    return decided


def _word(decided: Replace | Deny | None) -> str:
    return "allowed" if decided is None else "denied" if isinstance(decided, Deny) else "replaced"
