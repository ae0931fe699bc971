"""S3: pending writes, their slots and their order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key

from tests.support.backends import SqliteBackend
from tests.support.build import NULL_TASK, cid, config
from tests.support.driver import Driver

SPECIAL = sorted(WRITES_IDX_MAP)
Batch = Sequence[tuple[str, Any]]


@pytest.fixture
def written(store: Driver) -> Callable[..., list[tuple[str, Any]]]:
    """Puts batches of one task one after the other and returns the (channel, value) pairs that are read back."""

    def write(*batches: Batch) -> list[tuple[str, Any]]:
        store.save(cid(1))
        for batch in batches:
            store.put_writes(config(id=cid(1)), batch, "task", "path")
        return [(channel, value) for _, channel, value in store.writes()]

    return write


@pytest.mark.parametrize("special", SPECIAL)
def test_scenario_11_mixed_batches_keep_the_newest_special_and_the_first_value(
    written: Callable[..., list[tuple[str, Any]]], special: str
) -> None:
    """`[special old, ch old]` then `[special new, ch new]` for one task: the newest special, the first value."""
    assert [(special, "new"), ("ch", "old")] == written(
        [(special, "old"), ("ch", "old")], [(special, "new"), ("ch", "new")]
    )


@pytest.mark.parametrize("special", SPECIAL)
def test_s3_a_special_channel_takes_the_newest_value(
    written: Callable[..., list[tuple[str, Any]]], special: str
) -> None:
    """Alone, mixed, at another position and twice in one call: always the last value that was written."""
    assert [(special, 5), ("a", 1)] == written(
        [(special, 1)], [("a", 1), (special, 2)], [(special, 3)], [("a", 2), ("b", 2), (special, 4), (special, 5)]
    )[:2]


def test_s3_a_regular_slot_keeps_the_first_value(written: Callable[..., list[tuple[str, Any]]]) -> None:
    """A task that writes again keeps what it wrote first; a shorter call takes nothing away, a longer one adds."""
    assert [("a", 1), ("b", 1), ("c", 2)] == written([("a", 1), ("b", 1)], [("x", 2)], [("a", 2), ("b", 2), ("c", 2)])


def test_s3_a_slot_is_a_position_not_a_channel(written: Callable[..., list[tuple[str, Any]]]) -> None:
    """One channel may be written several times in a call; a special write in between leaves its position free."""
    assert [("__interrupt__", "q"), ("a", 1), ("b", 3), ("a", 2)] == written(
        [("a", 1), ("__interrupt__", "q"), ("a", 2)], [("z", 0), ("b", 3), ("z", 0)]
    )


def test_s3_a_resumed_question_keeps_both_answers(written: Callable[..., list[tuple[str, Any]]]) -> None:
    """LangGraph writes the resume list twice in the call that ends the task: the longer, last one counts."""
    assert [("__resume__", ["one", "two"]), ("__interrupt__", "q1"), ("log", "done")] == written(
        [("__interrupt__", "q0")],
        [("__interrupt__", "q1"), ("__resume__", ["one"])],
        [("__resume__", ["one"]), ("__resume__", ["one", "two"]), ("log", "done")],
    )


@pytest.mark.parametrize("channel", ["__error_source_node__", "__return__", "__no_writes__", "__pregel_tasks"])
def test_s3_other_reserved_channels_are_regular(written: Callable[..., list[tuple[str, Any]]], channel: str) -> None:
    """Only the four channels of LangGraph's `WRITES_IDX_MAP` have fixed slots."""
    assert [(channel, "first"), ("b", 1)] == written([(channel, "first"), ("b", 1)], [(channel, "second"), ("b", 2)])


@pytest.mark.parametrize("seed", range(20))
def test_s3_slots_are_those_of_inmemorysaver(store: Driver, memory: Driver, seed: int) -> None:
    """Random calls of several tasks, special and regular mixed, are read back as InMemorySaver reads them."""
    dice = random.Random(seed)
    for each in (store, memory):
        each.save(cid(1))
    for number in range(12):
        batch = [(dice.choice([*SPECIAL, "a", "b", "c"]), f"{number}.{n}") for n in range(dice.randrange(5))]
        task, path = dice.choice(["t1", "t2", NULL_TASK]), dice.choice(["", "~a", "~b"])
        for each in (store, memory):
            each.put_writes(config(id=cid(1)), batch, task, path)

    assert memory.writes() == store.writes()
    assert memory.writes() == [tuple(write) for write in store.list(config())[0].pending_writes or []]


