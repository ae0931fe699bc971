"""Steps: what a scripted model or tool does when it is called.

A step is a plain value; `say`, `call` and the others make them. `tries` puts several into one place of a script, for
the same request made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from os import PathLike, fspath
from typing import Any, Literal, TypedDict, Unpack, get_args

from langgraph_ext.errors import InvalidArgument

__all__ = [
    "AUTOMATIC",
    "Answer",
    "Ending",
    "Failure",
    "How",
    "Moment",
    "Returned",
    "Step",
    "ToolCallPart",
    "Tries",
    "Usage",
    "breaks_after",
    "call",
    "calls",
    "exits",
    "fails",
    "hangs",
    "nothing",
    "refuses",
    "returns",
    "say",
    "tries",
    "truncated",
]

Moment = Literal["before", "middle", "after"]
Failure = BaseException | type[BaseException]
Usage = tuple[int, int] | Mapping[str, Any] | None


class Automatic(Enum):
    """Said where nothing was said: the id of a tool call follows from its place, usage from the texts."""

    AUTOMATIC = "automatic"


AUTOMATIC = Automatic.AUTOMATIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """When a process ends itself, and how."""

    moment: Moment
    how: Literal["kill", "exit"]
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What any call may do: wait, call a function, raise, end the process."""

    seconds: float = 0.0
    until: str | None = None
    during: Callable[[], Any] | None = None
    error: Failure | None = None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """One tool call of an answer, its arguments as the text that a model would write."""

    name: str
    args: str
    id: str | Automatic | None = AUTOMATIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Step):
    """What a model says. With an error it raises that behind all of it, as a broken stream does."""

    parts: tuple[str | ToolCallPart, ...] = ()
    finish_reason: str | None = None
    usage: Usage | Automatic = AUTOMATIC
    refusal: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned(Step):
    """What a tool returns: a value, or what a function of its arguments returns."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Tries:
    """Steps for one place of a script: for the first call of a request, the second, and so on; the last one stays."""

    steps: tuple[Any, ...]


class How(TypedDict, total=False):
    """Options of every step that answers or returns."""

    seconds: float
    until: str | PathLike[str] | None
    during: Callable[[], Any] | None


class Said(How, total=False):
    """Options of every answer of a model."""

    usage: Usage | Automatic
    finish_reason: str | None
    message_id: str | None


def say(text: str = "", **how: Unpack[Said]) -> Answer:
    """A model's step: answer with text.

    Args:
        text: The text.
        how: `usage`, what the model reports: `(input tokens, output tokens)`, a whole `UsageMetadata`, or None for a
            model that reports nothing; by default it is counted, a token for four characters. `finish_reason`, by
            default `"stop"`, or `"tool_calls"`. `message_id`, by default another one for each call. `seconds`
            to work before the answer; `until`, a file to wait for; `during`, a function that is called at work.
    """
    return _answer((text,) if text else (), how)


def call(
    name: str,
    args: Mapping[str, Any] | str = "{}",
    *,
    id: str | Automatic | None = AUTOMATIC,
    **how: Unpack[Said],
) -> Answer:
    """A model's step: call one tool; a part of `calls`, `truncated` or `breaks_after`, too.

    Args:
        name: The tool; it need not exist.
        args: Arguments; as text they are written as they stand, be they JSON or not.
        id: Its id; None leaves it out. By default it follows from the place in the script, and is the same each time.
        how: As for `say`.

    Raises:
        InvalidArgument: The arguments are not JSON.
    """
    return _answer((ToolCallPart(name, _text(name, args), id),), how)


def calls(*parts: str | Answer, **how: Unpack[Said]) -> Answer:
    """A model's step: say and call several things in one answer: `calls("Let me see.", call("a"), call("b"))`.

    Args:
        parts: Texts, `say(…)` and `call(…)`, in the order in which they are streamed.
        how: As for `say`.
    """
    return _answer(_parts(parts), how)


def truncated(*parts: str | Answer, **how: Unpack[Said]) -> Answer:
    """A model's step: an answer that reached its limit of output; `finish_reason` is `"length"`.

    Args:
        parts: As for `calls`. Of a last tool call half the arguments are left; write them as a text that is not
            JSON to cut them elsewhere: `call("search", '{"q": "lang')`.
        how: As for `say`.
    """
    return _answer(_cut(_parts(parts)), {"finish_reason": "length", **how})


def breaks_after(*parts: str | Answer, error: Failure | None = None, **how: Unpack[Said]) -> Answer:
    """A model's step: stream this much, then raise. Asked for a whole answer, it only raises.

    Args:
        parts: As for `truncated`.
        error: An exception, or a class; by default a `ConnectionError`.
        how: As for `say`.
    """
    broken = _raisable(error or ConnectionError("the stream broke"))
    return replace(_answer(_cut(_parts(parts)), how), error=broken)


def refuses(text: str = "I can't help with that.", *, finish_reason: str = "refusal", **how: Unpack[How]) -> Answer:
    """A model's step: refuse, by a complete answer without content; the text is `additional_kwargs["refusal"]`.

    Args:
        text: The refusal; `""` for a model that gives no reason.
        finish_reason: `"refusal"`, or `"content_filter"` of a provider that stops it on the way.
        how: As for `say`.
    """
    return replace(_answer((), {"finish_reason": finish_reason, **how}), refusal=text)


def nothing(**how: Unpack[Said]) -> Answer:
    """A model's step: a complete answer with neither text nor tool calls; `how` as for `say`."""
    return _answer((), how)


