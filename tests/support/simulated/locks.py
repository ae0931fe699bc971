"""Locks: whether commits that overlap could wait for each other in a circle, where rows are locked one by one (E3).

SQLite locks its whole file. So each commit's rows are noted in the order in which they would be locked (declared ones
first, then the others as they are written), and those of commits that overlapped are locked once more, in steps that
the seed mixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

__all__ = ["Locking", "Ref", "circle", "order_of"]

Ref = tuple[int, str]


def circle(orders: Sequence[Sequence[Ref]], rng: Random) -> list[Ref] | None:
    """Lock the rows of several commits in one mixture of steps; the rows that are waited for in a circle, or None."""
    holders: dict[Ref, int] = {}
    at = [0] * len(orders)
    left = {number for number, order in enumerate(orders) if order}
    while left:
        free = [each for each in sorted(left) if holders.get(orders[each][at[each]], each) == each]
        if not free:
            return [orders[each][at[each]] for each in sorted(left)]
        chosen = rng.choice(free)
        holders[orders[chosen][at[chosen]]] = chosen
        at[chosen] += 1
        if at[chosen] == len(orders[chosen]):
            left.discard(chosen)
            holders = {ref: number for ref, number in holders.items() if number != chosen}
    return None


def order_of(declared: Sequence[Any], written: Sequence[Ref]) -> list[Ref]:
    """The rows of a commit as it would lock them."""
    return list(dict.fromkeys([*((each.level, each.row_id) for each in declared), *written]))


class Locking:
    """The commits that are in flight, each with the orders of those that were written meanwhile."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._flying: dict[int, list[Sequence[Ref]]] = {}

    def takes_off(self, commit: int) -> None:
        """A commit is asked for."""
        self._flying[commit] = []

    def lands(self, commit: int) -> None:
        """It is answered, or nobody waits for it any more."""
        self._flying.pop(commit, None)

    def written(self, commit: int, order: Sequence[Ref]) -> list[Ref] | None:
        """It has locked these rows; returns the circle that it could have closed with those that overlapped it."""
        beside = self._flying.pop(commit, [])
        for others in self._flying.values():
            others.append(order)
        return circle([order, *beside[-3:]], self._rng) if beside else None
