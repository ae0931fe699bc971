"""S7: a call that breaks at any point leaves all of it or nothing, and may be made again."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument, StoreError
from tests.support.build import cid, config, metadata, whole
from tests.support.compare import facts
from tests.support.driver import Driver
from tests.support.faults import FaultySaver, Points, every

Rows = dict[str, list[tuple[Any, ...]]]

TEXT = "".join(f"{n} and " for n in range(1_000))
"""A large value: stored in a strand, of which each checkpoint holds more."""

WRITES = [("a", "new"), ("__interrupt__", "asked"), ("text", TEXT + "new"), ("b", "new")]

CALLS: dict[str, Callable[[Driver], Any]] = {
    "put": lambda store: store.save(
        cid(6),
        {"a": 6, "b": 0, "text": TEXT + "6" * 90},
        {"a": 7, "b": 1, "text": 7},
        parent=cid(5),
        new={"a": 7, "text": 7},
        meta=metadata(6, run_id="r3"),
    ),
    "put that begins to grow": lambda store: store.save(
        cid(6), {"other": TEXT}, {"other": 7}, parent=cid(5), new={"other": 7}, meta=metadata(6, run_id="r3")
    ),
    "put in place of another": lambda store: store.save(
        cid(2),
        {"a": "other", "b": 0, "text": TEXT[9:]},
        {"a": 9, "b": 1, "text": 9},
        parent=cid(1),
        new={"a": 9, "text": 9},
    ),
    "put that is there": lambda store: store.save(
        cid(0), {"a": 0, "b": 0, "text": TEXT}, {"a": 1, "b": 1, "text": 1}, meta=run_of(0)
    ),
    "put_writes": lambda store: store.put_writes(config(id=cid(5)), WRITES, "new task", "path"),
    "delete_thread": lambda store: store.delete_thread("t"),
    "delete_for_runs": lambda store: store.delete_for_runs(["r0", "r1"]),
    "copy_thread": lambda store: store.copy_thread("t", "copy"),
    "prune": lambda store: store.prune(["t"]),
    "prune delete": lambda store: store.prune(["t"], strategy="delete"),
}


class Broken(Exception):
    """What a faulty connection raises; nobody else does."""


ERRORS: dict[str, Callable[[], BaseException]] = {
    "an error of the driver": lambda: sqlite3.OperationalError("disk I/O error"),
    "any error": lambda: Broken("here"),
    "Ctrl-C": KeyboardInterrupt,
}


def run_of(number: int) -> Any:
    return metadata(number, run_id=f"r{number // 2}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed database: thread t with six checkpoints of three runs, values shared and new, writes, a DeltaChannel
    whose value is not stored, a second namespace, and a thread beside it that nobody asks for."""
    path = tmp_path_factory.mktemp("prepared") / "runs.db"
    with FaultySaver(str(path), Points()) as saver:
        for thread in ("t", "other"):
            for ns in ("", "sub"):
                prepare(Driver(saver, "sync", None), thread, ns)  # type: ignore[arg-type]
    return path


def prepare(store: Driver, thread: str, ns: str) -> None:
    for n in range(6):
        more = {"counters_since_delta_snapshot": {"log": n}} if n > 3 else {}
        versions = {"a": n + 1, "b": 1, "text": n + 1, **({"log": n} if n > 2 else {})}
        values = {"a": n, "b": 0, "text": TEXT + f"{n}" * 90 * (n > 0), **({"log": "seed"} if n == 3 else {})}
        parent, new = (cid(n - 1), {"a": n + 1, "text": n + 1, "log": n}) if n else (None, versions)
        store.save(cid(n), values, versions, thread=thread, ns=ns, parent=parent, new=new, meta=run_of(n) | more)
        writes = [("a", n + 1), ("text", values["text"] + "written"), ("log", n)]
        store.put_writes(config(thread, ns, cid(n)), writes, f"task {n}")


