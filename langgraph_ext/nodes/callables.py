"""Callables: functions that are handed over to be called later are looked at before anything is written."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from langgraph_ext.errors import InvalidArgument

__all__ = ["check_takes", "is_async", "is_generator", "left_unawaited", "name_of"]


def name_of(fn: Any) -> str:
    """What a message calls it. Never its `repr`: that of a partial shows what it was given."""
    return str(getattr(fn, "__qualname__", None) or f"<{type(fn).__qualname__}>")


def is_async(fn: Any) -> bool:
    """Whether a call of it is awaited: an async function, a partial or method of one, an object with one for a call."""
    return any(inspect.iscoroutinefunction(each) for each in _bodies(fn))


def is_generator(fn: Any) -> bool:
    """Whether it is a generator, sync or async: a call of it runs nothing of its body."""
    return any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in _bodies(fn))


def _bodies(fn: Any) -> tuple[Any, ...]:
    """What a call may run: the function itself, or what the type of an object says."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return (fn, type(fn).__call__) if callable(fn) else ()


def check_takes(fn: Any, who: str, given: str | None = None) -> None:
    """A function that will be called with one argument, or with none, is one that can be.

    Args:
        fn: What was handed over.
        who: The beginning of the message.
        given: What it will be called with, in words; None for nothing.

    Raises:
        InvalidArgument: It is no function, a generator, or cannot be called so. What does not tell its parameters, as
            some of C's functions, passes.
    """
    called = "nothing" if given is None else given
    if not callable(fn):
        raise InvalidArgument(f"{who}: {name_of(fn)} is no function; give one, which is then called with {called}")
    if is_generator(fn):
        raise InvalidArgument(f"{who}: {name_of(fn)} is a generator, of which a call runs nothing; give a function")
    try:
        signature = inspect.signature(fn, follow_wrapped=False)  # what a decorator adds is its own affair
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*(() if given is None else (given,)))
    except TypeError as error:
        why, count = f"{name_of(fn)} cannot be called with {called} alone: {error}", "one" if given else "no"
        raise InvalidArgument(f"{who}: {why}; give a function of {count} argument") from None


def left_unawaited(answer: Any) -> bool:
    """Whether an answer is something to await; a coroutine is closed, so that nobody hears of it later."""
    if inspect.iscoroutine(answer):
        answer.close()
    return inspect.isawaitable(answer)
