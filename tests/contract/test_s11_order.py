"""S11: a checkpoint never overtakes the writes that led to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.crowd import together
from tests.support.driver import Driver


class Gate(JsonPlusSerializer):
    """A serde that stops at the texts "slow" and "slower" until they are let go, and tells when they and "put" came."""

    def __init__(self) -> None:
        super().__init__()
        self.came = {name: threading.Event() for name in ("slow", "slower", "put")}
        self.opened = {name: threading.Event() for name in ("slow", "slower")}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, str) and obj in self.came:
            self.came[obj].set()
        if isinstance(obj, str) and obj in self.opened:
            assert self.opened[obj].wait(90), "nobody opened the gate"
        return super().dumps_typed(obj)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """The serde; opened when the test ends, whatever happened."""
    made = Gate()
    yield made
    for event in made.opened.values():
        event.set()


@pytest.fixture
def gated(backend: SqliteBackend, gate: Gate) -> LedgerSaver:
    """A saver whose encoding of "slow" and "slower" waits at the gate; checkpoint 1 of two threads is there."""
    saver = backend.open(serde=gate)
    for thread in ("t", "u"):
        saver.put(config(thread), checkpoint(cid(1)), metadata(), {})
    return saver


def slow_write(saver: LedgerSaver, value: str = "slow") -> None:
    saver.put_writes(config(id=cid(1)), [("a", value)], f"task {value}")


def put_next(saver: LedgerSaver, thread: str = "t") -> list[Any]:
    """Put checkpoint 2 and return the writes at its parent that are stored by then."""
    saver.put(config(thread, id=cid(1)), checkpoint(cid(2), {"b": "put"}), metadata(1), {"b": 1})
    found = saver.get_tuple(config(thread, id=cid(1)))
    assert found is not None
    return found.pending_writes or []


def test_s11_a_put_waits_for_writes_of_its_thread_that_were_entered_before(gated: LedgerSaver, gate: Gate) -> None:
    """`put_writes` is still encoding when the next `put` comes: when the put is acknowledged, the writes are stored."""
    answered = threading.Event()

    def put() -> list[Any]:
        assert gate.came["slow"].wait(60)
        stored = put_next(gated)
        answered.set()
        return stored

    def let_go() -> None:
        assert gate.came["slow"].wait(60)
        answered.wait(0.3)  # a put that does not wait is answered long before
        gate.opened["slow"].set()

    assert [("task slow", "a", "slow")] == together(lambda: slow_write(gated), put, let_go)[1]


async def test_s11_an_async_put_waits_without_holding_the_loop(gated: LedgerSaver, gate: Gate) -> None:
    """While `aput` waits for a write that a thread still encodes, the loop and other threads' puts go on."""
    writing = threading.Thread(target=slow_write, args=(gated,))
    writing.start()
    assert gate.came["slow"].wait(60)
    waiting = asyncio.create_task(gated.aput(config(id=cid(1)), checkpoint(cid(2)), metadata(1), {}))
    for n in range(2, 12):
        await asyncio.wait_for(gated.aput(config("u"), checkpoint(cid(n)), metadata(n), {}), 60)
    assert not waiting.done()
    gate.opened["slow"].set()
    await asyncio.wait_for(waiting, 60)
    found = await gated.aget_tuple(config(id=cid(1)))
    writing.join(60)

    assert found is not None
    assert [("task slow", "a", "slow")] == found.pending_writes


def test_s11_a_put_of_another_thread_does_not_wait(gated: LedgerSaver, gate: Gate) -> None:
    """Only the own thread's writes are waited for: others go on while one of them encodes."""

    def put() -> list[Any]:
        assert gate.came["slow"].wait(60)
        stored = put_next(gated, "u")
        gate.opened["slow"].set()
        return stored

    assert [] == together(lambda: slow_write(gated), put)[1]


def test_s11_writes_entered_after_a_put_are_not_waited_for(gated: LedgerSaver, gate: Gate) -> None:
    """Writes that come while a put is under way do not hold it up: it would never end under a steady stream."""

    def put() -> int:
        assert gate.came["slow"].wait(60)
        stored = put_next(gated)
        gate.opened["slower"].set()
        return len(stored)

    def write_later() -> None:
        assert gate.came["put"].wait(60)
        slow_write(gated, "slower")

    def let_go() -> None:
        assert gate.came["slower"].wait(60)
        gate.opened["slow"].set()

    assert 1 >= together(lambda: slow_write(gated), put, write_later, let_go)[1]


def test_s11_a_write_that_fails_holds_nobody_up(saver: LedgerSaver, store: Driver) -> None:
    """A call that raised while it encoded has left the register: later puts of its thread go through."""
    with pytest.raises(TypeError):
        store.put_writes(config(id=cid(1)), [("a", open)], "task")
    store.save(cid(1))
    store.save(cid(2), parent=cid(1))

    assert [cid(2), cid(1)] == store.ids(config())


def test_s11_puts_and_writes_of_one_coroutine_are_stored_in_their_order(store: Driver, saver: LedgerSaver) -> None:
    """`aput_writes` started before `aput`, neither awaited in between: the writes are there when the put is."""
    seen: list[int] = []

    async def step(n: int) -> None:
        writes = [asyncio.create_task(saver.aput_writes(config(id=cid(n)), [("a", k)], f"task {k}")) for k in range(20)]
        await asyncio.sleep(0)
        await saver.aput(config(id=cid(n)), checkpoint(cid(n + 1)), metadata(n), {})
        found = await saver.aget_tuple(config(id=cid(n)))
        seen.append(len(found.pending_writes or []) if found else -1)
        await asyncio.gather(*writes)

    async def steps() -> None:
        await saver.aput(config(), checkpoint(cid(0)), metadata(), {})
        for n in range(10):
            await step(n)

    store.loop.run_until_complete(steps())
    assert [20] * 10 == seen


def test_s11_waiting_is_nobodys_deadlock(saver: LedgerSaver) -> None:
    """Many threads write and put in one thread at once, in all orders: everything is answered."""

    def work(name: str) -> None:
        for n in range(15):
            saver.put_writes(config(id=cid(n)), [("a", n)], f"{name} {n}")
            saver.put(config(id=cid(n)), checkpoint(cid(n + 1)), metadata(n), {})

    together(*(lambda n=n: work(f"t{n}") for n in range(6)))
    found = list(saver.list(config()))
    assert [cid(n) for n in range(15, 0, -1)] == [item.checkpoint["id"] for item in found]
    assert 14 * 6 == sum(len(item.pending_writes or []) for item in found)