@pytest.fixture
def breaking(prepared: Path, tmp_path: Path, forms: Callable[[Any], Driver]) -> Callable[..., tuple[Driver, Path]]:
    """`breaking(points)`: a saver on a new copy of the prepared file, whose connection breaks at a point from then."""
    count = iter(range(10_000))

    def open_copy(points: Points) -> tuple[Driver, Path]:
        path = tmp_path / f"{next(count)}.db"
        shutil.copy(prepared, path)
        saver = FaultySaver(str(path), points)
        saver.setup()
        points.arm()
        return forms(saver), path

    return open_copy


def rows(path: Path) -> Rows:
    """Everything in the file, table by table, as another program sees it (but for the next free `seq`)."""
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
    ]
    found = {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in names}
    connection.close()
    return found


def seen(store: Driver) -> list[Any]:
    """What a user can see of every thread."""
    return [facts(item) for thread in ("copy", "other", "t") for item in store.list(whole(thread))]


def strike(error: str) -> Callable[[], None]:
    def raise_it() -> None:
        raise ERRORS[error]()

    return raise_it


@pytest.mark.parametrize(("form", "error"), [*(("sync", error) for error in ERRORS), ("async", "any error")])
@pytest.mark.parametrize("call", CALLS)
def test_s7_a_crash_at_any_boundary_of_a_call_leaves_all_or_nothing(
    breaking: Callable[..., tuple[Driver, Path]], call: str, error: str
) -> None:
    """Before each statement, before and after the commit: every table is as before or as after the call, the caller is
    told, and making the call again leads where it would have led undisturbed."""
    dry = Points(armed=False)
    store, path = breaking(dry)
    before = rows(path)
    CALLS[call](store)
    after, wanted = rows(path), seen(store)
    store.saver.close()  # type: ignore[attr-defined]
    assert dry.passed[-2:] == ["before", "after"]
    for at in every(len(dry.passed), sample=12):
        check_point(breaking, call, error, at, before, after, wanted)


def check_point(
    breaking: Callable[..., tuple[Driver, Path]],
    call: str,
    error: str,
    at: int,
    before: Rows,
    after: Rows,
    wanted: list[Any],
) -> None:
    store, path = breaking(Points(strike(error), at=at, armed=False))
    with pytest.raises((Broken, StoreError, KeyboardInterrupt)):
        CALLS[call](store)
    assert rows(path) in (before, after), f"half of {call} is left at point {at}"
    try:
        CALLS[call](store)
    except InvalidArgument:  # the copy is there already: it says so, and that is where we wanted to be
        assert call == "copy_thread"
    assert wanted == seen(store), f"{call} again after point {at} leads elsewhere"
    store.saver.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("call", CALLS)
def test_s7_a_call_that_broke_before_its_commit_left_nothing(
    breaking: Callable[..., tuple[Driver, Path]], call: str
) -> None:
    """An error that came before the commit means: nothing is stored."""
    dry = Points(armed=False)
    store, path = breaking(dry)
    before = rows(path)
    CALLS[call](store)
    store.saver.close()  # type: ignore[attr-defined]
    for at in every(len(dry.passed) - 1, sample=6):
        store, path = breaking(Points(strike("any error"), at=at, armed=False))
        with pytest.raises(Broken):
            CALLS[call](store)
        assert before == rows(path)
        store.saver.close()  # type: ignore[attr-defined]


def test_s7_a_saver_goes_on_after_every_crash(breaking: Callable[..., tuple[Driver, Path]]) -> None:
    """The same object, one fault after another: no lock, transaction or thread is left behind by any of them."""
    points = Points(armed=False)
    store, path = breaking(points)
    before = len(rows(path)["checkpoint_log"])
    for n in range(12):
        points.strike_again(strike("any error"), at=n % 3 + 1)
        with contextlib.suppress(Broken):
            store.save(cid(10 + n), {"a": n})
        store.save(cid(10 + n), {"a": n})

    assert [cid(10 + n) for n in range(11, -1, -1)] == store.ids(config(), limit=12)
    assert before + 12 == len(rows(path)["checkpoint_log"])
