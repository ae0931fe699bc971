"""The clock of a story: how often the worker has committed, and how it stands. A file that its processes share."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

__all__ = ["PEOPLE", "Clock", "Stand", "wait_until"]

PEOPLE = ("ann", "bob")

_SIZE = 64
_COMMITS, _STAND, _LOOKS, _TURNS, _DONE = 0, 1, 2, 3, 5
"""Which word is what; the last two have one for each person."""

_LOOK_SECONDS = 0.0003
_PATIENCE_SECONDS = 60.0


class Stand(IntEnum):
    """How the worker stands."""

    RUNS = 0
    WAITS = 1
    """For an answer, or for a higher limit."""
    DEAD = 2
    """It was killed, and the next one is not there yet."""
    OVER = 3
    """The run has ended."""


class Clock:
    """Words that one process each writes: the worker its commits and its stand, a person its turns."""

    def __init__(self, words: memoryview) -> None:
        self._words = words

    @classmethod
    @contextmanager
    def of(cls, folder: str) -> Iterator[Clock]:
        """The clock of the story in a folder."""
        with (
            Path(folder, "clock").open("r+b") as file,
            mmap.mmap(file.fileno(), _SIZE) as shared,
            memoryview(shared) as plain,
            plain.cast("Q") as words,
        ):
            yield cls(words)

    @staticmethod
    def make(folder: str) -> None:
        """A new one."""
        Path(folder, "clock").write_bytes(bytes(_SIZE))

    def tick(self) -> None:
        """The worker has committed."""
        self._words[_COMMITS] += 1

    def stands(self, stand: Stand) -> None:
        """The worker stands so; said again, it has looked again."""
        self._words[_STAND] = stand
        self._words[_LOOKS] += 1

    @property
    def commits(self) -> int:
        """How often workers have committed."""
        return self._words[_COMMITS]

    def wait_for_turn(self, person: int, commits: int) -> int:
        """Wait until a person may act; returns which turn that is.

        It may if workers have committed so often; and while none runs, once for each of its looks.
        """
        wait_until(lambda: self._has_turn(person, commits), f"{PEOPLE[person]} has a turn")
        return self._words[_LOOKS]

    def _has_turn(self, person: int, commits: int) -> bool:
        stand = self._words[_STAND]
        if stand == Stand.RUNS:
            return self._words[_COMMITS] >= commits
        return stand == Stand.OVER or self._words[_TURNS + person] != self._words[_LOOKS]

    def has_acted(self, person: int, turn: int) -> None:
        """A person has used its turn."""
        self._words[_TURNS + person] = turn

    def is_done(self, person: int) -> None:
        """A person has nothing more to do."""
        self._words[_DONE + person] = 1

    @property
    def all_done(self) -> bool:
        """Whether nobody has anything more to do."""
        return all(self._words[_DONE + n] for n in range(len(PEOPLE)))

    @property
    def all_have_acted(self) -> bool:
        """Whether everybody has used the turn that the worker's stand gives, or is done."""
        looks = self._words[_LOOKS]
        return all(self._words[_DONE + n] or self._words[_TURNS + n] == looks for n in range(len(PEOPLE)))


def wait_until(met: Callable[[], bool], what: str) -> None:
    """Look again and again.

    Raises:
        AssertionError: It is not met in a minute.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not met():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(_LOOK_SECONDS)