def test_s3_writes_come_in_langgraphs_order(store: Driver) -> None:
    """Sorted by task path, then task id, then slot: the order in which a superstep applies them."""
    paths = ["~__pregel_pull, b", "~__pregel_pull, a", "", "~__pregel_push, 0000000010", "~__pregel_push, 0000000002"]
    calls = [(path, task) for path, task in itertools.product(paths, ["t2", "t10", NULL_TASK])]
    random.Random(7).shuffle(calls)
    store.save(cid(1))
    for path, task in calls:
        store.put_writes(config(id=cid(1)), [("x", path), ("__resume__", path), ("y", path)], task + path, path)

    expected = [
        (task + path, channel, path)
        for path, task in sorted(calls, key=lambda call: writes_sort_key(call[0], call[1] + call[0]))
        for channel in ("__resume__", "x", "y")
    ]
    assert expected == store.writes()


def test_s3_the_hundredth_write_of_a_call_comes_after_the_ninth(store: Driver) -> None:
    """Positions are numbers: they are not sorted as text."""
    store.save(cid(1))
    store.put_writes(config(id=cid(1)), [("a", n) for n in range(120)], "task")

    assert [("task", "a", n) for n in range(120)] == store.writes()


def test_s3_paths_are_compared_by_code_point(store: Driver) -> None:
    """The order is Python's, not a locale's: upper case before lower case, and beyond the basic plane last."""
    names = ["a", "B", "é", "z", "_", "~", "\uffff", "🙂", "Z"]
    store.save(cid(1))
    for name in names:
        store.put_writes(config(id=cid(1)), [("x", name)], f"task {name}", name)

    assert sorted(names) == [value for _, _, value in store.writes()]


def test_s3_the_newest_special_write_brings_its_path(store: Driver, memory: Driver) -> None:
    """A special write that is replaced moves to where its new path sorts."""
    for each in (store, memory):
        each.save(cid(1))
        each.put_writes(config(id=cid(1)), [("__error__", "old"), ("a", 1)], "t1", "~z")
        each.put_writes(config(id=cid(1)), [("b", 1)], "t2", "~m")
        each.put_writes(config(id=cid(1)), [("__error__", "new")], "t1", "~a")

    assert [("t1", "__error__", "new"), ("t2", "b", 1), ("t1", "a", 1)] == store.writes() == memory.writes()


def test_s3_an_empty_call_writes_nothing(store: Driver) -> None:
    """No writes is no error, and leaves nothing: a thread that got no more than that is still empty."""
    store.save(cid(1))
    store.put_writes(config(id=cid(1)), [], "task")
    store.put_writes(config("empty", id=cid(1)), [], "task")
    store.copy_thread("t", "empty")

    assert [] == store.writes() == store.writes(thread="empty")


def test_s3_exceptions_and_interrupts_can_be_written(store: Driver) -> None:
    """LangGraph writes live objects to special channels: an exception comes back as LangGraph's serde has it."""
    error = ValueError("no", 7)
    store.save(cid(1))
    store.put_writes(config(id=cid(1)), [("__error__", error)], "task")
    expected = store.saver.serde.loads_typed(store.saver.serde.dumps_typed(error))

    assert [("task", "__error__", repr(expected))] == [(t, c, repr(value)) for t, c, value in store.writes()]


def test_s3_slots_hold_across_savers(store: Driver, backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """Another saver on the file follows the same rule: it does not take a slot that is taken."""
    other = forms(backend.open())
    store.save(cid(1))
    store.put_writes(config(id=cid(1)), [("a", "first"), ("__error__", "old")], "task")
    other.put_writes(config(id=cid(1)), [("a", "second"), ("__error__", "new"), ("c", "added")], "task")

    assert (
        [("task", "__error__", "new"), ("task", "a", "first"), ("task", "c", "added")]
        == store.writes()
        == other.writes()
    )
