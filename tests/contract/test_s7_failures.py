"""S7: a write that fails leaves no trace, and says what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument, LangGraphExtError
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.compare import facts
from tests.support.driver import Driver

HALF = "half a character \ud800"


BAD_METADATA: dict[str, Any] = {
    "an object": {"x": object()},
    "deep inside": {"x": {"y": [1, {"z": object()}]}},
    "NaN": {"x": float("nan")},
    "infinity": {"x": float("inf")},
    "minus infinity, deep": {"x": [{"y": float("-inf")}]},
    "bytes": {"x": b"bytes"},
    "a set": {"x": {1, 2}},
    "an integer key": {"x": {1: "one"}},
    "a key of another type": {("a", "b"): 1},
    "an integer beyond 64 bits": {"x": 2**64},
    "half a character": {"x": HALF},
    "half a character in a key": {HALF: "x"},
    "half a character, deep": {"x": [{"y": HALF}]},
    "a complex number": {"x": 1j},
    "a class": {"x": dict},
}

NOWHERE: dict[str, Any] = {
    "no thread_id": {"configurable": {"checkpoint_ns": "", "checkpoint_id": cid(1)}},
    "thread_id None": {"configurable": {"thread_id": None, "checkpoint_ns": "", "checkpoint_id": cid(1)}},
    "no configurable": {},
    "half a character as thread": config(HALF, id=cid(1)),
    "half a character as namespace": config(ns=HALF, id=cid(1)),
    "half a character as checkpoint": config(id=HALF),
    "a namespace that is no text": config(ns=7, id=cid(1)),  # type: ignore[arg-type]
}


@pytest.fixture
def untouched(store: Driver) -> Callable[[], bool]:
    """Whether the database still holds exactly the one checkpoint, with one write, that this fixture put."""
    store.save(cid(1), {"a": "before"}, meta=metadata(1, note="before"))
    store.put_writes(config(id=cid(1)), [("a", "before")], "before")
    before = [facts(item) for item in store.list(None)]
    return lambda: before == [facts(item) for item in store.list(None)]


def circular() -> dict[str, Any]:
    """Metadata that holds itself."""
    made: dict[str, Any] = {}
    made["self"] = made
    return made


@pytest.mark.parametrize("bad", BAD_METADATA)
def test_s7_metadata_that_is_not_json_is_refused(store: Driver, untouched: Callable[[], bool], bad: str) -> None:
    """An InvalidArgument before anything is written, also where the same id exists already."""
    with pytest.raises(InvalidArgument, match="metadata") as caught:
        store.save(cid(1), {"a": "after"}, {"a": 2}, meta=metadata() | BAD_METADATA[bad])

    assert ("invalid_argument", False, True) == (caught.value.code, caught.value.retryable, untouched())


def test_s7_metadata_that_holds_itself_is_refused(store: Driver, untouched: Callable[[], bool]) -> None:
    """No crash and no endless loop: JSON has no circles."""
    with pytest.raises(InvalidArgument):
        store.save(cid(2), meta=metadata(x=circular()))

    assert untouched()


def test_s7_the_error_names_the_place_in_the_metadata_and_not_its_value(store: Driver) -> None:
    """The path leads to the culprit; payloads never appear in errors."""
    with pytest.raises(InvalidArgument) as caught:
        store.save(cid(1), meta=metadata(outer={"inner": [0, {"culprit": {"secret value"}}]}))

    assert "culprit" in str(caught.value)
    assert "secret value" not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("where", NOWHERE)
def test_s7_a_put_that_names_no_place_is_refused(store: Driver, untouched: Callable[[], bool], where: str) -> None:
    """Without a thread that can be stored, put writes nothing and says what the config lacks."""
    with pytest.raises(InvalidArgument):
        store.put(NOWHERE[where], checkpoint(cid(2)), metadata(), {})

    assert untouched()


@pytest.mark.parametrize("where", [*NOWHERE, "no checkpoint_id"])
def test_s7_writes_that_name_no_place_are_refused(store: Driver, untouched: Callable[[], bool], where: str) -> None:
    """Writes belong to a checkpoint: a config without one is refused, and nothing is written."""
    with pytest.raises(InvalidArgument):
        store.put_writes(NOWHERE.get(where, config()), [("a", "after")], "task")

    assert untouched()


@pytest.mark.parametrize("where", NOWHERE)
def test_s7_a_read_that_names_no_place_is_refused(store: Driver, where: str) -> None:
    """A forgotten thread_id is an error of its own kind, not a KeyError from the depths and not an empty answer."""
    with pytest.raises(InvalidArgument):
        store.get_tuple(NOWHERE[where])
    with pytest.raises(InvalidArgument):
        store.history(NOWHERE[where], ["a"])


@pytest.mark.parametrize(
    "values",
    [{"a": open}, {"b": "fine", "z": open}, {"a": ["fine", {"deep": open}]}, {"a": 2**80}],
    ids=["no codec", "after a good one", "deep inside", "a number too big"],
)
def test_s7_a_value_that_cannot_be_stored_leaves_no_checkpoint(
    store: Driver, untouched: Callable[[], bool], values: dict[str, Any]
) -> None:
    """Whether the caller is told by us or by LangGraph's serializer: it is told, and nothing is written."""
    with pytest.raises((TypeError, ValueError, LangGraphExtError)):
        store.save(cid(1), values, dict.fromkeys(values, 2))
    with pytest.raises((TypeError, ValueError, LangGraphExtError)):
        store.save(cid(2), values, dict.fromkeys(values, 2))

    assert untouched()


