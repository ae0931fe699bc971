"""EffectLog: a file in which several processes write down what they did to the outside world.

It stands for the outside world in a crash test: what it holds has happened, whatever became of the process that did it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from os import PathLike, fspath
from typing import Any

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.lines import alone, append, whole

__all__ = ["EffectLog"]


class EffectLog:
    """Effects by their keys, in the order in which they happened. A line that was cut short is no effect.

    Every line is one write at the end of the file, synced before `record` returns. Any number of threads and processes
    may share a file.

    Args:
        path: The file; made by the first `record`, for its owner alone (mode 0600).
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = os.path.abspath(fspath(path))

    def __repr__(self) -> str:
        return f"EffectLog({self.path!r})"

    def record(self, key: str, /, **facts: Any) -> None:
        """Write down that an effect has happened; it is on disk when this returns.

        Args:
            key: Which effect it is, the same whenever it is done again.
            facts: What else to remember of it; JSON. Any name will do, `key` too.

        Raises:
            InvalidArgument: The key is no text, or empty, or the facts are not JSON.
            OSError: It cannot be written.
        """
        if not key or type(key) is not str:
            raise InvalidArgument(f"{key!r} names no effect; pass a text that is the same whenever it is done again")
        try:
            line = json.dumps({"key": key, "facts": facts}).encode()
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"the facts of effect {key!r} are not JSON: {error}") from error
        with alone(self.path):
            append(self.path, line, f"effect {key!r}")

    def count(self, key: str) -> int:
        """How often this effect has happened."""
        return len(self.facts(key))

    def counts(self) -> dict[str, int]:
        """How often each effect has happened, in the order of their first times."""
        return dict(Counter(key for key, _ in self.effects()))

    def keys(self) -> list[str]:
        """The effects that have happened, each once, in the order of their first times."""
        return list(self.counts())

    def facts(self, key: str) -> list[dict[str, Any]]:
        """What was remembered of each time that this effect happened."""
        return [facts for found, facts in self.effects() if found == key]

    def effects(self) -> list[tuple[str, dict[str, Any]]]:
        """Each time that any effect happened: its key, and what was remembered of it, in this order."""
        try:
            with open(self.path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        found = [each for line in lines if (each := whole(line)) is not None]
        return [(each["key"], each["facts"]) for each in found if each.keys() == {"key", "facts"}]
