"""Ancestors: the checkpoints above one, nearest first, each with the calls at it.

They follow parents, so that forks contribute only what is on the path. Ids mostly fall from child to parent, and then
the ancestors are what stands next in the order of ids: one look at that order finds a page of them. Where it holds too
much of other branches, parents are followed one by one, by a recursive query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from langgraph_ext.database import Row, Tx

__all__ = ["Ancestor", "pages_above"]

_ROWS = 64
"""Of a page that is found in the order of ids."""

_CLIMBED, _MOST_CLIMBED = 16, 256
"""Ancestors of a page that is found from parent to parent."""

_SEQ, _ID, _DEPTH = itemgetter("seq"), itemgetter("checkpoint_id"), itemgetter("depth")


class Ancestor(NamedTuple):
    """One checkpoint on the path."""

    checkpoint_id: str
    parent_id: str | None
    places: bytes
    """As they are stored."""
    calls: list[Row]
    """Oldest first."""


def pages_above(tx: Tx, where: Mapping[str, object], checkpoint_id: str | None) -> Iterator[list[Ancestor]]:
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
        if not climbed:
            page, passed = _next_in_order(tx, where, above, _ROWS)
            if 2 * len(page) < passed:
                climbed = _CLIMBED
        if not page:
            climbed = climbed or _CLIMBED
            page = _climbed(tx, where, above, climbed)
            climbed = min(2 * climbed, _MOST_CLIMBED)
        fresh = [each for each in page if each.checkpoint_id not in seen]
        if fresh:
            yield fresh
        above = page[-1].parent_id if page and len(fresh) == len(page) else None
        seen.update(each.checkpoint_id for each in fresh)


def _next_in_order(tx: Tx, where: Mapping[str, object], above: str, size: int) -> tuple[list[Ancestor], int]:
    """Those that follow each other in the order of ids from `above` on; and how many checkpoints were looked at.

    Of none are there more than `size` rows, or they are not all found.
    """
    rows = tx.all("log_downwards", **where, checkpoint_id=above, size=size)
    found: list[Ancestor] = []
    passed = 0
    wanted: str | None = above
    last = rows[-1]["checkpoint_id"] if len(rows) == size else None  # of which there may be more rows
    for checkpoint_id, group in groupby(rows, key=_ID):
        if checkpoint_id == last:
            break
        passed += 1
        if checkpoint_id != wanted:
            continue
        put: Row | None = None
        calls: list[Row] = []
        for row in group:
            if row["listed"] is None:
                calls.append(row)
            else:
                put = row
        if put is None:
            break  # it has calls, and is not there itself
        if len(calls) > 1:
            calls.sort(key=_SEQ)
        wanted = put["parent_id"]
        found.append(Ancestor(checkpoint_id, wanted, put["places"], calls))
    return found, passed


def _climbed(tx: Tx, where: Mapping[str, object], above: str, size: int) -> list[Ancestor]:
    """So many from `above` on, from parent to parent; as many as there are, if these are fewer or form a loop."""
    named = {**where, "checkpoint_id": above, "size": size - 1}
    found: dict[str, Ancestor] = {}
    for row in sorted(tx.all("lineage", **named), key=_DEPTH):
        if row["checkpoint_id"] in found:
            break
        found[row["checkpoint_id"]] = Ancestor(row["checkpoint_id"], row["parent_id"], row["places"], [])
    named["size"] = len(found) - 1
    for call in sorted(tx.all("writes_of_lineage", **named), key=_SEQ) if found else ():
        found[call["checkpoint_id"]].calls.append(call)
    return list(found.values())
