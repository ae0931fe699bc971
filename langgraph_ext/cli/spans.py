"""Spans of time as people write them: `30d`, `12h`, `90`."""

from __future__ import annotations

import re

from langgraph_ext.errors import InvalidArgument

__all__ = ["seconds_of"]

_SPAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhdw]?)")

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds_of(span: str | None, option: str) -> float | None:
    """How many seconds that is; None if nothing was said.

    Raises:
        InvalidArgument: It is no span of time.
    """
    if span is None:
        return None
    found = _SPAN.fullmatch(span.strip())
    if found is None:
        raise InvalidArgument(f"{option} {span!r} is no span of time; write 90 (seconds), 45m, 12h, 30d or 8w")
    return float(found["number"]) * _SECONDS[found["unit"]]
