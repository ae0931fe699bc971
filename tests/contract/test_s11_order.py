"""S11: a checkpoint never overtakes the writes that led to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.crowd import together
from tests.support.driver import Driver


class Gate(JsonPlusSerializer):
    """A serde that stops at the value "slow" until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.opened = threading.Event(), threading.Event()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == "slow":
            self.entered.set()
            assert self.opened.wait(20), "nobody opened the gate"
        return super().dumps_typed(obj)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """The serde; opened when the test ends, whatever happened."""
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture
def gated(backend: SqliteBackend, gate: Gate) -> LedgerSaver:
    """A saver whose encoding of "slow" waits at the gate."""
    return backend.open(serde=gate)


def slow_write(saver: LedgerSaver, thread: str = "t") -> None:
    saver.put_writes(config(thread, id=cid(1)), [("a", "slow")], "task")


def put_next(saver: LedgerSaver, thread: str = "t") -> list[Any]:
    """Put checkpoint 2 and return the writes at its parent that are stored by then."""
    saver.put(config(thread, id=cid(1)), checkpoint(cid(2)), metadata(1), {})
    found = saver.get_tuple(config(thread, id=cid(1)))
    assert found is not None
    return found.pending_writes or []


def test_s11_a_put_waits_for_writes_of_its_thread_that_were_entered_before(gated: LedgerSaver, gate: Gate) -> None:
    """`put_writes` is still encoding when the next `put` comes: when the put is acknowledged, the writes are stored."""
    gated.put(config(), checkpoint(cid(1)), metadata(), {})
    ended = threading.Event()

    def put() -> list[Any]:
        assert gate.entered.wait(10)
        threading.Timer(0.2, gate.opened.set).start()  # a put that does not wait is done long before
        stored = put_next(gated)
        ended.set()
        return stored

    assert [("task", "a", "slow")] == together(lambda: slow_write(gated), put)[1]


def test_s11_a_put_of_another_thread_does_not_wait(gated: LedgerSaver, gate: Gate) -> None:
    """Only the own thread's writes are waited for: others go on while one of them encodes."""
    for thread in ("t", "u"):
        gated.put(config(thread), checkpoint(cid(1)), metadata(), {})

    def put() -> list[Any]:
        assert gate.entered.wait(10)
        stored = put_next(gated, "u")
        gate.opened.set()
        return stored

    assert [] == together(lambda: slow_write(gated), put)[1]


def test_s11_writes_entered_after_a_put_are_not_waited_for(gated: LedgerSaver, gate: Gate) -> None:
    """Writes that come while a put is under way do not hold it up."""
    for n in range(30):
        gated.put(config(), checkpoint(cid(n)), metadata(n), {})

    def put() -> int:
        assert gate.entered.wait(10)
        gate.opened.set()
        return len(put_next(gated))

    assert 1 >= together(lambda: slow_write(gated), put)[1]


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
        writes = [
            asyncio.create_task(saver.aput_writes(config(id=cid(n)), [("a", k)], f"task {k}")) for k in range(20)
        ]
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


def test_s11_waiting_is_nobodys_deadlock(backend: SqliteBackend, form: Callable[[Any], Driver]) -> None:
    """Many threads write and put in one thread at once, in all orders: everything is answered."""
    saver = backend.open()

    def work(name: str) -> int:
        for n in range(15):
            saver.put_writes(config(id=cid(n)), [("a", n)], f"{name} {n}")
            saver.put(config(id=cid(n)), checkpoint(cid(n + 1)), metadata(n), {})
        return len(list(saver.list(config())))

    assert [15] * 6 == together(*(lambda n=n: work(f"t{n}") for n in range(6)))
