"""S2: a large value that was appended to stores what is new in it, and is read back as it was put."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError, InvalidArgument, StoreError
from langgraph_ext.saver import growing, reading
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.strands import FULL
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.compare import typed
from tests.support.driver import Driver
from tests.support.growing import Counting, bytes_stored, check_strands, everything_in, pieces

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def prose(n: int, size: int = 300) -> str:
    """Text that differs from any other's."""
    return (f"{n} " + " ".join(WORDS[(n + at) % 10] for at in range(size)))[:size]


def message(n: int, size: int = 300) -> Any:
    return (AIMessage if n % 2 else HumanMessage)(prose(n, size), id=f"m{n:04}")


VALUES: dict[str, Callable[[int], Any]] = {
    "messages": lambda n: [message(at) for at in range(n)],
    "a list": lambda n: [prose(at) for at in range(n)],
    "a dict": lambda n: {f"key {at}": prose(at) for at in range(n)},
    "text": lambda n: "".join(prose(at) for at in range(n)),
    "bytes": lambda n: b"".join(prose(at).encode() for at in range(n)),
    "a dict in a dict": lambda n: {"notes": {f"key {at}": prose(at) for at in range(n)}, "more": prose(0, 3000)},
    "a snapshot": lambda n: _DeltaSnapshot([message(at) for at in range(n)]),
}
"""Values that grow, by how often they were appended to."""


class Thread:
    """A thread of checkpoints whose one channel is given values in turn; remembers all of them."""

    def __init__(self, store: Driver, *, thread: str = "t", first: int = 1, run_id: str | None = None) -> None:
        self.store, self.thread, self.number, self.run_id = store, thread, first, run_id
        self.values: dict[str, Any] = {}
        self.last: str | None = None

    def put(self, value: Any, *, parent: str | None = None, store: Driver | None = None, number: int = 0) -> str:
        """A checkpoint below the last one, or below another; its id."""
        step = number or self.number
        id, parent = cid(step), parent or self.last
        more = {} if self.run_id is None else {"run_id": self.run_id}
        self.number += not number
        (store or self.store).save(
            id,
            {"big": value, "small": step},
            {"big": step, "small": step},
            thread=self.thread,
            parent=parent,
            meta=metadata(step, **more),
        )
        self.values[id], self.last = value, id
        return id

    def check(self, store: Driver | None = None, thread: str = "") -> None:
        """Every checkpoint, read alone and in a list, has the value that it was put with."""
        store, serde = store or self.store, JsonPlusSerializer()
        thread = thread or self.thread
        wanted = {id: typed(serde.loads_typed(serde.dumps_typed(value))) for id, value in self.values.items()}
        assert wanted == {
            id: typed(store.read(id, thread=thread).checkpoint["channel_values"]["big"]) for id in self.values
        }
        listed = {each.checkpoint["id"]: each.checkpoint["channel_values"] for each in store.list(config(thread))}
        assert wanted == {id: typed(values["big"]) for id, values in listed.items() if id in wanted}


@pytest.fixture
def line(store: Driver) -> Thread:
    return Thread(store)


@pytest.fixture
def added(backend: SqliteBackend) -> Callable[[], int]:
    """How many bytes came since it was asked last."""
    before = 0

    def ask() -> int:
        nonlocal before
        now = bytes_stored(backend.url())
        came, before = now - before, now
        return came

    return ask


@pytest.mark.parametrize("name", VALUES)
def test_s2_an_append_stores_what_was_appended(line: Thread, added: Callable[[], int], name: str) -> None:
    """And not the value again, however long it is; the hundredth append takes what the thirtieth took."""
    for n in range(1, 31):
        line.put(VALUES[name](n))
    costs = []
    for n in range(31, 71):
        added()
        line.put(VALUES[name](n))
        costs.append(added())

    one, two = (len(line.store.saver.serde.dumps_typed(VALUES[name](n))[1]) for n in (1, 2))
    assert max(costs) < two - one + 400
    assert abs(costs[1] - costs[-1]) <= 8
    line.check()


