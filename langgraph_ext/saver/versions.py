"""Channel versions: integers that grow, and that two forks of one checkpoint do not share.

A version is `counter << 32 | 32 random bits`. A thread that began under another saver keeps its kind: text versions
continue as text (as InMemorySaver and the LangGraph server write them), floats as floats.
"""

from __future__ import annotations

import random

from langgraph_ext.errors import InvalidArgument

__all__ = ["Version", "next_version"]

Version = int | float | str

_RANDOM_BITS = 32


def next_version(current: Version | None) -> Version:
    """A version after `current`, of its kind; the first one when it is None.

    Raises:
        InvalidArgument: `current` is text that does not begin with a number.
    """
    if current is None:
        return 1 << _RANDOM_BITS | random.getrandbits(_RANDOM_BITS)
    if isinstance(current, str):
        return _next_text(current)
    if isinstance(current, float):
        return int(current) + 1 + random.random()
    return ((current >> _RANDOM_BITS) + 1) << _RANDOM_BITS | random.getrandbits(_RANDOM_BITS)


def _next_text(current: str) -> str:
    counter = current.split(".", 1)[0]
    if not counter.isdecimal():
        raise InvalidArgument(
            f"channel version {current!r} does not begin with a number, so it has no next one; "
            "give the saver that wrote it, or a subclass with its own get_next_version"
        )
    return f"{int(counter) + 1:032}.{random.random():016}"
