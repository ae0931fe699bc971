"""S1: opening, closing, cloning and sharing one LedgerSaver."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument, StoreError
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Driver

CALLS: dict[str, Callable[[Driver], Any]] = {
    "put": lambda store: store.save(cid(1)),
    "put_writes": lambda store: store.put_writes(config(id=cid(1)), [("a", 1)], "task"),
    "get_tuple": lambda store: store.get_tuple(config()),
    "list": lambda store: store.list(config()),
    "delete_thread": lambda store: store.delete_thread("t"),
    "delete_for_runs": lambda store: store.delete_for_runs(["r"]),
    "copy_thread": lambda store: store.copy_thread("t", "u"),
    "prune": lambda store: store.prune(["t"]),
    "get_delta_channel_history": lambda store: store.history(config(id=cid(1)), ["a"]),
}


@dataclass
class Point:
    """A type of the user's own, unknown to LangGraph's serializer."""

    x: int


def test_s1_a_saver_opens_its_file_on_first_use(tmp_path: Path, forms: Callable[[Any], Driver]) -> None:
    """Making the object touches nothing: a graph can be compiled at import time, before the folder exists."""
    path = tmp_path / "later" / "runs.db"
    with LedgerSaver(path) as saver:
        assert [] == list(tmp_path.iterdir())
        path.parent.mkdir()
        forms(saver).save(cid(1))

        assert path.is_file()


def test_s1_every_spelling_of_a_url_is_the_same_database(tmp_path: Path, forms: Callable[[Any], Driver]) -> None:
    """A str, a Path and `sqlite:///` with an absolute path open one and the same file."""
    path = tmp_path / "runs with space%20.db"
    for number, url in enumerate([str(path), path, f"sqlite:///{path}"], start=1):
        with LedgerSaver(url) as saver:
            forms(saver).save(cid(number))
            assert number == len(forms(saver).list(config()))

    assert [path.name] == [file.name for file in tmp_path.iterdir() if not file.name.endswith(("-wal", "-shm"))]


def test_s1_memory_is_private_to_its_object(forms: Callable[[Any], Driver]) -> None:
    """`:memory:` works like a file, and two savers on it share nothing."""
    with LedgerSaver(":memory:") as one, LedgerSaver(":memory:") as other:
        forms(one).save(cid(1), {"a": 1})

        assert {"a": 1} == forms(one).read().checkpoint["channel_values"]
        assert forms(other).get_tuple(config()) is None


def test_s1_with_opens_and_closes(backend: SqliteBackend) -> None:
    """`with LedgerSaver(…)` gives the saver itself and closes it."""
    saver = backend.open()
    with saver as entered:
        assert saver is entered
        entered.get_tuple(config())
    with pytest.raises(StoreError) as caught:
        saver.get_tuple(config())
    assert "closed" == caught.value.code


async def test_s1_async_with_opens_and_closes(backend: SqliteBackend) -> None:
    """`async with LedgerSaver(…)` gives the saver itself and closes it."""
    saver = backend.open()
    async with saver as entered:
        assert saver is entered
        await entered.aget_tuple(config())
    with pytest.raises(StoreError) as caught:
        await saver.aget_tuple(config())
    assert "closed" == caught.value.code


async def test_s1_from_conn_string_works_under_both_kinds_of_with(backend: SqliteBackend) -> None:
    """The peers' way of opening, sync and async, gives a LedgerSaver."""
    with LedgerSaver.from_conn_string(backend.url()) as saver:
        saver.put(config(), checkpoint(cid(1)), metadata(), {})
    async with LedgerSaver.from_conn_string(backend.url()) as again:
        found = await again.aget_tuple(config())

    assert (LedgerSaver, LedgerSaver) == (type(saver), type(again))
    assert found is not None
    assert cid(1) == found.checkpoint["id"]


@pytest.mark.parametrize("call", CALLS)
def test_s1_a_closed_saver_says_so(store: Driver, call: str) -> None:
    """Every method of a closed saver raises `closed`, which no retry will cure; the file stays sound."""
    store.save(cid(1))
    store.saver.close()
    with pytest.raises(StoreError) as caught:
        CALLS[call](store)

    assert ("closed", False) == (caught.value.code, caught.value.retryable)


@pytest.mark.parametrize("call", CALLS)
def test_s1_every_method_works_on_an_empty_database(store: Driver, call: str) -> None:
    """Whatever is called first on a database that does not exist yet, it is made and answers."""
    CALLS[call](store)

    assert store.list(config("somebody else")) == []


