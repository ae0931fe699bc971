"""Scenario 13, SQLite's half: another process holds the write lock for longer than we wait."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.database import connection as ours
from langgraph_ext.errors import StoreError
from tests.database.notes import until
from tests.faults import children
from tests.faults.children import GIVEN, NODES, RUN, THREAD, invoke, noted
from tests.support.build import cid, config
from tests.support.driver import Driver, Form
from tests.support.faults import Child

Hold = Callable[..., Any]


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """`with hold(): …` another process holds the write lock; it lets go when told, or after so many seconds."""

    @contextmanager
    def holding(seconds: float = 60.0) -> Iterator[Child]:
        holder = Child(children.hold_lock, str(tmp_path / "runs.db"), seconds)
        assert "held" == holder.told()
        try:
            yield holder
        finally:
            with contextlib.suppress(OSError):  # it has let go already
                holder.say("let go")
            holder.wait()

    return holding


@pytest.fixture
def store(tmp_path: Path, forms: Callable[[Any], Driver]) -> Iterator[Driver]:
    """A saver with one checkpoint."""
    with LedgerSaver(tmp_path / "runs.db") as saver:
        made = forms(saver)
        made.save(cid(0), {"a": 0})
        yield made


def rows(folder: Path) -> list[Any]:
    connection = sqlite3.connect(folder / "runs.db")
    found = connection.execute("SELECT * FROM checkpoint_log ORDER BY seq").fetchall()
    connection.close()
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """We wait 0.3 s only, so that the test need not wait five."""
    monkeypatch.setattr(ours, "BUSY_SECONDS", 0.3)
    return 0.3


CALLS: dict[str, Callable[[Driver], Any]] = {
    "put": lambda store: store.save(cid(1), {"a": 1}, parent=cid(0)),
    "put_writes": lambda store: store.put_writes(config(id=cid(0)), [("a", 1), ("b", 2)], "task"),
    "delete_thread": lambda store: store.delete_thread("t"),
    "copy_thread": lambda store: store.copy_thread("t", "copy"),
    "prune": lambda store: store.prune(["t"]),
    "delete_for_runs": lambda store: store.delete_for_runs(["r"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_s7_a_busy_file_is_waited_for_and_then_store_busy(
    store: Driver, hold: Hold, tmp_path: Path, impatient: float, call: str
) -> None:
    """Every writing call, in both forms: it waits its time, says that trying again is worth it, has written nothing,
    and works once the lock is free."""
    before = rows(tmp_path)
    with hold():
        start = time.monotonic()
        with pytest.raises(StoreError, match="busy") as caught:
            CALLS[call](store)
        waited = time.monotonic() - start
        assert before == rows(tmp_path)
    CALLS[call](store)

    assert ("store_busy", True) == (caught.value.code, caught.value.retryable)
    assert impatient <= waited  # and the lock was held for longer


def test_s7_a_lock_that_is_let_go_in_time_is_no_error(store: Driver, hold: Hold, impatient: float) -> None:
    """A call that waits goes on as soon as the other process is done."""
    with hold(seconds=impatient / 3):
        store.save(cid(1), {"a": 1})

    assert [cid(1), cid(0)] == store.ids(config())


def test_s7_opening_a_new_file_that_is_busy_waits_too(
    tmp_path: Path, hold: Hold, forms: Callable[[Any], Driver], impatient: float
) -> None:
    """The first use of a file that somebody else is just filling: `store_busy`, and later it works."""
    sqlite3.connect(tmp_path / "runs.db").close()
    with LedgerSaver(tmp_path / "runs.db") as saver:
        with hold(), pytest.raises(StoreError) as caught:
            forms(saver).save(cid(0))
        forms(saver).save(cid(0))

    assert "store_busy" == caught.value.code


def test_s7_reads_go_on_while_the_file_is_busy(store: Driver, hold: Hold) -> None:
    """No reader waits for a writer."""
    with hold():
        assert [cid(0)] == store.ids(config())
        assert {"a": 0} == store.read().checkpoint["channel_values"]


class Meets(LedgerSaver):
    """Meets a lock when the checkpoint of a step is put, after the writes of the step were stored."""

    def __init__(self, url: Path, meet: Callable[[], None]) -> None:
        super().__init__(url)
        self.meet = meet

    def put(self, where: Any, made: Any, meta: Any, versions: Any) -> Any:
        if meta["step"] == 3:
            until(lambda: self.get_tuple(THREAD).pending_writes, "the writes are stored")  # type: ignore[union-attr]
            self.meet()
        return super().put(where, made, meta, versions)

    async def aput(self, where: Any, made: Any, meta: Any, versions: Any) -> Any:
        if meta["step"] == 3:
            while not (await self.aget_tuple(THREAD)).pending_writes:  # type: ignore[union-attr]
                pass
            self.meet()
        return await super().aput(where, made, meta, versions)


@pytest.mark.slow
def test_scenario_13_a_run_meets_a_lock_that_is_held_for_seven_seconds(tmp_path: Path, hold: Hold, form: Form) -> None:
    """The put waits 5 s and the run raises `store_busy`; nothing is half written, and `invoke(None)` finishes the run
    with each node's effect counted once."""
    log, met = str(tmp_path / "log"), contextlib.ExitStack()
    with met, Meets(tmp_path / "runs.db", lambda: met.enter_context(hold(seconds=7.0))) as saver:
        start = time.monotonic()
        with pytest.raises(StoreError) as caught:
            invoke(saver, log, form, GIVEN, "sync")
        assert ("store_busy", True) == (caught.value.code, 5.0 <= time.monotonic() - start)
    with LedgerSaver(tmp_path / "runs.db") as saver:
        assert 2 == saver.get_tuple(THREAD).metadata["step"]  # type: ignore[union-attr]
        assert invoke(saver, log, form, None, "sync") == RUN

    assert Counter(NODES) == Counter(noted(log))
