"""Matching: which parts of some bytes stand in others, too, in the same order.

Made for encodings of a value before and after a step: mostly one begins with the other; else something in the middle
was changed, put in or taken away, or the beginning is gone. It finds what it finds, in a bounded number of searches;
whether that is worth anything is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["Match", "matches"]

_ANCHOR = 64
"""Bytes that must be alike for a place to be looked at."""

_LEAST = 16
"""Bytes of a match."""

_SKIPPED = (0, 16, 256, 4096)
"""How far behind a difference it is tried to take up the thread again."""

_MOST = 8
"""Matches looked for between the common beginning and the common end."""


class Match(NamedTuple):
    """`old[old_start : old_start + length] == new[start : start + length]`."""

    old_start: int
    start: int
    length: int


def matches(old: bytes, new: bytes) -> list[Match]:
    """Parts of `new` that stand in `old`, ascending in both and not overlapping."""
    most = min(len(old), len(new))
    ahead = _alike(_forwards(old, 0, new, 0), most)
    behind = _alike(_backwards(old, len(old), new, len(new)), most - ahead)
    old_end, end = len(old) - behind, len(new) - behind
    found = [Match(0, 0, ahead)]
    while len(found) <= _MOST:
        last = found[-1]
        match = _next(old, last.old_start + last.length, old_end, new, last.start + last.length, end)
        if match is None:
            break
        found.append(match)
    found.append(Match(old_end, end, behind))
    return [match for match in _slid(old, new, found) if match.length >= _LEAST]


def _slid(old: bytes, new: bytes, found: list[Match]) -> Iterator[Match]:
    """Of two matches with nothing between them in `old`, as much as possible is the first one's.

    What was put in is often much like what stands before it, such as one more of several items: so it is all of it that
    was put in, and not the end of the last one with the beginning of it.
    """
    last = found[0]
    for match in found[1:]:
        stop = last.old_start + last.length
        if stop == match.old_start:
            more = _alike(_forwards(old, stop, new, last.start + last.length), match.length)
            last = last._replace(length=last.length + more)
            match = Match(match.old_start + more, match.start + more, match.length - more)  # noqa: PLW2901
        yield last
        last = match
    yield last


def _next(old: bytes, i: int, old_end: int, new: bytes, j: int, end: int) -> Match | None:
    """The longest match of those places that are tried, between there and the ends."""
    best: Match | None = None
    for here, there in _anchors(old, i, old_end, new, j, end):
        back = _alike(_backwards(old, here, new, there), min(here - i, there - j))
        at, start = here - back, there - back
        match = Match(at, start, _alike(_forwards(old, at, new, start), min(old_end - at, end - start)))
        if best is None or match.length > best.length:
            best = match
        if 2 * match.length >= min(old_end - i, end - j):
            break
    return best


def _anchors(old: bytes, i: int, old_end: int, new: bytes, j: int, end: int) -> Iterator[tuple[int, int]]:
    """Places in both at which the same bytes stand."""
    if end - j >= _ANCHOR and (at := old.find(new[j : j + _ANCHOR], i, old_end)) >= 0:
        yield at, j
    for skipped in _SKIPPED:
        place = i + skipped
        if old_end - place >= _ANCHOR and (at := new.find(old[place : place + _ANCHOR], j, end)) >= 0:
            yield place, at


def _forwards(old: bytes, i: int, new: bytes, j: int) -> Callable[[int, int], bool]:
    return lambda at, size: old[i + at : i + at + size] == new[j + at : j + at + size]


def _backwards(old: bytes, i: int, new: bytes, j: int) -> Callable[[int, int], bool]:
    return lambda at, size: old[i - at - size : i - at] == new[j - at - size : j - at]


def _alike(equal: Callable[[int, int], bool], most: int) -> int:
    """How many bytes are alike, of `most`; `equal(at, size)` says so of some of them."""
    done, step = 0, _ANCHOR
    while done < most:
        size = min(step, most - done)
        if equal(done, size):
            done, step = done + size, 2 * step
            continue
        while size > 1:  # the first that differs is among these
            half = size // 2
            if equal(done, half):
                done, size = done + half, size - half
            else:
                size = half
        return done
    return done
