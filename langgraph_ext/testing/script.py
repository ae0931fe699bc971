"""Script: which step a call gets. What the call is decides, and what is on record; no counter in memory does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.testing.call_log import CallLog, ScriptedCall
from langgraph_ext.testing.steps import Step, Tries

__all__ = ["Asking", "Script", "assert_exhausted", "digest_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A call that is about to get a step."""

    kind: str
    name: str
    request: dict[str, Any]
    digest: str
    """Of the request."""
    turn: int | None = None
    """Its place by what it shows; None if it is placed by the order in which requests came first."""
    key: str | None = None
    """The name that its caller gave to it."""

    @property
    def identity(self) -> str:
        """What makes it the same call again."""
        return self.digest if self.key is None else f"key:{self.key}"


class Script:
    """Steps by their places: one for all calls, a list, or a mapping of keys.

    Args:
        given: As the user wrote it.
        make: Makes a step of what is none, or raises TypeError.
        where: What an error calls it.

    Raises:
        InvalidArgument: Something in it is no step, or there is none.
    """

    def __init__(self, given: Any, make: Callable[[Any], Step], where: str) -> None:
        self.where = where
        self._always: tuple[Step, ...] | None = None
        self._ordered = isinstance(given, Sequence) and not isinstance(given, str | bytes)
        self._steps: dict[int | str, tuple[Step, ...]] = {}
        if isinstance(given, Mapping):
            found: Iterable[tuple[Any, Any]] = given.items()
        elif self._ordered:
            found = enumerate(given)
        else:
            self._always = _tries(given, make, where)
            return
        self._steps = {place: _tries(each, make, f"{where}[{place!r}]") for place, each in found}
        if not self._steps:
            raise InvalidArgument(f"{where} has no step; write one, such as say('hello')")

    @property
    def keyed(self) -> bool:
        """Whether a call is found by its key."""
        return self._always is None and not self._ordered

    def begin(self, asking: Asking, log: CallLog) -> tuple[ScriptedCall, Step]:
        """Put a call on record, with the step that it gets.

        Raises:
            NotFound: The script has none for it (`script_exhausted`); that is on record, too.
        """
        found = log.begin(lambda calls: self._chosen(asking, [*calls]))
        if found.place is None:
            raise NotFound(self._missing(asking, found), code="script_exhausted", details={"digest": asking.digest})
        steps = self._steps[found.place] if self._always is None else self._always
        return found, steps[min(found.tried, len(steps)) - 1]

    def unused(self, calls: Iterable[ScriptedCall]) -> list[str]:
        """Which steps nobody has had, of the calls of its name."""
        most: dict[int | str | None, int] = {}
        for each in calls:
            most[each.place] = max(most.get(each.place, 0), each.tried)
        return [
            f"{self.where}[{place!r}]" + (f", try {n}" if len(steps) > 1 else "")
            for place, steps in self._steps.items()
            for n in range(most.get(place, 0) + 1, len(steps) + 1)
        ]

    def _chosen(self, asking: Asking, calls: list[ScriptedCall]) -> dict[str, Any]:
        mine = [each for each in calls if (each.kind, each.name) == (asking.kind, asking.name)]
        same = [each for each in mine if each.place is not None]
        place = self._place(asking, same)
        known = self._always is not None or place in self._steps
        tried = sum(each.place == place and each.identity == asking.identity for each in same)
        chosen = {name: getattr(asking, name) for name in ("kind", "name", "digest", "key", "request")}
        if not known:
            return {**chosen, "place": None, "tried": 1, "outcome": "refused"}
        return {**chosen, "place": place, "tried": tried + 1}

    def _place(self, asking: Asking, same: list[ScriptedCall]) -> int | str:
        if asking.key is not None and not self._ordered:
            return asking.key
        if asking.key is None and asking.turn is not None:
            return asking.turn
        seen = {each.identity: each.place for each in reversed(same)}
        found = seen.get(asking.identity)
        return len(seen) if found is None else found

    def _missing(self, asking: Asking, found: ScriptedCall) -> str:
        shown = asking.request.get("messages")
        if shown is None:
            asked = f"a call with {_short(asking.request['args'])}"
        else:
            last = f", the last from {shown[-1]['type']}: {_short(shown[-1]['content'])}" if shown else ""
            asked = f"a request of {len(shown)} messages{last}"
        by = f"by the key {asking.key!r}" if asking.key is not None else "in its place"
        if asking.turn is not None and asking.key is None:
            by = f"for turn {asking.turn} ({asking.turn} messages from ai before it)"
        there = ", ".join(map(repr, list(self._steps)[:10]))
        return (
            f"{self.where} has no step {by}; it has {there}. Asked was {asked} ({found.digest[:15]}…). "
            "Add a step, or look at `calls` for who asks"
        )


def assert_exhausted(scripts: Mapping[str, Script], kind: str, log: CallLog) -> None:
    """Every step was had, and every call got one.

    Raises:
        AssertionError: Some were not; the message names them.
    """
    calls = [each for each in log.calls() if each.kind == kind]
    wrong = []
    for name, script in scripts.items():
        mine = [each for each in calls if each.name == name]
        wrong += [f"nobody had {step}" for step in script.unused(mine)]
        wrong += [f"{script.where} had no step for a call ({each.digest[:15]}…)" for each in mine if each.place is None]
    assert not wrong, "\n".join(["the script is not exhausted:", *wrong])


def digest_of(value: Any) -> str:
    """Of JSON, or what is nearly so: the rest counts by its `repr`."""
    return canonical.digest(json.dumps(value, sort_keys=True, default=repr).encode())


def _tries(given: Any, make: Callable[[Any], Step], where: str) -> tuple[Step, ...]:
    try:
        return tuple(map(make, given.steps)) if isinstance(given, Tries) else (make(given),)
    except TypeError as error:
        raise InvalidArgument(f"{where} is no step: {error}") from error


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return repr(text if len(text) <= 80 else text[:79] + "…")
