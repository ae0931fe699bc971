"""Ancestors: the checkpoints above one, nearest first, and the calls at them.

They follow parents, so that forks contribute only what is on the path. Ids mostly fall from child to parent, and then
the ancestors are what stands next in the order of ids: one look at that order finds a page of them. Where it holds too
much of other branches, parents are followed one by one, by a recursive query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from langgraph_ext.database import Row, Tx

__all__ = ["Ancestor", "Page", "calls_at", "pages_above"]

_PAGE = 64
"""Checkpoints that are looked at in the order of ids."""

_CLIMBED, _MOST_CLIMBED = 16, 256
"""Ancestors of a page that is found from parent to parent."""

_SEQ, _DEPTH = itemgetter("seq"), itemgetter("depth")


class Ancestor(NamedTuple):
    """One checkpoint on the path."""

    checkpoint_id: str
    parent_id: str | None
    places: bytes
    """As they are stored."""


class Page(NamedTuple):
    """Ancestors that follow each other."""

    found: Sequence[Ancestor]
    alone: bool
    """Whether no other checkpoint stands between them in the order of ids."""


def pages_above(tx: Tx, where: Mapping[str, object], checkpoint_id: str | None) -> Iterator[Page]:
    """The stored ancestors of a checkpoint in pages, each ancestor once (parents may form a loop).

    Args:
        tx: The open transaction.
        where: Thread and namespace.
        checkpoint_id: The checkpoint, which is no part of them.
    """
    row = tx.maybe("put_places", **where, checkpoint_id=checkpoint_id) if checkpoint_id else None
    above: str | None = row["parent_id"] if row else None
    seen: set[str] = set()
    climbed = 0
    while above is not None and above not in seen:
        page: list[Ancestor] = []
        passed = 0
        if not climbed:
            page, passed = _next_in_order(tx, where, above)
            if 2 * len(page) < passed:
                climbed = _CLIMBED
        if not page:
            climbed = climbed or _CLIMBED
            page = _climbed(tx, where, above, climbed)
            climbed = min(2 * climbed, _MOST_CLIMBED)
        fresh = [each for each in page if each.checkpoint_id not in seen]
        if fresh:
            yield Page(fresh, len(page) == passed)
        above = page[-1].parent_id if page and len(fresh) == len(page) else None
        seen.update(each.checkpoint_id for each in fresh)


def calls_at(tx: Tx, where: Mapping[str, object], page: Page, count: int) -> list[list[Row]]:
    """The calls at each of a page's first ancestors, so many, oldest first."""
    calls: dict[str, list[Row]] = {each.checkpoint_id: [] for each in page.found[:count]}
    first, last = page.found[0].checkpoint_id, page.found[count - 1].checkpoint_id
    if page.alone:
        rows = tx.all("writes_between", **where, first_id=last, last_id=first)
    else:
        rows = tx.all("writes_of_lineage", **where, checkpoint_id=first, size=count - 1)
    for row in sorted(rows, key=_SEQ):
        if row["checkpoint_id"] in calls:  # else it waits for its checkpoint
            calls[row["checkpoint_id"]].append(row)
    return list(calls.values())


def _next_in_order(tx: Tx, where: Mapping[str, object], above: str) -> tuple[list[Ancestor], int]:
    """Those that follow each other in the order of ids from `above` on; and how many checkpoints were passed."""
    found: list[Ancestor] = []
    passed = 0
    wanted: str | None = above
    for row in tx.all("puts_downwards", **where, checkpoint_id=above, size=_PAGE):
        if wanted is None or wanted > row["checkpoint_id"]:
            break
        passed += 1
        if row["checkpoint_id"] == wanted:
            wanted = row["parent_id"]
            found.append(Ancestor(row["checkpoint_id"], wanted, row["places"]))
    return found, passed


def _climbed(tx: Tx, where: Mapping[str, object], above: str, size: int) -> list[Ancestor]:
    """So many from `above` on, from parent to parent; as many as there are, if these are fewer or form a loop."""
    found: dict[str, Ancestor] = {}
    for row in sorted(tx.all("lineage", **where, checkpoint_id=above, size=size - 1), key=_DEPTH):
        if row["checkpoint_id"] in found:
            break
        found[row["checkpoint_id"]] = Ancestor(row["checkpoint_id"], row["parent_id"], row["places"])
    return list(found.values())