@pytest.mark.parametrize("name", VALUES)
def test_s2_a_saver_that_remembers_nothing_stores_as_little(
    backend: SqliteBackend, forms: Callable[[Any], Driver], name: str
) -> None:
    """What is kept in memory saves time only: without it, the value before is read from the database."""
    sizes = {}
    for memory in (0, 64 * 1024 * 1024):
        saver = backend.open(f"{memory}", growing_memory_bytes=memory)
        line = Thread(forms(saver))
        for n in range(1, 41):
            line.put(VALUES[name](n))
        line.check()
        sizes[memory] = bytes_stored(backend.url(f"{memory}"))
        assert saver.bodies.held_bytes <= memory

    assert len(set(sizes.values())) == 1


def test_s2_values_of_many_threads_are_forgotten_and_none_is_lost(
    backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """A bound that holds two of ten threads' values, which take turns."""
    saver = backend.open(growing_memory_bytes=30_000)
    lines = [Thread(forms(saver), thread=f"t{n}") for n in range(10)]
    for n in range(20, 40):
        for line in lines:
            line.put(VALUES["messages"](n))
            assert saver.bodies.held_bytes <= 30_000
    for line in lines:
        line.check()

    assert bytes_stored(backend.url()) < 10 * 20 * 1_500


@pytest.mark.parametrize("turns", [500, pytest.param(2_000, marks=pytest.mark.slow)])
def test_s2_a_late_turn_takes_as_much_as_an_early_one(backend: SqliteBackend, turns: int) -> None:
    """Two messages a turn, with their writes: bytes of the file, within a tenth; and reading takes few rows."""
    saver = backend.open(fsync="normal")
    sizes, held, parent = {}, [], None
    for turn in range(1, turns + 26):
        for half in (0, 1):
            number = 2 * turn + half
            held = [*held, prose(number, 200)]
            saver.put_writes(config(id=parent or cid(0)), [("messages", held[-1:])], f"t{number}", "~a")
            versions = {"messages": f"{number:032}.{number % 7}"}
            saver.put(config(id=parent), checkpoint(cid(number), {"messages": held}, versions), metadata(), versions)
            parent = cid(number)
        if turn in (25, 75, turns - 25, turns + 25):
            sizes[turn] = _used(backend.url())

    early, late = sizes[75] - sizes[25], sizes[turns + 25] - sizes[turns - 25]
    assert 0.9 < late / early < 1.1
    counting = saver.database.read(_fetched)
    assert counting < len(held) * 200 / FULL + 5 + 5


def _fetched(tx: Any) -> int:
    counting = Counting(tx)
    assert reading.fetch(counting, Address("t", "", None)) is not None  # type: ignore[arg-type]
    return counting.rows


def _used(path: str) -> int:
    """Bytes of the pages that are in use."""
    with sqlite3.connect(path) as connection:
        [[pages]] = connection.execute("PRAGMA page_count").fetchall()
        [[free]] = connection.execute("PRAGMA freelist_count").fetchall()
        [[size]] = connection.execute("PRAGMA page_size").fetchall()
    return int((pages - free) * size)


def test_s2_reading_any_version_takes_few_rows(line: Thread, backend: SqliteBackend) -> None:
    """One for each full piece, a few for what is not full, and what any checkpoint takes; also amid the history."""
    for n in range(20, 220):
        line.put(VALUES["a list"](n))
    saver: Any = line.store.saver

    for number in (1, 100, 200):
        size = len(line.values[cid(number)]) * 300
        rows = saver.database.read(lambda tx, n=number: _rows_of(tx, cid(n)))
        assert rows <= size / FULL + 5 + 5
    check_strands(backend.url())


def _rows_of(tx: Any, id: str) -> int:
    counting = Counting(tx)
    reading.fetch(counting, Address("t", "", id))  # type: ignore[arg-type]
    return counting.rows


LONG = VALUES["messages"](40)

CHANGES: dict[str, tuple[Any, int]] = {
    "edited": ([*LONG[:20], message(99), *LONG[21:]], 700),
    "edited and appended": ([*LONG[:20], message(99), *LONG[21:], message(98)], 1_400),
    "the last one edited": ([*LONG[:-1], message(99)], 700),
    "removed from the front": (LONG[10:], 400),
    "a summary for the first": ([message(99), *LONG[10:]], 800),
    "a window that slides": ([*LONG[2:], message(98), message(99)], 1_400),
    "removed in the middle": ([*LONG[:10], *LONG[12:]], 400),
    "removed at the end": (LONG[:30], 400),
    "put in the middle": ([*LONG[:10], message(99), *LONG[10:]], 800),
    "the same again": (LONG, 300),
    "all of it new": (VALUES["messages"](80)[40:], 30_000),
    "small": (["a"], 300),
    "gone": (None, 300),
    "text instead": (prose(7, 9_000), 10_000),
}


@pytest.mark.parametrize("change", CHANGES)
def test_s2_whatever_becomes_of_a_value_it_is_right_and_goes_on_to_grow(
    line: Thread, added: Callable[[], int], change: str
) -> None:
    """Edits, removals, windows: each takes about what is new in it, and so does an append behind it."""
    value, most = CHANGES[change]
    line.put(LONG)
    added()
    line.put(value)
    assert added() < most

    if isinstance(value, list) and len(value) > 20:
        line.put([*value, message(50)])
        assert added() < 1_300
    line.put(LONG)
    line.check()


def test_s2_a_value_that_is_edited_for_ever_is_read_in_few_parts(line: Thread, added: Callable[[], int]) -> None:
    """Now and then it is stored whole; most times, what was edited."""
    value = list(LONG)
    line.put(value)
    added()
    costs = []
    for n in range(60):
        value = [*value]
        value[n * 7 % 40] = message(100 + n)
        line.put(value)
        costs.append(added())

    assert sorted(costs)[40] < 1_500
    saver: Any = line.store.saver
    assert max(saver.database.read(lambda tx, id=id: _rows_of(tx, id)) for id in line.values) <= 16 * 2 + 6
    line.check()


def test_s2_forks_share_what_they_have_in_common(line: Thread, added: Callable[[], int]) -> None:
    """Several from one version, and forks of forks: each stores its own messages, whichever goes on in turn."""
    root = line.put(LONG)
    ends = {root: LONG}
    added()
    for fork in range(3):
        value = [*LONG, message(100 + fork)]
        ends[line.put(value, parent=root)] = value
        assert added() < 1_000
    for n in range(5):
        for end, value in list(ends.items()):
            del ends[end]
            ends[line.put([*value, message(200 + n)], parent=end)] = [*value, message(200 + n)]

    assert added() < 20 * 3_000
    line.check()


def test_s2_savers_that_take_turns_store_what_is_new(
    backend: SqliteBackend, forms: Callable[[Any], Driver], added: Callable[[], int]
) -> None:
    """What one remembers, the other has made old."""
    stores = [forms(backend.open()) for _ in range(3)]
    line = Thread(stores[0])
    line.put(LONG)
    added()
    for n in range(40, 70):
        line.put(VALUES["messages"](n), store=stores[n % 3])
        assert added() < 1_000
    for store in stores:
        line.check(store)


def test_s2_each_value_that_was_put_in_place_of_another_is_its_own(line: Thread, backend: SqliteBackend) -> None:
    """Its children keep what they had; a put that is repeated changes nothing."""
    for n in range(40, 46):
        line.put(VALUES["messages"](n))
    line.last = cid(3)
    before = everything_in(backend.url())
    line.put(line.values[cid(4)], number=4)
    assert before == everything_in(backend.url())

    line.last = cid(3)
    line.put([*VALUES["messages"](42), message(500)], number=4)
    line.check()


WAYS = ["deleted and put again", "copied", "pruned", "a run deleted", "deleted"]


@pytest.mark.parametrize("memory", [0, 1 << 20])
@pytest.mark.parametrize("way", WAYS)
def test_s2_what_is_remembered_of_a_strand_that_is_gone_is_not_used(
    backend: SqliteBackend, forms: Callable[[Any], Driver], way: str, memory: int
) -> None:
    """Another saver has made the thread anew, of the same length: no byte of the old one comes back."""
    mine, other = forms(backend.open(growing_memory_bytes=memory)), forms(backend.open())
    forty, swapped = VALUES["messages"](40), [*VALUES["messages"](40), message(60)]
    line = Thread(mine)
    for n in (40, 41):
        line.put(VALUES["messages"](n))
    assert len(mine.saver.serde.dumps_typed(swapped)[1]) == len(mine.saver.serde.dumps_typed(line.values[cid(2)])[1])
    copied = way == "copied"  # only so does a deleted thread get the ids again that it had
    again = Thread(other, thread="source" if copied else "t", first=1 if copied else 3, run_id="gone")
    if way in ("pruned", "a run deleted"):
        again.last = cid(2)
        again.put(VALUES["messages"](42))  # the strand is longer now, and as long as before when that is gone
        again.put(forty)
        other.prune(["t"]) if way == "pruned" else other.delete_for_runs(["gone"])
    else:
        other.delete_thread("t")
    if way in ("deleted and put again", "copied"):
        again.put(forty)
        again.put(swapped)
    if copied:
        other.copy_thread("source", "t")
    if way == "pruned":
        again.put(swapped)
    if way == "deleted":
        with pytest.raises(ConflictError, match="was deleted"):
            line.put([*VALUES["messages"](41), message(300)])
        assert {} == pieces(backend.url())

    line.last, line.number, line.values = again.last, 30, {}
    if way == "a run deleted":
        line.last = cid(2)
    line.put([*VALUES["messages"](41), message(300)])
    line.put([*swapped, message(300)])
    line.check()
    line.check(other)


def test_s2_what_is_remembered_of_a_thread_that_was_copied_back_is_not_used(
    backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """It is as long as it was, and its checkpoints have the ids they had; its last message is another one."""
    mine, other = forms(backend.open()), forms(backend.open())
    swapped = [*VALUES["messages"](40), message(60)]
    line, theirs = Thread(mine), Thread(other, thread="source", first=2)
    theirs.last = line.put(VALUES["messages"](40))
    other.copy_thread("t", "source")
    line.put(VALUES["messages"](41))
    theirs.put(swapped)
    other.delete_thread("t")
    other.copy_thread("source", "t")

    line.values = {}
    line.put([*VALUES["messages"](41), message(300)])
    line.put([*swapped, message(300)])
    line.check()
    line.check(other)


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_s2_bytes_that_another_saver_has_added_are_seen(
    backend: SqliteBackend, forms: Callable[[Any], Driver], memory: int
) -> None:
    """With the writes of a task: the checkpoint is still the newest, and its channel's strand has become longer."""
    mine, other = forms(backend.open(growing_memory_bytes=memory)), forms(backend.open())
    line = Thread(mine)
    text = prose(1, 9_000)
    line.put(text)
    other.put_writes(config(id=line.last), [("big", text + prose(2))], "theirs")
    mine.put_writes(config(id=line.last), [("big", text + prose(3))], "mine")
    line.put(text + prose(4))

    assert [text + prose(3), text + prose(2)] == [value for _, _, value in mine.writes(cid(1))]
    line.check()
    line.check(other)


def test_s2_bytes_that_another_saver_has_taken_out_are_not_used(
    backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """They were the last of the strand, and others of the same length are in their place."""
    mine, other = forms(backend.open()), forms(backend.open())
    line = Thread(mine)
    text, (gone, theirs, more) = prose(1, 9_000), (f"{n}" * 300 for n in "abc")
    line.put(text)
    line.put(text)
    mine.put_writes(config(id=cid(1)), [("big", text + gone)], "mine")
    other.prune(["t"])
    other.put_writes(config(id=cid(2)), [("big", text + theirs)], "theirs")
    line.put(text + gone + more)

    del line.values[cid(1)]
    line.check()
    line.check(other)
    assert [text + theirs] == [value for _, _, value in mine.writes(cid(2))]


def test_s2_a_pruned_thread_keeps_what_its_last_checkpoint_needs(line: Thread, backend: SqliteBackend) -> None:
    """And no other byte of it; it goes on as before."""
    for n in range(30, 60):
        line.put(VALUES["messages"](n))
    line.put([message(900), *VALUES["messages"](60)[40:]])
    before = everything_in(backend.url())
    line.store.prune(["t"])

    left = everything_in(backend.url())
    assert [7, 45, 900] == [n for n in (7, 45, 900) if b"m%04d" % n in before]
    assert [45, 900] == [n for n in (7, 45, 900) if b"m%04d" % n in left]
    line.values = {str(line.last): line.values[str(line.last)]}
    line.check()
    line.put([message(900), *VALUES["messages"](61)[40:]])
    line.check()
    check_strands(backend.url(), trimmed=True)


def test_s2_a_pruned_thread_keeps_what_its_last_tasks_wrote(line: Thread, backend: SqliteBackend) -> None:
    """Bytes that no checkpoint has, but the writes that stay with the last one."""
    text = prose(1, 9_000)
    line.put(text)
    line.put(text + prose(2))
    written = [(f"task {n}", "big", text + prose(n + 10)) for n in range(3)]
    for task, channel, value in written:
        line.store.put_writes(config(id=line.last), [(channel, value)], task)
    line.store.put_writes(config(id=cid(1)), [("big", text + prose(50) + "of the first")], "task")
    line.store.prune(["t"])

    assert written == line.store.writes()
    assert b"of the first" not in everything_in(backend.url())


def test_s2_of_a_deleted_run_no_byte_is_left_that_nobody_has(line: Thread, backend: SqliteBackend) -> None:
    """What the others share with it stays."""
    for n in range(30, 40):
        line.put(VALUES["messages"](n))
    line.run_id = "gone"
    before = line.last
    for n in range(5):
        line.put([*VALUES["messages"](39), message(800 + n)], parent=before)
        line.store.put_writes(config(id=line.last), [("big", [*VALUES["messages"](39), message(850 + n)])], "task")
    line.store.delete_for_runs(["gone"])

    left = everything_in(backend.url())
    assert [] == [n for n in range(800, 900) if b"m%04d" % n in left]
    line.values = {id: value for id, value in line.values.items() if id <= str(before)}
    line.check()
    check_strands(backend.url(), trimmed=True)


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_s2_a_fork_beside_one_that_is_gone_is_right(
    backend: SqliteBackend, forms: Callable[[Any], Driver], memory: int
) -> None:
    """Where the bytes of the one were that went on with a version first, there are none now."""
    line = Thread(forms(backend.open(growing_memory_bytes=memory)))
    text = prose(1, 9_000)
    root = line.put(text)
    line.run_id = "gone"
    line.put(text + "a" * 300, parent=root)
    line.run_id = "kept"
    line.put(text + "b" * 300, parent=root)
    line.store.delete_for_runs(["gone"])
    for letter in "ac":
        line.put(text + letter * 400, parent=root)

    del line.values[cid(2)]
    line.check()


def test_s2_of_a_deleted_thread_nothing_is_left(line: Thread, backend: SqliteBackend) -> None:
    for n in range(30, 40):
        line.put(VALUES["messages"](n))
    line.store.copy_thread("t", "copy")
    line.store.delete_thread("t")
    line.check(thread="copy")
    line.store.delete_thread("copy")

    assert {} == pieces(backend.url())
    assert b"one two three" not in everything_in(backend.url())


def test_s2_a_copy_has_bytes_of_its_own(line: Thread) -> None:
    """Neither notices what becomes of the other."""
    for n in range(30, 40):
        line.put(VALUES["messages"](n))
    line.store.copy_thread("t", "copy")
    copy = Thread(line.store, thread="copy", first=line.number)
    copy.values, copy.last = dict(line.values), line.last
    for n in range(40, 45):
        line.put([*VALUES["messages"](n - 1), message(n)])
        copy.put([*VALUES["messages"](39), *(message(500 + at) for at in range(39, n))])
    line.check()
    copy.check()
    line.store.prune(["t"])
    copy.check()


class Randomised(JsonPlusSerializer):
    """Makes other bytes of the same value each time, as one that encrypts does."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        self.salt = getattr(self, "salt", 0) + 1
        key = self.salt.to_bytes(2, "big") + bytes(range(7))
        mask = (key * (len(data) // 9 + 1))[: len(data)]
        return f"{kind}+{self.salt}", bytes(a ^ b for a, b in zip(data, mask, strict=True))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, _, salt = data[0].rpartition("+")
        key = int(salt).to_bytes(2, "big") + bytes(range(7))
        mask = (key * (len(data[1]) // 9 + 1))[: len(data[1])]
        return super().loads_typed((kind, bytes(a ^ b for a, b in zip(data[1], mask, strict=True))))


def test_s2_a_serializer_may_write_what_it_likes(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """Where each encoding differs from the last, values are stored whole, and come back."""
    line = Thread(forms(backend.open(serde=Randomised())))
    for n in range(20, 30):
        line.put(VALUES["messages"](n))
    line.store.put_writes(config(id=line.last), [("big", VALUES["messages"](31))], "task")
    line.check()
    assert VALUES["messages"](31) == line.store.writes()[0][2]


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_s2_a_write_that_goes_on_with_its_channel_stores_what_is_new(
    backend: SqliteBackend, forms: Callable[[Any], Driver], added: Callable[[], int], memory: int
) -> None:
    """A node that returns the whole of its text again: what is new is stored once, with the write or with the put."""
    line = Thread(forms(backend.open(growing_memory_bytes=memory)))
    text = prose(1, 20_000)
    line.put(text)
    added()
    for n in range(20):
        text += prose(n)
        line.store.put_writes(config(id=line.last), [("small", 1), ("big", text), ("other", "o" * 5_000)], f"task {n}")
        assert added() < 5_000 + 700
        assert [(f"task {n}", "big", text)] == [each for each in line.store.writes(line.last) if each[1] == "big"]
        line.put(text)
        assert added() < 350
    history = line.store.history(config(id=line.last), ["big"])["big"]

    assert [("task 19", "big", text)] == history["writes"]
    assert line.values[cid(20)] == history["seed"]
    line.check()


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_s2_writes_of_tasks_side_by_side_are_their_own(
    backend: SqliteBackend, forms: Callable[[Any], Driver], memory: int
) -> None:
    """Each goes on with the value that they were all given; two to one channel, in one call, as well."""
    line = Thread(forms(backend.open(growing_memory_bytes=memory)))
    text = prose(1, 8_000)
    line.put(text)
    for n in range(4):
        line.store.put_writes(
            config(id=line.last), [("big", text + prose(n)), ("big", text + prose(n + 10))], f"task {n}", "~"
        )

    wanted = [(f"task {n}", "big", text + prose(n + more)) for n in range(4) for more in (0, 10)]
    assert wanted == line.store.writes()
    line.check()


def test_s2_values_that_older_code_stored_in_rows_go_on(
    backend: SqliteBackend, forms: Callable[[Any], Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database from before: nothing is rewritten; what comes now is stored as what is new."""
    line = Thread(forms(backend.open()))
    with monkeypatch.context() as older:
        older.setattr(growing, "LARGE", 1 << 40)
        for n in range(30, 35):
            line.put(VALUES["messages"](n))
    assert {} == pieces(backend.url())
    for store in (line.store, forms(backend.open())):
        for _ in range(5):
            line.put([*line.values[str(line.last)], message(len(line.values) + 400)], store=store)
    line.check()
    line.store.delete_for_runs(["nobody"])
    line.store.prune(["t"])
    line.values = {str(line.last): line.values[str(line.last)]}
    line.check()


def test_s2_missing_bytes_are_told_and_not_made_up(line: Thread, backend: SqliteBackend) -> None:
    line.put(LONG)
    with sqlite3.connect(backend.url()) as connection:
        connection.execute("DELETE FROM strand_piece")
    with pytest.raises(StoreError, match="channel 'big' of thread 't'") as told:
        line.store.read()
    assert told.value.code == "store_corrupt"


@pytest.mark.parametrize("wrong", [-1, 0.5, "1", None])
def test_s2_a_bound_of_memory_that_is_none_is_refused(tmp_path: Path, wrong: Any) -> None:
    """Before anything is opened."""
    with pytest.raises(InvalidArgument, match="growing_memory_bytes"):
        LedgerSaver(tmp_path / "runs.db", growing_memory_bytes=wrong)
    assert [] == list(tmp_path.iterdir())
