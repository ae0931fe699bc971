"""S5: what `list` finds, in which order, and that a reader that pauses is in nobody's way."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata, whole
from tests.support.compare import facts
from tests.support.driver import Driver

META: list[dict[str, Any]] = [
    {},
    {"k": None},
    {"k": True},
    {"k": False},
    {"k": 1},
    {"k": 0},
    {"k": 1.0},
    {"k": "1"},
    {"k": ""},
    {"k": "true"},
    {"k": "null"},
    {"k": "it's"},
    {"k": 'a"b'},
    {"k": "back\\slash"},
    {"k": "' OR '1'='1"},
    {"k": "%"},
    {"k": "_"},
    {"k": "ключ"},
    {"k": "é"},
    {"k": "e\u0301"},
    {"k": "🙂"},
    {"k": 2**53},
    {"k": 2**53 + 1},
    {"k": 2**63 - 1},
    {"k": -1},
    {"k": 10**15},
    {"k": 1e15},
    {"k": 10**16},
    {"k": 1e16},
    {"deep": {"k": 7}},
    {"k": 7.0},
    {"k": 0.1},
    {"k": 0.30000000000000004},
    {"k": 1e308},
    {"k": []},
    {"k": {}},
    {"k": [1, 2]},
    {"k": [2, 1]},
    {"k": [1, [2, {"x": None}]]},
    {"k": {"a": 1, "b": 2}},
    {"k": {"a": 1}},
    {"k": {"a": {"b": "c"}}},
    {"k": "line\nbreak"},
    {"a.b": 1},
    {"a": {"b": 1}},
    {"$.k": 1},
    {"": "empty key"},
    {"k') OR 1=1 --": "x"},
    {'"k"': "quoted"},
    {"k\\": 1},
    {"[0]": 1},
    {"#": 1},
    {"ключ": "значение"},
    {"k": "v", "l": "w"},
    {"k": "v", "l": None},
    {"k": "v"},
    {"source": "input", "step": -1},
    {"source": "loop", "step": 10},
]
"""One checkpoint for each; each is also a filter, and so is every single key of it."""

MISSES: list[dict[str, Any]] = [
    {"k": "nobody"},
    {"nobody": 1},
    {"nobody": None},
    {"k' OR '1'='1": 1},
    {"k": "v' --"},
    {"k": 2},
    {"k": 7},
    {"k": 1_000_000},
    {"k": "\\u0031"},
    {"k": "nul\0byte"},
    {"k": {"b": 2, "a": 1}},
    {"k": (1, 2)},
    {"K": "v"},
    {"k": "v", "nobody": None},
    {"source": "LOOP"},
    {"thread_id": "t"},
]


@pytest.fixture
def library(store: Driver, reference: Driver) -> tuple[Driver, Driver]:
    """The same checkpoints, one for each entry of META, in LedgerSaver and in InMemorySaver."""
    for each in (store, reference):
        for n, meta in enumerate(META):
            each.save(cid(n), meta=metadata(n) | meta)
    return store, reference


@pytest.fixture
def shelf(store: Driver, reference: Driver) -> tuple[Driver, Driver]:
    """Two threads with three namespaces each and 12 checkpoints in turns, in LedgerSaver and in InMemorySaver."""
    places = itertools.cycle(itertools.product(["t", "u"], ["", "child:1", "child:1|x:2"]))
    for n, (thread, ns) in zip(range(1, 25), places, strict=False):
        for each in (store, reference):
            each.save(cid(n), {"n": n}, {"n": n}, thread=thread, ns=ns, meta=metadata(n % 4, tag=f"{thread}{n % 3}"))
            each.put_writes(config(thread, ns, cid(n)), [("n", -n)], "task")
    return store, reference


def test_s5_a_filter_finds_what_equals_it(library: tuple[Driver, Driver]) -> None:
    """Equality on top-level keys, as InMemorySaver compares: nested values as a whole, a missing key as None."""
    store, reference = library
    single = [{key: value} for meta in META for key, value in meta.items()]
    found = 0
    for wanted in [*META, *single, *MISSES]:
        expected = reference.ids(config(), filter=wanted if wanted != {"k": (1, 2)} else {"k": [1, 2]})
        assert expected == store.ids(config(), filter=wanted), wanted
        found += len(expected)

    assert found > len(META)


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [
        ({"k": True}, [{"k": True}, {"k": 1}, {"k": 1.0}]),
        ({"k": 0}, [{"k": False}, {"k": 0}]),
        ({"k": "' OR '1'='1"}, [{"k": "' OR '1'='1"}]),
        ({"k') OR 1=1 --": "x"}, [{"k') OR 1=1 --": "x"}]),
        ({"a.b": 1}, [{"a.b": 1}]),
        ({"k": {"b": 2, "a": 1}}, [{"k": {"a": 1, "b": 2}}]),
        ({"k": 2**53}, [{"k": 2**53}]),
        ({"k": "%"}, [{"k": "%"}]),
        ({"k": "é"}, [{"k": "é"}]),
        ({"k": "v", "l": None}, [{"k": "v", "l": None}, {"k": "v"}]),
    ],
)
def test_s5_a_filter_is_a_value_never_sql(
    library: tuple[Driver, Driver], wanted: dict[str, Any], matching: list[dict[str, Any]]
) -> None:
    """Quotes, dots, wildcards and statements in keys and values are compared like any text."""
    expected = [cid(n) for n, meta in enumerate(META) if meta in matching and typed_in(meta, matching)]

    assert expected[::-1] == library[0].ids(config(), filter=wanted)


def typed_in(meta: dict[str, Any], matching: list[dict[str, Any]]) -> bool:
    """Whether `matching` holds `meta` with the very same types (True is not 1 here)."""
    return repr(meta) in map(repr, matching)


def test_s5_a_filter_with_limit_looks_past_what_does_not_match(library: tuple[Driver, Driver]) -> None:
    """The limit counts matches, not rows looked at."""
    store, reference = library
    for limit in (0, 1, 2, 3, 100):
        expected = reference.ids(config(), filter={"k": "v"}, limit=limit)
        assert (expected, min(limit, 3)) == (store.ids(config(), filter={"k": "v"}, limit=limit), len(expected))


def test_s5_a_filter_that_is_not_json_is_refused(store: Driver) -> None:
    """No metadata can equal it, so the question is a mistake."""
    with pytest.raises(InvalidArgument):
        store.ids(config(), filter={"k": object()})


@pytest.mark.parametrize("before", [None, 1, 7, 24, 99])
@pytest.mark.parametrize("limit", [None, 0, 1, 5, 100])
def test_s5_before_limit_and_namespaces_are_those_of_the_peers(
    shelf: tuple[Driver, Driver], before: int | None, limit: int | None
) -> None:
    """Newest id first, over one namespace, one thread or all; strictly before; at most `limit`."""
    store, reference = shelf
    options: dict[str, Any] = {"limit": limit, "before": None if before is None else config("x", id=cid(before))}
    wheres = [None, whole("t"), whole("u"), whole("nobody"), config("t"), config("u", "child:1"), config("t", "chil")]
    for where, wanted in itertools.product(wheres, [None, {}, {"step": 1}, {"tag": "t1", "step": 1}]):
        expected = [facts(item) for item in reference.list(where, filter=wanted, **options)]
        assert expected == [facts(item) for item in store.list(where, filter=wanted, **options)]


def test_s5_no_namespace_means_all_of_them_however_it_is_left_out(shelf: tuple[Driver, Driver]) -> None:
    """As in the peers: a missing `checkpoint_ns` and one that is None are the same, "" is the root alone."""
    store, reference = shelf
    missing, none = whole("t"), {"configurable": {"thread_id": "t", "checkpoint_ns": None}}

    assert reference.ids(missing) == store.ids(missing) == store.ids(none)
    assert reference.ids(config("t", "")) == store.ids(config("t", "")) != store.ids(missing)


def test_s5_a_config_with_an_id_lists_that_checkpoint(shelf: tuple[Driver, Driver]) -> None:
    """As in the peers: the one checkpoint, if the other conditions hold for it."""
    store, reference = shelf
    for where in (config("t", "", cid(7)), config("t", None, cid(8)), config("t", "", cid(8)), config("u", "", cid(7))):
        for more in ({}, {"filter": {"step": 3}}, {"before": config(id=cid(7))}, {"limit": 0}):
            assert [*map(facts, reference.list(where, **more))] == [*map(facts, store.list(where, **more))]


def test_s5_the_order_is_by_id_not_by_arrival(store: Driver) -> None:
    """Descending by code point, whatever the order of the puts and the look of the ids."""
    ids = ["b", "a", "B", "10", "9", "é", "ab", "\uffff", "🙂", cid(3)]
    for id in ids:
        store.save(id)

    assert sorted(ids, reverse=True) == store.ids(config()) == store.ids(None)
    assert sorted(id for id in ids if id < "a")[::-1] == store.ids(config(), before=config(id="a"))


def test_s5_a_long_listing_is_whole(store: Driver) -> None:
    """Page after page, nothing is missing or doubled; also with a filter that few rows match, and over threads."""
    for n in range(150):
        store.save(cid(n), {"n": n}, {"n": n}, thread=f"t{n % 2}", ns=f"{n % 3}", meta=metadata(n, rare=n % 50 == 0))

    assert [cid(n) for n in range(149, -1, -1)] == store.ids(None)
    assert [cid(n) for n in range(148, -1, -2)] == store.ids(whole("t0"))
    assert [cid(n) for n in (100, 50, 0)] == store.ids(None, filter={"rare": True})
    assert [cid(n) for n in (50, 0)] == store.ids(whole("t0"), filter={"rare": True}, before=config(id=cid(100)))


@pytest.fixture
def long_thread(store: Driver) -> list[str]:
    """A thread of 80 checkpoints, more than one page; their ids, newest first."""
    for n in range(80):
        store.save(cid(n), {"n": n}, {"n": n})
    return [cid(n) for n in range(79, -1, -1)]


def test_s5_a_paused_list_blocks_no_writer(saver: LedgerSaver, long_thread: list[str], backend: SqliteBackend) -> None:
    """Between two items of a sync listing its own thread writes, through this saver and another one on the file."""
    other = backend.open()
    seen = []
    for n, item in enumerate(saver.list(config())):
        seen.append(item.checkpoint["id"])
        if n % 20 == 0:
            saver.put(config(), checkpoint(cid(1000 + n)), metadata(), {})
            other.put_writes(config(id=cid(0)), [("n", n)], f"task {n}")
            other.delete_thread("nobody")

    assert long_thread == seen
    assert 84 == len(list(other.list(config())))


async def test_s5_a_paused_alist_blocks_no_writer(
    saver: LedgerSaver, long_thread: list[str], backend: SqliteBackend
) -> None:
    """As the sync listing: writing while listing works, in this saver and in another one on the file."""
    other = backend.open()
    seen = []
    async for item in saver.alist(config()):
        seen.append(item.checkpoint["id"])
        if len(seen) % 20 == 1:
            await asyncio.wait_for(saver.aput(config(), checkpoint(cid(1000 + len(seen))), metadata(), {}), 60)
            await asyncio.wait_for(other.aput_writes(config(id=cid(0)), [("n", 1)], f"task {len(seen)}"), 60)

    assert long_thread == seen
    assert 84 == len([item async for item in other.alist(config())])


def test_s5_a_listing_left_half_read_is_in_nobodys_way(
    store: Driver, long_thread: list[str], backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """A reader that never comes back keeps no transaction: the thread can be deleted, the file closed and emptied."""
    abandoned = iter(store.saver.list(config()))
    assert long_thread[0] == next(abandoned).checkpoint["id"]
    other = forms(backend.open())
    other.delete_thread("t")

    assert [] == store.list(config()) == other.list(config())
    store.saver.close()  # type: ignore[attr-defined]
    abandoned.close()  # type: ignore[attr-defined]


def test_s5_a_listing_goes_on_after_a_delete(store: Driver, long_thread: list[str]) -> None:
    """What is deleted while a listing pauses is missing from it or not; nothing else is, and nothing comes twice."""
    listing = iter(store.saver.list(config()))
    seen = [next(listing).checkpoint["id"] for _ in range(3)]
    store.prune(["t"])
    seen += [item.checkpoint["id"] for item in listing]

    assert long_thread[:3] == seen[:3]
    assert seen == sorted(set(seen), reverse=True)


@pytest.mark.parametrize("where", [{"configurable": {}}, {"configurable": {"checkpoint_ns": ""}}, {}])
def test_s5_a_config_without_a_thread_is_refused(store: Driver, where: Any) -> None:
    """`None` lists everything; a config that forgot its thread_id is a mistake, and says so."""
    with pytest.raises(InvalidArgument, match="thread"):
        store.list(where)
