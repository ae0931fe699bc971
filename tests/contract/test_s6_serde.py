"""S6: every value goes through the serde that was given, else through LangGraph's own; never through pickle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Driver


class Marked(JsonPlusSerializer):
    """A serde whose bytes are recognisable, and that counts what passes through it."""

    def __init__(self) -> None:
        super().__init__()
        self.dumped: list[Any] = []

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self.dumped.append(obj)
        kind, data = super().dumps_typed(obj)
        return f"marked-{kind}", b"MARK" + bytes(byte ^ 0x5A for byte in data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, value = data
        assert kind.startswith("marked-"), f"not ours: {kind}"
        assert value.startswith(b"MARK")
        return super().loads_typed((kind.removeprefix("marked-"), bytes(byte ^ 0x5A for byte in value[4:])))


class Plain:
    """A serde of the old kind, with `dumps` and `loads` only."""

    def dumps(self, obj: Any) -> bytes:
        return repr(obj).encode()

    def loads(self, data: bytes) -> Any:
        return f"loaded {data.decode()}"


@dataclass
class Point:
    """A type of the user's own."""

    x: int


@pytest.fixture
def marked(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> Driver:
    """A saver with a serde of its own."""
    return forms(backend.open(serde=Marked()))


def test_s6_values_and_writes_pass_the_given_serde(marked: Driver) -> None:
    """Both ways, for checkpoints, listings, pending writes and the delta history."""
    marked.save(cid(1), {"a": "value"})
    marked.put_writes(config(id=cid(1)), [("a", "write")], "task")
    marked.save(cid(2), {}, {}, parent=cid(1))

    assert {"value", "write"} <= {item for item in marked.saver.serde.dumped if isinstance(item, str)}
    assert ({"a": "value"}, [("task", "a", "write")]) == (
        marked.read(cid(1)).checkpoint["channel_values"],
        marked.list(config())[1].pending_writes,
    )
    assert {"a": {"writes": [("task", "a", "write")], "seed": "value"}} == marked.history(config(), ["a"])


def test_s6_no_value_reaches_the_file_without_the_serde(marked: Driver, backend: SqliteBackend) -> None:
    """A serde that encrypts hides every value: none is found in the file, its log or its indexes."""
    secret = "the quick brown fox"
    marked.save(cid(1), {"a": secret, "b": {"deep": [secret]}})
    marked.put_writes(config(id=cid(1)), [("a", secret), ("__interrupt__", secret)], "task")
    stored = b"".join(file.read_bytes() for file in backend.folder.iterdir())

    assert b"MARK" in stored
    assert secret.encode() not in stored


def test_s6_a_value_that_did_not_change_is_not_encoded_again(marked: Driver) -> None:
    """Encoding costs the caller time: it happens once per version, not once per checkpoint."""
    marked.save(cid(1), {"a": "big", "n": 1}, {"a": 1, "n": 1})
    for n in range(2, 6):
        marked.save(cid(n), {"a": "big", "n": n}, {"a": 1, "n": n}, parent=cid(n - 1), new={"n": n})

    assert 1 == marked.saver.serde.dumped.count("big")


def test_s6_without_a_serde_langgraphs_is_used(saver: LedgerSaver) -> None:
    """LangGraph's JsonPlusSerializer as LangGraph configures it; it does not fall back to pickle."""
    assert isinstance(saver.serde, JsonPlusSerializer)
    assert not saver.serde.pickle_fallback


def test_s6_an_old_serde_works_too(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """LangGraph still takes serdes with `dumps` and `loads` only, and so do we."""
    store = forms(backend.open(serde=Plain()))
    store.save(cid(1), {"a": 1})
    store.put_writes(config(id=cid(1)), [("a", 2)], "task")

    assert ({"a": "loaded 1"}, [("task", "a", "loaded 2")]) == (
        store.read().checkpoint["channel_values"],
        store.writes(),
    )


@pytest.mark.parametrize("write", ["put", "put_writes"])
def test_s6_what_cannot_be_encoded_is_refused(store: Driver, write: str) -> None:
    """No pickle: a value that LangGraph's serializer does not know is an error of the write, and nothing is stored."""
    bad = {"put": lambda: store.save(cid(1), {"a": 1, "b": open}), "put_writes": lambda: write_to(store, open)}[write]
    with pytest.raises(TypeError):
        bad()

    assert store.get_tuple(config()) is None
    store.save(cid(1))
    assert [] == store.writes()


def write_to(store: Driver, value: Any) -> None:
    """One good and one bad write to checkpoint 1."""
    store.put_writes(config(id=cid(1)), [("a", "good"), ("b", value)], "task")


def test_s6_the_callers_own_types_come_back(store: Driver) -> None:
    """A dataclass of the application is a value like any other."""
    store.save(cid(1), {"p": Point(3)})

    assert {"p": Point(3)} == store.read().checkpoint["channel_values"]


@pytest.mark.parametrize("new", [{"a": 1}, {}], ids=["listed as new", "not listed"])
@pytest.mark.parametrize("parent", [None, cid(0), cid(9)], ids=["no parent", "an older value", "a missing parent"])
def test_s6_a_value_is_stored_as_it_was_when_put_was_called(
    store: Driver, saver: LedgerSaver, new: dict[str, Any], parent: str | None
) -> None:
    """LangGraph goes on while `aput` is under way: a value that changes meanwhile is stored as it was at the call."""
    values, write = {"a": [1]}, [1]
    store.save(cid(0), {"a": "older"}, {"a": 0})

    async def put_and_change() -> None:
        one = saver.aput(config(id=parent), checkpoint(cid(1), values), metadata(), new)
        two = saver.aput_writes(config(id=cid(1)), [("a", write)], "task")
        tasks = [store.loop.create_task(one), store.loop.create_task(two)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            values["a"].append(2)
            write.append(2)

    store.loop.run_until_complete(put_and_change())

    assert ({"a": [1]}, [("task", "a", [1])]) == (store.read().checkpoint["channel_values"], store.writes())
