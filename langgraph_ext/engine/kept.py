"""Kept: values in memory, as many as fit, for each database by itself. To forget one costs a read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from langgraph_ext.database import Database

__all__ = ["Kept", "by_database"]

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by a name, those that were used last. May be used by several threads.

    Args:
        most: What they may come to, in whatever they are measured with.
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._mutex = threading.Lock()

    def find(self, name: str) -> T | None:
        """What was kept under a name."""
        with self._mutex:
            if name not in self._values:
                return None
            self._values.move_to_end(name)
            return self._values[name][0]

    def keep(self, name: str, value: T, size: int) -> None:
        """Keep a value instead of the one before, if it fits; those that were used longest ago are forgotten for it."""
        with self._mutex:
            _, before = self._values.pop(name, (None, 0))
            self._size -= before
            if size > self._most:
                return
            self._values[name] = value, size
            self._size += size
            while self._size > self._most:
                _, (_, forgotten) = self._values.popitem(last=False)
                self._size -= forgotten


def by_database(make: Callable[[], T]) -> Callable[[Database], T]:
    """What gives each database its own of what is made, for as long as that is in use."""
    made: WeakKeyDictionary[Database, T] = WeakKeyDictionary()
    mutex = threading.Lock()

    def of(database: Database) -> T:
        with mutex:
            if database not in made:
                made[database] = make()
            return made[database]

    return of
