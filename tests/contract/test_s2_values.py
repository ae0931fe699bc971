"""S2: channel values are stored once per version, and come back exactly as they were."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send

from tests.support.backends import SqliteBackend
from tests.support.build import cid, config, metadata
from tests.support.compare import typed
from tests.support.driver import Driver

MB = 1 << 20

VALUES: dict[str, Any] = {
    "empty text": "",
    "empty bytes": b"",
    "NUL bytes": b"\0\0\1\0",
    "NUL text": "a\0b\0",
    "unicode": "Ünïcödé 🙂 \u200b עברית",
    "every byte": bytes(range(256)),
    "numbers": [0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 0.1, -0.0, 1e308],
    "not a number": [float("inf"), float("-inf")],
    "nested": {"a": [{"b": [1, 2]}, {3, 4}, None, True]},
    "a tuple": (1, [2, (3,)]),
    "int keys": {1: "one", 2: {"x": b"y"}},
    "times": [dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.date(2026, 1, 2), dt.timedelta(days=1)],
    "ids": [uuid.UUID(int=7), decimal.Decimal("1.10")],
    "messages": [
        HumanMessage("hi", id="1"),
        AIMessage("ho", id="2", tool_calls=[{"name": "t", "args": {}, "id": "x"}]),
    ],
    "sends": [Send("node", {"n": 1}), Interrupt("q", id="0" * 32)],
    "snapshot": _DeltaSnapshot(["a", "b"]),
    "many": list(range(10_000)),
}


@pytest.mark.parametrize("name", VALUES)
def test_s2_a_value_comes_back_as_it_was(
    store: Driver, backend: SqliteBackend, forms: Callable[[Any], Driver], name: str
) -> None:
    """As a channel's value and as a pending write, before and after the file is opened again, types included."""
    value = VALUES[name]
    kept = store.saver.serde.loads_typed(store.saver.serde.dumps_typed(value))  # msgpack makes lists of tuples
    store.save(cid(1), {"a": value, "neighbour": "n"})
    store.put_writes(config(id=cid(1)), [("a", value), ("neighbour", "w")], "task")
    for each in (store, forms(backend.open())):
        assert typed({"a": kept, "neighbour": "n"}) == typed(each.read().checkpoint["channel_values"])
        assert typed([("task", "a", kept), ("task", "neighbour", "w")]) == typed(each.writes())


@pytest.mark.parametrize("name", ["", "a.b", "a b", "'; --", "ключ", "__start__", "branch:to:x", "a" * 300, "\0", "0"])
def test_s2_any_channel_name_will_do(store: Driver, name: str) -> None:
    """A channel's name is data: whatever a state schema calls it, its value and its writes are found under it."""
    store.save(cid(1), {name: "value", "other": "x"})
    store.put_writes(config(id=cid(1)), [(name, "write")], "task")

    assert {name: "value", "other": "x"} == store.read().checkpoint["channel_values"]
    assert {name: 1, "other": 1} == store.read().checkpoint["channel_versions"]
    assert [("task", name, "write")] == store.writes()
    store.save(cid(2), {}, {}, parent=cid(1))
    assert {name: {"writes": [("task", name, "write")], "seed": "value"}} == store.history(config(), [name])


def test_s2_large_values_are_fine(store: Driver) -> None:
    """A value of many megabytes, of text that does not compress, goes in and out whole."""
    big = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(2 * MB))
    store.save(cid(1), {"a": big, "b": "small"})
    store.put_writes(config(id=cid(1)), [("a", big[::-1])], "task")

    assert {"a": big, "b": "small"} == store.read().checkpoint["channel_values"]
    assert [("task", "a", big[::-1])] == store.writes()


def test_s2_a_value_that_stays_is_stored_once(
    store: Driver, backend: SqliteBackend, version: Callable[[int], Any]
) -> None:
    """A hundred checkpoints that share one big value cost its size once, not a hundred times; so does a fork."""
    big = "x" * MB
    store.save(cid(1), {"big": big, "n": 1}, {"big": version(1), "n": version(1)})
    for n in range(2, 100):
        versions = {"big": version(1), "n": version(n)}
        parent = cid(n - 1 if n % 10 else n // 2)
        store.save(cid(n), {"big": big, "n": n}, versions, parent=parent, new={"n": version(n)})
    store.saver.close()  # moves the log into the file

    assert MB < backend.size() < 6 * MB, "the value was stored again and again"


def test_s2_one_channel_that_changes_does_not_store_the_others_again(store: Driver, backend: SqliteBackend) -> None:
    """Also when a run was rolled back and the thread was pruned in between, each value remains stored once."""
    big = "x" * MB
    store.save(cid(1), {"big": big}, {"big": 1}, meta=metadata(run_id="gone"))
    for n in range(2, 20):
        store.save(cid(n), {"big": big, "n": n}, {"big": 1, "n": n}, parent=cid(n - 1), new={"n": n})
    store.delete_for_runs(["gone"])
    store.copy_thread("t", "copy")
    store.prune(["t"])
    store.saver.close()

    assert backend.size() < 8 * MB


def test_s2_two_forks_with_the_same_version_keep_their_own_values(store: Driver, version: Callable[[int], Any]) -> None:
    """LangGraph's default versions count up, so two forks reach the same one: neither overwrites the other."""
    store.save(cid(1), {"a": "root"}, {"a": version(1)})
    store.save(cid(2), {"a": "left"}, {"a": version(2)}, parent=cid(1))
    store.save(cid(3), {"a": "right"}, {"a": version(2)}, parent=cid(1))
    store.save(cid(4), {"a": "left", "b": 1}, {"a": version(2), "b": version(1)}, parent=cid(2), new={"b": version(1)})

    values = [store.read(cid(n)).checkpoint["channel_values"]["a"] for n in range(1, 5)]
    assert ["root", "left", "right", "left"] == values