def test_s7_a_value_that_is_not_listed_as_new_is_checked_as_well(store: Driver, untouched: Callable[[], bool]) -> None:
    """It is stored all the same, so it must be storable all the same."""
    with pytest.raises(TypeError):
        store.save(cid(2), {"a": open}, {"a": 2}, new={})

    assert untouched()


@pytest.mark.parametrize("id", ["", None, 7, HALF, b"x"])
def test_s7_a_checkpoint_without_a_sound_id_is_refused(store: Driver, untouched: Callable[[], bool], id: Any) -> None:
    """Nobody could ever read it again."""
    with pytest.raises(InvalidArgument):
        store.put(config(), checkpoint(id), metadata(), {})

    assert untouched()


@pytest.mark.parametrize("value", [open, {"deep": [open]}, 2**80], ids=["no codec", "deep inside", "a number too big"])
def test_s7_a_write_that_cannot_be_stored_leaves_none_of_its_call(
    store: Driver, untouched: Callable[[], bool], value: Any
) -> None:
    """All writes of a call or none: neither the regular one before it nor the special one."""
    with pytest.raises((TypeError, ValueError, LangGraphExtError)):
        store.put_writes(config(id=cid(1)), [("a", "good"), ("__error__", "new"), ("b", value)], "task")

    assert untouched()


@pytest.mark.parametrize("field", ["channel", "channel version", "node seen", "task", "path"])
def test_s7_a_name_that_is_half_a_character_is_refused(
    store: Driver, untouched: Callable[[], bool], field: str
) -> None:
    """Names are stored as UTF-8: a lone surrogate is an InvalidArgument of ours, not a UnicodeEncodeError."""
    calls: dict[str, Callable[[], Any]] = {
        "channel": lambda: store.put_writes(config(id=cid(1)), [(HALF, 1)], "task"),
        "channel version": lambda: store.save(cid(2), {HALF: 1}),
        "node seen": lambda: store.save(cid(2), versions_seen={HALF: {"a": 1}}),
        "task": lambda: store.put_writes(config(id=cid(1)), [("a", 1)], HALF),
        "path": lambda: store.put_writes(config(id=cid(1)), [("a", 1)], "task", HALF),
    }
    with pytest.raises(InvalidArgument):
        calls[field]()

    assert untouched()


@pytest.mark.parametrize("method", ["delete_thread", "copy_thread", "prune", "delete_for_runs"])
def test_s7_a_thread_that_is_half_a_character_is_refused_or_not_there(
    store: Driver, untouched: Callable[[], bool], method: str
) -> None:
    """No database holds such a name: the call refuses it clearly, or finds nothing to do."""
    arguments = {"copy_thread": ("t", HALF), "prune": ([HALF],), "delete_for_runs": ([HALF],)}
    with contextlib.suppress(InvalidArgument):
        store.call(method, *arguments.get(method, (HALF,)))

    assert untouched()


def test_s7_after_a_failed_write_the_next_one_succeeds(store: Driver, untouched: Callable[[], bool]) -> None:
    """A failure leaves nothing locked and no half of a transaction that the next commit would carry along."""
    for _ in range(3):
        with pytest.raises(TypeError):
            store.put_writes(config(id=cid(1)), [("a", open)], "task")
        with pytest.raises(InvalidArgument):
            store.save(cid(1), meta=metadata(x=object()))
    assert untouched()
    store.put_writes(config(id=cid(1)), [("b", "good")], "task")

    assert [("before", "a", "before"), ("task", "b", "good")] == store.writes()


def test_s7_a_call_that_fails_in_a_crowd_fails_alone(store: Driver, untouched: Callable[[], bool]) -> None:
    """Calls that are committed together do not share their failures: each of the others is acknowledged and stored."""
    copies = [lambda: store.saver.acopy_thread("t", "t2") for _ in range(5)]
    puts = [
        lambda n=n: store.saver.aput(config("t3"), checkpoint(cid(n), {"n": n}), metadata(n), {"n": 1})
        for n in range(20)
    ]
    store.copy_thread("t", "t2")

    async def all_at_once() -> list[Any]:
        mixed = [job() for pair in zip(puts, copies * 4, strict=True) for job in pair]
        return await asyncio.gather(*mixed, return_exceptions=True)

    answers = store.loop.run_until_complete(all_at_once())
    assert [InvalidArgument] * 20 == [type(answer) for answer in answers[1::2]]
    assert [config("t3", id=cid(n)) for n in range(20)] == answers[::2]
    assert [{"n": n} for n in range(20)] == [item.checkpoint["channel_values"] for item in store.list(config("t3"))][
        ::-1
    ]
