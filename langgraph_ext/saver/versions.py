"""Channel versions: they grow, and two forks of one checkpoint do not share them.

A version is text, 32 digits of a counter and some random ones (`00000000000000000000000000000007.9c0ffe11`): LangGraph
compares the versions of a thread with each other, and its server and its own savers write text that begins this way, so
a thread may go on under any of them. A thread that began with integers or floats keeps its kind.
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
        return _text(1)
    if isinstance(current, str):
        counter = current.split(".", 1)[0]
        if not counter.isdecimal():
            raise InvalidArgument(
                f"channel version {current!r} does not begin with a number, so it has no next one; "
                "give the saver that wrote it, or a subclass with its own get_next_version"
            )
        return _text(int(counter) + 1)
    if isinstance(current, float):
        return int(current) + 1 + random.random()
    return ((current >> _RANDOM_BITS) + 1) << _RANDOM_BITS | random.getrandbits(_RANDOM_BITS)


def _text(counter: int) -> str:
    return f"{counter:032}.{random.getrandbits(_RANDOM_BITS):08x}"
