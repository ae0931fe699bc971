"""durable: a node function whose every execution is an attempt on record.

enter    one transaction: the lease, and whether the body may run (ledger/admission.py)
run      the body
leave    returned or asking: its end is staged, and stored with the task's writes (rule L4)
         raised or cancelled: its end is stored at once (rule L49)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.attempts import EffectClass
from langgraph_ext.nodes import door
from langgraph_ext.nodes.callables import check_takes, is_async, is_generator, name_of
from langgraph_ext.nodes.called import Called, called_with, own
from langgraph_ext.nodes.declared import Declared
from langgraph_ext.nodes.frames import entered, left
from langgraph_ext.nodes.place import Place, here
from langgraph_ext.saver.definition import DECLARED

__all__ = ["durable"]

R = TypeVar("R")
Effect = Literal["none", "write", "opaque"]
OnUnknown = Literal["stop", "retry", "probe"]
OnFork = Literal["act", "ask", "reuse"]


@overload
def durable(fn: Callable[..., R], /) -> Callable[..., R]: ...


@overload
def durable(
    *,
    effect: Effect = "none",
    kind: str | None = None,
    max_attempts: int | None = None,
    on_unknown: OnUnknown = "stop",
    probe: Callable[[str], Any] | None = None,
    accepts_steering: bool = False,
    on_fork: OnFork = "act",
) -> Callable[[Callable[..., R]], Callable[..., R]]: ...


def durable(
    fn: Any = None,
    /,
    *,
    effect: Effect = "none",
    kind: str | None = None,
    max_attempts: int | None = None,
    on_unknown: OnUnknown = "stop",
    probe: Callable[[str], Any] | None = None,
    accepts_steering: bool = False,
    on_fork: OnFork = "act",
) -> Any:
    """Make a node function durable: once its result is stored, its body does not run again for that visit.

    Works for sync and async functions, as nodes, below `@task`, and as functions that a node calls. Outside of a
    running graph the function is called as it is.

    Args:
        fn: The function. A parameter named `frame` is given the attempt's `Frame`.
        effect: What the body does to the outside world. `"none"`: nothing. `"write"`: it acts by `frame.once` only.
            `"opaque"`: it acts otherwise, so that an attempt that was interrupted is always in doubt.
        kind: What the node is, for whoever lists its attempts. Text that is not empty.
        max_attempts: Bounds the attempts of one visit, over retries, resumes and crashes together; None leaves that to
            LangGraph's policies.
        on_unknown: What to do when an earlier attempt left an effect in doubt: `"stop"` until somebody says how it
            went, `"retry"` with the same idempotency key, or ask `probe`. The latter two are for `effect="write"`.
        probe: `probe(key)` returns the receipt, or raises `EffectNotDone`. None is neither: the effect stays in doubt,
            and the run stops (`recovery_required`). It may be async if `fn` is.
        accepts_steering: Whether its attempts are given what others have told the run, in `frame.steering`.
        on_fork: What a fork, or a replay, does that comes to an effect which the run it was forked from had committed
            with the same name and payload: `"act"`, under a key of its own; `"ask"`, by a question of LangGraph's, that
            is answered `"reuse"`, `"act"` or `"stop"`; `"reuse"`, give the old receipt back. Effects with `key=` or
            `base_key=` are known again by that. For `effect="write"`.

    Raises:
        InvalidArgument: An option is none of these, or they contradict each other; or `fn` is a generator or a class.
    """
    declared = _declared(effect, kind, max_attempts, on_unknown, probe, bool(accepts_steering), on_fork)
    return _wrapped(fn, declared) if fn is not None else functools.partial(_wrapped, declared=declared)


def _declared(
    effect: str,
    kind: str | None,
    max_attempts: int | None,
    on_unknown: str,
    probe: Any,
    accepts_steering: bool,
    on_fork: str,
) -> Declared:
    if effect not in ("none", "write", "opaque"):
        raise InvalidArgument(f'durable: effect is {effect!r}; it must be "none", "write" or "opaque"')
    if on_unknown not in ("stop", "retry", "probe"):
        raise InvalidArgument(f'durable: on_unknown is {on_unknown!r}; it must be "stop", "retry" or "probe"')
    if on_unknown != "stop" and effect != "write":
        raise InvalidArgument(f'durable: on_unknown={on_unknown!r} is for effect="write"; effect is {effect!r}')
    if (on_unknown == "probe") != (probe is not None):
        raise InvalidArgument('durable: on_unknown="probe" and probe=fn go together')
    if on_fork not in ("act", "ask", "reuse"):
        raise InvalidArgument(f'durable: on_fork is {on_fork!r}; it must be "act", "ask" or "reuse"')
    if on_fork != "act" and effect != "write":
        raise InvalidArgument(f'durable: on_fork={on_fork!r} is for effect="write"; effect is {effect!r}')
    if probe is not None:
        check_takes(probe, "durable: probe", "the key")
    _check_kind(kind)
    if max_attempts is not None and (type(max_attempts) is not int or max_attempts < 1):
        raise InvalidArgument(f"durable: max_attempts is {max_attempts!r}; it must be a whole number from 1, or None")
    return Declared(
        effect=EffectClass(effect),
        kind=kind,
        max_attempts=max_attempts,
        on_unknown=on_unknown,
        probe=probe,
        accepts_steering=accepts_steering,
        on_fork=on_fork,
    )


def _check_kind(kind: object) -> None:
    if kind is None:
        return
    if not isinstance(kind, str) or not kind:
        raise InvalidArgument(f"durable: kind is {kind!r}; it must be text, and not empty")
    try:
        kind.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"durable: kind {kind!r} is not valid Unicode: {error.reason}") from None


def _signature(fn: Any, declared: Declared) -> inspect.Signature:
    """Of a function whose calls can be attempts.

    Raises:
        InvalidArgument: A call of it does not run its body, or its probe could not be awaited.
    """
    if not callable(fn):
        raise InvalidArgument(f"durable: {fn!r} is no function")
    name = name_of(fn)
    if inspect.isclass(fn):
        raise InvalidArgument(f"durable: {name} is a class; give a function, a method, or an object that can be called")
    if is_generator(fn):
        raise InvalidArgument(f"durable: {name} is a generator, of which a call runs nothing; return the result")
    if is_async(declared.probe) and not is_async(fn):
        raise InvalidArgument(f"durable: {name} is sync and its probe async: nobody would await it; give a sync one")
    try:
        return inspect.signature(fn)
    except ValueError as error:
        raise InvalidArgument(f"durable: {name} does not tell its parameters: {error}; wrap it in a function") from None


def _wrapped(fn: Callable[..., Any], declared: Declared) -> Callable[..., Any]:
    signature = _signature(fn, declared)
    wants_frame = "frame" in signature.parameters

    def given(kwargs: dict[str, Any], frame: Any) -> dict[str, Any]:
        return {**kwargs, "frame": frame} if wants_frame else kwargs

    wrapped: Any = (_awrapper if is_async(fn) else _wrapper)(fn, declared, given)
    setattr(wrapped, DECLARED, declared.told)
    if wants_frame:  # which LangGraph must not look for
        shown = [parameter for name, parameter in signature.parameters.items() if name != "frame"]
        wrapped.__signature__ = signature.replace(parameters=shown)
    return wrapped  # type: ignore[no-any-return]


def _called(place: Place, declared: Declared, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Called:
    if place.is_of(wrapper):
        return own(wrapper, declared.kind)
    return called_with(wrapper, declared.kind, args, kwargs)


def _wrapper(fn: Any, declared: Declared, given: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        place = here()
        if place is None:
            return fn(*args, **kwargs)
        if door.leaves_no_trace(place, declared):
            return fn(*args, **given(kwargs, None))
        admitted = door.enter(place, declared, _called(place, declared, wrapper, args, kwargs), wrapper)
        if isinstance(admitted, door.Result):
            return admitted.value
        with admitted as running:
            token = entered(running.frame)
            try:
                return running.returned(fn(*args, **given(kwargs, running.frame)))
            finally:
                left(token)

    return wrapper


def _awrapper(fn: Any, declared: Declared, given: Any) -> Any:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        place = here()
        if place is None:
            return await fn(*args, **kwargs)
        if door.leaves_no_trace(place, declared):
            return await fn(*args, **given(kwargs, None))
        admitted = await door.aenter(place, declared, _called(place, declared, wrapper, args, kwargs), wrapper)
        if isinstance(admitted, door.Result):
            return admitted.value
        async with admitted as running:
            token = entered(running.frame)
            try:
                return running.returned(await fn(*args, **given(kwargs, running.frame)))
            finally:
                left(token)

    return wrapper