def returns(value: Any = None, **how: Unpack[How]) -> Returned:
    """A tool's step: act, and return a value.

    Args:
        value: Whatever a tool may return; or a function, which is called with the arguments, and returns it.
        how: `seconds`, `until` and `during` as for `say`: before it acts.
    """
    return Returned(value=value, **_pace(how))


def fails(error: Failure, **how: Unpack[How]) -> Step:
    """A step: raise an exception, such as one of `langchain_core.exceptions`, or a class; `how` as for `say`.

    A tool raises before it has acted.
    """
    return Step(error=_raisable(error), **_pace(how))


def hangs(seconds: float = 600.0, *, until: str | PathLike[str] | None = None) -> Step:
    """A step: answer nothing, until a file appears or so many seconds are over; then raise `TimeoutError`.

    Cancelled, a coroutine ends at once. A thread cannot be; a file in `until` lets it end with your test.
    """
    path = None if until is None else fspath(until)
    return Step(seconds=seconds, until=path, error=TimeoutError("hung, as the script says, and nobody gave up waiting"))


def exits(moment: Moment, step: str | Step = "", *, how: Literal["kill", "exit"] = "kill", code: int = 1) -> Step:
    """A step: end this process. In a script that goes on afterwards it belongs into `tries`.

    Args:
        moment: Of a model: `before` anything is said; in the `middle` of the answer; `after` all of it, when its end
            is on record and its caller has not been given it whole. Of a tool: `before` it acts; in the `middle`,
            having acted; `after` its end is on record, too.
        step: What it is in the middle of.
        how: `kill` is SIGKILL: no handler, no `finally`, no flush. `exit` is `os._exit(code)`.
        code: Of `exit`.

    Raises:
        InvalidArgument: There is no such moment, or no such way.
    """
    if moment not in get_args(Moment) or how not in ("kill", "exit"):
        raise InvalidArgument(f"exits({moment!r}, how={how!r}): use 'before', 'middle' or 'after', by 'kill' or 'exit'")
    ending = Ending(moment=moment, how=how, code=code)
    if step == "":
        return Step(ending=ending)
    return replace(say(step) if isinstance(step, str) else step, ending=ending)


def tries(*steps: Any) -> Tries:
    """Several steps for one place of a script: for a request, for the same made again, and so on.

    How often a request has been made is counted in the log, so that a restart does not begin anew. The last step
    answers all further ones.

    Args:
        steps: Each as it would stand alone: of a model a text will do, of a tool a value.

    Raises:
        InvalidArgument: There is no step.
    """
    if not steps:
        raise InvalidArgument("tries() needs a step: tries(fails(TimeoutError), say('hello'))")
    return Tries(steps)


def _answer(parts: tuple[str | ToolCallPart, ...], how: Mapping[str, Any]) -> Answer:
    said = {name: how[name] for name in ("usage", "finish_reason", "message_id") if name in how}
    return Answer(parts=parts, **said, **_pace(how))


def _pace(how: Mapping[str, Any]) -> dict[str, Any]:
    pace = {name: how[name] for name in ("seconds", "until", "during") if name in how}
    if pace.get("until") is not None:
        pace["until"] = fspath(pace["until"])
    return pace


def _parts(parts: tuple[str | Answer, ...]) -> tuple[str | ToolCallPart, ...]:
    found: list[str | ToolCallPart] = []
    for part in parts:
        found.extend((part,) if isinstance(part, str) else part.parts)
    return tuple(found)


def _cut(parts: tuple[str | ToolCallPart, ...]) -> tuple[str | ToolCallPart, ...]:
    """The same, without the second half of a last tool call's arguments."""
    if not parts or isinstance(last := parts[-1], str):
        return parts
    try:
        json.loads(last.args)
    except ValueError:  # cut already
        return parts
    return (*parts[:-1], replace(last, args=last.args[: max(1, len(last.args) // 2)]))


def _text(name: str, args: Mapping[str, Any] | str) -> str:
    if isinstance(args, str):
        return args
    try:
        return json.dumps(args, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the arguments of a call of {name!r} are not JSON: {error}") from error


def _raisable(error: Any) -> Failure:
    if isinstance(error, BaseException) or (isinstance(error, type) and issubclass(error, BaseException)):
        return error
    raise InvalidArgument(f"{error!r} cannot be raised; pass an exception, or its class")