def test_s1_closing_twice_is_closing_once(store: Driver) -> None:
    """`close` may be called again and again, also on a saver that was never used."""
    for _ in range(3):
        store.saver.close()
    store.loop.run_until_complete(store.saver.aclose())
    with pytest.raises(StoreError):
        store.get_tuple(config())


def test_s1_aclose_closes_as_close_does(store: Driver, backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """After `aclose` nothing acknowledged is lost, and the object is closed in both forms."""
    store.save(cid(1), {"a": 1})
    store.loop.run_until_complete(store.saver.aclose())
    with pytest.raises(StoreError):
        store.get_tuple(config())

    assert {"a": 1} == forms(backend.open()).read().checkpoint["channel_values"]


def test_s1_a_copied_saver_shares_the_database(store: Driver, forms: Callable[[Any], Driver]) -> None:
    """LangGraph copies savers (`copy.copy`) to narrow the msgpack allow-list: both see one database."""
    clone = forms(copy.copy(store.saver))
    store.save(cid(1), {"a": 1})
    clone.save(cid(2), {"a": 2}, {"a": 2})

    assert [cid(2), cid(1)] == store.ids(config()) == clone.ids(config())


def test_s1_a_copy_of_an_unopened_saver_shares_the_database_too(forms: Callable[[Any], Driver]) -> None:
    """A clone made before the first use is not another `:memory:` database."""
    with LedgerSaver(":memory:") as saver:
        clone = copy.copy(saver)
        forms(saver).save(cid(1))

        assert [cid(1)] == forms(clone).ids(config())


def test_s1_with_allowlist_narrows_the_clone_only(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """`with_allowlist` gives a saver on the same database whose serializer knows the extra types."""
    saver = backend.open(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    clone = saver.with_allowlist([(Point.__module__, "Point")])
    forms(clone).save(cid(1), {"p": Point(1)})

    assert clone is not saver
    assert isinstance(clone, LedgerSaver)
    assert {"p": Point(1)} == forms(clone).read().checkpoint["channel_values"]
    assert {"p": Point(1)} != forms(saver).read().checkpoint["channel_values"]


def test_s1_a_forgotten_saver_leaves_no_thread_behind(backend: SqliteBackend) -> None:
    """A saver that goes out of scope without `close`, as in a notebook cell run again, ends its threads."""
    before = set(threading.enumerate())
    saver: LedgerSaver | None = LedgerSaver(backend.url())
    asyncio.run(saver.aput(config(), checkpoint(cid(1)), metadata(), {}))  # type: ignore[union-attr]
    asyncio.run(saver.aget_tuple(config()))  # type: ignore[union-attr]
    ours = set(threading.enumerate()) - before
    saver = None
    gc.collect()
    for thread in ours:
        thread.join(60)

    assert [] == [thread.name for thread in ours if thread.is_alive()]
    assert ours


@pytest.mark.parametrize("fsync", ["full", "normal"])
def test_s1_both_levels_of_fsync_store_the_same(
    backend: SqliteBackend, forms: Callable[[Any], Driver], fsync: str
) -> None:
    """`fsync` chooses how much a power cut may cost, never what is stored."""
    with backend.open(fsync=fsync) as saver:
        forms(saver).save(cid(1), {"a": fsync})

    assert {"a": fsync} == forms(backend.open()).read().checkpoint["channel_values"]


def test_s1_an_unknown_level_of_fsync_is_refused(backend: SqliteBackend) -> None:
    """A level that does not exist is an error at once, not on the first write."""
    with pytest.raises(InvalidArgument, match="fsync"):
        LedgerSaver(backend.url(), fsync="sometimes")  # type: ignore[arg-type]


async def tell(*_: Any) -> None:
    """What no saver would await."""


@pytest.mark.parametrize(
    "given",
    [
        {"serde": 5},
        {"serde": 0},
        {"serde": JsonPlusSerializer},
        {"on_event": 5},
        {"on_event": ""},
        {"on_event": tell},
        {"on_event": print, "on_observer_error": 5},
        {"on_observer_error": tell},
    ],
)
def test_s1_what_could_never_be_called_is_refused_at_once(backend: SqliteBackend, given: Any) -> None:
    """Not at the first value, or the first event."""
    with pytest.raises(InvalidArgument, match=r"^(serde|on_event|on_observer_error) is "):
        LedgerSaver(backend.url(), **given)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_s1_a_forked_child_is_refused(store: Driver) -> None:
    """A connection must not cross a fork: the child gets `forked` from every call, the parent works on."""
    store.save(cid(1))
    child = os.fork()
    if child == 0:
        try:
            store.saver.get_tuple(config())
        except StoreError as error:
            os._exit(0 if error.code == "forked" else 1)
        finally:
            os._exit(2)

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [cid(1)] == store.ids(config())
