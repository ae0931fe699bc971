"""Listing checkpoints, newest first, page by page: between two pages no transaction is open and no lock is held.

A page is a keyset page: it begins behind the last checkpoint of the page before. One namespace is read along its index,
a few of them are merged. A thread of very many namespaces, or all threads, are sorted by the database in pages that
double, so that a long listing sorts few times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_ext import canonical
from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver.config import address_of, needle_of, text
from langgraph_ext.saver.reading import Sources, Stored, with_parts

__all__ = ["Listing", "Page", "page", "start"]

_TOP = "\U0010ffff"
"""Above every checkpoint id: ids are compared by code point."""

_LOADED = 32
"""Checkpoints loaded in one read: bounds memory and the age of a snapshot."""

_MERGED = 64
"""Most namespaces merged; with more of them, sorting the thread's index entries takes less."""

_MERGED_SIZE = 8
"""Keys fetched at a time from each of several namespaces."""

_SCANNED = 8192
"""Most keys scanned in one read of several namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is asked for, and how far the reader has come."""

    thread_id: str | None
    checkpoint_ns: str | None
    checkpoint_id: str | None
    before: str
    wanted: Mapping[str, Any]
    """Metadata that must be equal, after a JSON round trip."""
    needle: bytes
    last: tuple[str, str, str] = (_TOP, _TOP, _TOP)
    """`(checkpoint_id, thread_id, checkpoint_ns)` of the last key scanned."""
    keys: tuple[tuple[str, str, str], ...] = ()
    """Keys scanned and not yet loaded."""
    size: int = _LOADED
    """Keys to scan next."""
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Some matching checkpoints, and where to go on (None at the end)."""

    found: list[Stored]
    rest: Listing | None


def start(
    config: RunnableConfig | None,
    *,
    filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
    sealed: bool = False,
) -> Listing:
    """A listing's beginning. If metadata are sealed, the database finds every row, and each is opened to be matched.

    Raises:
        InvalidArgument: A config names no thread, or the filter is not JSON.
    """
    thread_id = checkpoint_ns = checkpoint_id = None
    if config is not None:
        thread_id, checkpoint_ns, checkpoint_id = address_of(config, method="list")
        if config["configurable"].get("checkpoint_ns") is None:
            checkpoint_ns = None
    if limit is not None and not isinstance(limit, int):
        raise InvalidArgument(f"list: limit is {limit!r}; it must be a whole number or None")
    above = ((before or {}).get("configurable") or {}).get("checkpoint_id")
    try:
        wanted = canonical.decode(canonical.encode(dict(filter or {}), where="filter"))
    except TypeError as error:
        raise InvalidArgument(f"list: {error}") from error
    return Listing(
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=checkpoint_id,
        before=text(above, "before", "list") if above else _TOP,
        wanted=wanted,
        needle=b"" if sealed else needle_of(wanted),
        size=_LOADED if limit is None or filter else max(1, min(limit, _LOADED)),
    )


def page(tx: Tx, listing: Listing, left: int | None) -> Page:
    """The next page, of `left` checkpoints at most: loads keys already scanned, or scans for more."""
    if listing.checkpoint_id is not None:
        return Page(_addressed(tx, listing), None)
    if not listing.keys:
        listing = _scan(tx, listing)
    now, later = listing.keys[:_LOADED], listing.keys[_LOADED:]
    sources = Sources(tx)
    rows = (
        tx.maybe("put_get", checkpoint_id=checkpoint_id, thread_id=thread_id, checkpoint_ns=checkpoint_ns)
        for checkpoint_id, thread_id, checkpoint_ns in now
    )
    # Since its key was scanned, a checkpoint may have been deleted, or pruned out of sight.
    listed = (row for row in rows if row is not None and row["listed"] and _matches(row, listing.wanted))
    found = [with_parts(tx, row, sources) for row in islice(listed, left)]
    rest = None if listing.exhausted and not later else replace(listing, keys=later)
    return Page(found, rest)


def _scan(tx: Tx, listing: Listing) -> Listing:
    """More keys, behind the last one."""
    names = [listing.checkpoint_ns]
    if listing.thread_id is not None and listing.checkpoint_ns is None:
        names = [row["checkpoint_ns"] for row in tx.all("namespaces_of", thread_id=listing.thread_id, size=_MERGED + 1)]
    size = listing.size
    if listing.thread_id is None or len(names) > _MERGED:
        rows, size = _sorted_by_the_database(tx, listing), min(listing.size * 2, _SCANNED)
    elif len(names) == 1:
        rows = _behind(tx, listing, names[0], listing.last[0], listing.size)
    else:
        streams = [_namespace(tx, listing, name) for name in names]
        rows = list(islice(merge(*streams, key=_key, reverse=True), listing.size))
    last = _key(rows[-1]) if rows else listing.last
    return replace(listing, keys=tuple(map(_key, rows)), last=last, size=size, exhausted=len(rows) < listing.size)


def _namespace(tx: Tx, listing: Listing, name: str | None) -> Iterator[Row]:
    """The keys of one namespace behind the last one, newest first; fetches few at a time, as one of many streams."""
    size, last = _MERGED_SIZE, listing.last
    rows = tx.all("scan_namespace_from", **_in_namespace(listing, name), last_id=last[0], last_ns=last[2], size=size)
    while rows:
        yield from rows
        rows = _behind(tx, listing, name, rows[-1]["checkpoint_id"], size) if len(rows) == size else []


def _behind(tx: Tx, listing: Listing, name: str | None, above: str, size: int) -> list[Row]:
    where = {**_in_namespace(listing, name), "before": min(listing.before, above)}
    return tx.all("scan_namespace", **where, size=size)


def _in_namespace(listing: Listing, name: str | None) -> dict[str, object]:
    return {
        "thread_id": listing.thread_id,
        "checkpoint_ns": name,
        "before": listing.before,
        "needle": listing.needle,
    }


def _sorted_by_the_database(tx: Tx, listing: Listing) -> list[Row]:
    last_id, last_thread, last_ns = listing.last
    behind = {"before": listing.before, "last_id": last_id, "last_thread": last_thread, "last_ns": last_ns}
    wanted = {"needle": listing.needle, "size": listing.size}
    if listing.thread_id is None:
        return tx.all("scan_all", **wanted, **behind)
    return tx.all("scan_thread", thread_id=listing.thread_id, **wanted, **behind)


def _key(row: Row) -> tuple[str, str, str]:
    return row["checkpoint_id"], row["thread_id"], row["checkpoint_ns"]


def _addressed(tx: Tx, listing: Listing) -> list[Stored]:
    """The one checkpoint asked for by id, in each namespace that has it."""
    assert listing.thread_id is not None
    names = [listing.checkpoint_ns]
    if listing.checkpoint_ns is None:
        names = [row["checkpoint_ns"] for row in tx.all("namespaces_of", thread_id=listing.thread_id, size=GREATEST)]
    where = {"thread_id": listing.thread_id, "checkpoint_id": listing.checkpoint_id}
    sources = Sources(tx)
    rows = [row for name in names if (row := tx.maybe("put_get", checkpoint_ns=name, **where)) is not None]
    return [
        with_parts(tx, row, sources)
        for row in rows
        if row["listed"] and row["checkpoint_id"] < listing.before and _matches(row, listing.wanted)
    ]


def _matches(row: Row, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    metadata = canonical.decode(row["metadata"])
    return all(metadata.get(key) == value for key, value in wanted.items())
