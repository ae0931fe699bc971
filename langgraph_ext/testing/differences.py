"""Differences between plain values, by the path of what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["ALL", "Flat", "differing", "flat", "named_but", "short"]

ALL = "*"
"""Among names that are not compared: all of them."""

Flat = Mapping[str, str]
"""What stands at each path of a value, as text."""

_LONGEST = 80


def flat(values: Mapping[str, Any]) -> Flat:
    """What stands at each path: `{"items[0].cents": "700"}`. As text, `1`, `1.0` and `True` differ, and NaN is NaN."""
    return dict(_leaves("", values)) if values else {}


def differing(one: Flat, other: Flat) -> Iterator[str]:
    """The paths at which two flat values differ, in their order."""
    return (path for path in dict.fromkeys([*one, *other]) if one.get(path) != other.get(path))


def named_but(values: Mapping[str, Any], ignored: Collection[str]) -> dict[str, Any]:
    """The values whose names are not ignored."""
    return {} if ALL in ignored else {name: value for name, value in values.items() if name not in ignored}


def short(text: str | None) -> str:
    """A value in a message; None where there is none."""
    if text is None:
        return "not there"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list | tuple) and value:
        for place, part in enumerate(value):
            yield from _leaves(f"{path}[{place}]", part)
    else:
        yield path, repr(list(value) if isinstance(value, tuple) else value)
