"""S10: sweep applies retention to many threads, in bounded batches, and leaves alone what is in use."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from langgraph_ext import Frame, LedgerSaver, RunLedger, durable
from langgraph_ext.database import open_database
from langgraph_ext.errors import ConflictError, InvalidArgument, NotFound
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.saver import Kept, Swept, sweeping
from tests.support.apps import State, asks, line, names, says
from tests.support.build import checkpoint, cid, config, metadata, whole
from tests.support.driver import Driver, Form

DAY = 86_400.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.us

    def days(self, number: float) -> None:
        self.us += int(number * DAY * 1e6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path, clock: Clock) -> Iterator[LedgerSaver]:
    with LedgerSaver(open_database(path, clock_us=clock)) as saver:
        yield saver


@pytest.fixture
def store(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Driver:
    return Driver(saver, form, loop)


def swept(store: Driver, **options: Any) -> Swept:
    found: Swept = store.call("sweep", **options)
    return found


def grow(store: Driver, clock: Clock, *threads: str, count: int = 4, days: float = 1.0) -> None:
    """So many checkpoints on each, one a day, each with a value of its own and what a task wrote."""
    for n in range(1, count + 1):
        for thread in threads:
            parent = cid(n - 1) if n > 1 else None
            store.save(cid(n), {"a": n, "b": 1}, {"a": n, "b": 1}, thread=thread, parent=parent, new={"a": n})
            store.put_writes(config(thread, id=cid(n)), [("a", n)], "task")
        clock.days(days)


def ran(saver: LedgerSaver, app: Any, thread: str, given: Any = ()) -> Any:
    where: Any = {"configurable": {"thread_id": thread}}
    return app.invoke({"log": list(given)}, where, durability="sync")


# -- what goes


def test_s10_the_newest_stay_and_of_the_others_the_young_ones(store: Driver, clock: Clock) -> None:
    """`older_than_seconds` and `keep_last` together: a checkpoint goes if neither keeps it."""
    grow(store, clock, "t", "u")  # 4, 3, 2 and 1 days old
    did = swept(store, older_than_seconds=2.5 * DAY)
    assert ([cid(4), cid(3)], 4) == (store.ids(whole("t")), did.checkpoints)
    clock.days(30)
    did = swept(store, older_than_seconds=2.5 * DAY, keep_last=2)
    assert ([cid(4), cid(3)], Swept(threads=2, batches=1)) == (store.ids(whole("u")), did)
    did = swept(store, older_than_seconds=2.5 * DAY)

    assert Swept(threads=2, pruned=2, checkpoints=2, batches=1) == did
    assert ([cid(4)], {"a": 4, "b": 1}) == (store.ids(whole("t")), store.read().checkpoint["channel_values"])


def test_s10_without_an_age_all_but_the_newest_go(store: Driver, clock: Clock) -> None:
    grow(store, clock, "t", days=0)

    assert Swept(threads=1, pruned=1, checkpoints=2, batches=1) == swept(store, keep_last=2)
    assert [cid(4), cid(3)] == store.ids(whole("t"))


def test_s10_a_thread_in_which_nothing_was_stored_for_long_is_deleted(store: Driver, clock: Clock) -> None:
    """With `keep_last=0`, by a tombstone; one in which something was, keeps what is young, and its newest."""
    grow(store, clock, "t", "u", "v")
    clock.days(10)
    store.save(cid(9), {"a": 9}, thread="u", parent=cid(4))
    store.put_writes(config("v", id=cid(4)), [("__error__", "now")], "task-2")
    did = swept(store, older_than_seconds=5 * DAY, keep_last=0)

    assert Swept(threads=3, pruned=2, deleted=1, checkpoints=4 + 4 + 3, batches=1) == did
    assert ([], [cid(9)], [cid(4)]) == tuple(store.ids(whole(thread)) for thread in "tuv")
    with pytest.raises(ConflictError, match="thread_deleted"):
        store.save(cid(5), {"a": 5}, parent=cid(4))


def test_s10_a_ledger_may_be_kept(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    app = line(saver, a=says("a"))
    for thread in "tuv":
        ran(saver, app, thread)
    clock.days(2)
    did = swept(store, older_than_seconds=DAY, keep_last=0, keep_ledger=True)

    assert 3 == did.deleted
    assert ["t", "u", "v"] == sorted(run.thread_id for run in saver.ledger.runs() if run.thread_deleted)
    assert ([], []) == (store.list(None), saver.ledger.verify())


def test_s10_subgraphs_that_can_never_go_on_go(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """A subgraph's task stood at a root checkpoint that goes; one that keeps its state between turns stays."""
    keeps = StateGraph(State).add_node("k", says("k")).add_edge(START, "k").compile(checkpointer=True)
    app = line(saver, inner=line(None, b=says("b"), deep=line(None, c=says("c"))), keeps=keeps)
    for _ in range(3):
        ran(saver, app, "t")
        clock.days(1)
    spaces = {each.config["configurable"]["checkpoint_ns"] for each in store.list(whole())}
    state = app.get_state(config())
    did = swept(store, keep_last=1)
    left = {each.config["configurable"]["checkpoint_ns"] for each in store.list(whole())}

    assert 1 + 3 + 3 + 1 == len(spaces)
    assert {"", "keeps"} == left
    assert (state.values, []) == (app.get_state(config()).values, saver.ledger.verify())
    assert did.checkpoints == len(store.list(whole())) + did.checkpoints - 2
    assert ran(saver, app, "t")


# -- what stays


def test_s10_a_sweep_says_what_it_left_alone_and_why(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """A thread that somebody runs, one that asks, one with an effect in doubt; and it goes on with the others."""

    def lost(key: str) -> Any:
        raise TimeoutError

    @durable(effect="write")
    def pays(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("pay", {}, lost)]}

    for thread in ("asks", "runs", "doubt", "done"):
        ran(saver, line(saver, a=says("a")), thread)
    ran(saver, line(saver, ask=asks("sure?")), "asks")
    with pytest.raises(TimeoutError):
        ran(saver, line(saver, pays=pays), "doubt")
    lease = leases.take(saver.database, thread_id="runs", owner=Owner.here("somebody"))
    before = {thread: store.ids(whole(thread)) for thread in ("asks", "runs", "doubt")}
    clock.us += 1_000_000
    options = {"older_than_seconds": 0.5, "keep_last": 0}
    would = swept(store, **options, dry_run=True)
    did = swept(store, **options)

    assert {Kept.HELD: 1, Kept.ASKS: 1, Kept.IN_DOUBT: 1} == did.skipped == would.skipped
    assert before == {thread: store.ids(whole(thread)) for thread in before}
    assert ([], 1, 1) == (store.ids(whole("done")), would.deleted, did.deleted)
    saver.database.transact(leases.release, "runs", lease.epoch, now_us=clock())
    assert (1, 2) == ((again := swept(store, **options)).deleted, sum(again.skipped.values()))


def test_s10_what_has_nothing_to_lose_is_not_counted_as_left_alone(
    store: Driver, saver: LedgerSaver, clock: Clock
) -> None:
    ran(saver, line(saver, ask=asks("sure?")), "asks")
    assert {} == swept(store, older_than_seconds=DAY, keep_last=1).skipped


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep_last": 0},
        {"keep_last": -1},
        {"keep_last": 1.0},
        {"keep_last": True},
        {"older_than_seconds": -1},
        {"older_than_seconds": float("nan")},
        {"older_than_seconds": float("inf")},
        {"older_than_seconds": "1"},
        {"older_than_seconds": True},
        {"events_older_than_seconds": -0.1},
        {"keep_ledger": True},
        {"dry_run": True},
    ],
)
def test_s10_what_means_nothing_or_everything_is_refused(store: Driver, clock: Clock, options: Any) -> None:
    """And nothing is taken away."""
    grow(store, clock, "t")
    with pytest.raises(InvalidArgument, match="sweep"):
        swept(store, **options)

    assert 4 == len(store.ids(whole()))


# -- batches


def test_s10_a_dry_run_changes_nothing_and_says_what_would_go(store: Driver, clock: Clock, path: Path) -> None:
    grow(store, clock, "t", "u")
    clock.days(9)
    grow(store, clock, "v")
    options = {"older_than_seconds": 5 * DAY, "keep_last": 0, "events_older_than_seconds": DAY}
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    would = swept(store, **options, dry_run=True)
    assert before == (path.read_bytes(), Path(f"{path}-wal").read_bytes())
    did = swept(store, **options)

    assert (2, 0, 8) == (would.deleted, would.pruned, would.checkpoints)
    assert (did.deleted, did.pruned, did.checkpoints) == (would.deleted, would.pruned, would.checkpoints)


def test_s10_a_sweep_goes_in_bounded_batches(
    store: Driver, clock: Clock, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many threads, or so many checkpoints, each; in between others write. It reports after each."""
    monkeypatch.setattr(sweeping, "_THREADS", 4)
    monkeypatch.setattr(sweeping, "SLICE", 6)
    grow(store, clock, *(f"t{n}" for n in range(10)), days=0)
    told: list[Swept] = []
    with LedgerSaver(path) as other:

        def between(so_far: Swept) -> None:
            told.append(so_far)
            other.put(config("other"), checkpoint(cid(len(told)), {}, {}), metadata(), {})

        did = swept(store, keep_last=1, on_progress=between)

    assert [6, 12, 18, 24, 30, 30] == [each.checkpoints for each in told]
    assert list(range(1, len(told) + 1)) == [each.batches for each in told]
    assert (told[-1], 10) == (did, did.pruned)
    assert [[cid(4)]] * 10 == [store.ids(whole(f"t{n}")) for n in range(10)]


def test_s10_a_long_thread_is_deleted_in_slices(
    store: Driver, clock: Clock, monkeypatch: pytest.MonkeyPatch, saver: LedgerSaver
) -> None:
    """No batch takes more than it may; in the end the thread is gone, with its tombstone."""
    monkeypatch.setattr(sweeping, "SLICE", 5)
    grow(store, clock, "t", count=23, days=0)
    clock.days(2)
    counts: list[int] = []
    did = swept(
        store, older_than_seconds=DAY, keep_last=0, on_progress=lambda _: counts.append(len(store_ids(saver, "t")))
    )

    assert [18, 13, 8, 3, 0] == counts
    assert (1, 23) == (did.deleted, did.checkpoints)


def store_ids(saver: LedgerSaver, thread: str) -> list[Any]:
    """Read beside the loop that a sweep runs on."""
    with sqlite3.connect(saver.database.name) as connection:
        return connection.execute(
            "SELECT seq FROM checkpoint_log WHERE thread_id = ? AND listed = 1", [thread]
        ).fetchall()


def test_s10_a_second_sweep_finds_nothing(store: Driver, clock: Clock) -> None:
    """So one that was cut off is simply begun anew."""
    grow(store, clock, *"abcdef")
    options = {"older_than_seconds": 0, "keep_last": 1, "events_older_than_seconds": 0}
    swept(store, **options)
    again = swept(store, **options)

    assert (6, 0, 0, 0) == (again.threads, again.pruned, again.checkpoints, again.events)


@pytest.mark.parametrize("threads", [50, 400])
def test_s10_what_a_sweep_reads_grows_with_the_threads_not_with_their_length(tmp_path: Path, threads: int) -> None:
    """A thread with nothing to lose is passed over after a few looks, however long it is; rows are counted."""
    counts = []
    for length in (2, 40):
        path = tmp_path / f"{length}.db"
        with LedgerSaver(path) as saver:
            for thread in range(threads // (10 if length > 2 else 1)):
                for n in range(1, length + 1):
                    saver.put(
                        config(f"t{thread}", id=cid(n - 1) if n > 1 else None),
                        checkpoint(cid(n), {}, {}),
                        metadata(),
                        {},
                    )
            steps = 0

            def tick() -> int:
                nonlocal steps
                steps += 1
                return 0

            def count(tx: Any) -> None:
                tx._execute.__self__._connection.set_progress_handler(tick, 10)

            saver.database.transact(count)
            done = saver.sweep(older_than_seconds=10 * DAY)
            assert 0 == done.checkpoints
            counts.append(steps / done.threads)

    assert counts[1] < counts[0] * 2, counts


# -- events


def test_s10_l48_old_events_are_shown_no_more(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """Of all runs, and of each; who has stored a cursor behind them reads on, who has not is told."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    for n in range(4):
        ran(saver, app, f"t{n}")
        clock.days(1)
    whole_ = saver.ledger.events(limit=1000)
    of_runs = {run.run_id: saver.ledger.events(run.run_id) for run in saver.ledger.runs()}
    did = swept(store, events_older_than_seconds=2.5 * DAY)
    kept = [event for event in whole_ if event.thread_id in ("t2", "t3")]

    assert len(whole_) - len(kept) == did.events
    assert kept == saver.ledger.events(limit=1000)
    gone = whole_[-len(kept) - 1]
    for event in whole_:
        if event.cursor < gone.cursor:
            with pytest.raises(NotFound, match="cursor_expired") as told:
                saver.ledger.events(after=event.cursor)
            assert gone.cursor == told.value.details["oldest"]
        else:
            assert [each for each in kept if each.cursor > event.cursor] == saver.ledger.events(after=event.cursor)
    for run_id, events in of_runs.items():
        left = [each for each in events if each.thread_id in ("t2", "t3")]
        assert left == saver.ledger.events(run_id)
        assert [] == saver.ledger.events(run_id, after=events[-1].cursor)
    assert [] == saver.ledger.verify()


def test_s10_l48_a_run_whose_old_events_are_gone_is_numbered_on(
    store: Driver, saver: LedgerSaver, clock: Clock
) -> None:
    """It waits for long, and goes on."""
    app = line(saver, a=says("a"), ask=asks("sure?"), b=says("b"))
    ran(saver, app, "t")
    run_id = saver.ledger.runs()[0].run_id
    before = saver.ledger.events(run_id)
    clock.days(9)
    swept(store, events_older_than_seconds=DAY)
    assert [] == saver.ledger.events(run_id)
    saver.ledger.answer({saver.ledger.interrupts(pending=True)[0].interrupt_id: "yes"})
    app.invoke(saver.ledger.resume_command("t"), config())
    after = saver.ledger.events(run_id, after=before[-1].cursor)

    assert after == saver.ledger.events(run_id)
    assert list(range(len(before) + 1, len(before) + len(after) + 1)) == [event.run_seq for event in after]
    assert ("run.succeeded", []) == (after[-1].name, saver.ledger.verify())


def test_s10_the_ledger_stays_sound_however_many_events_go(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """Runs that ended, failed, wait and are in doubt; one day after the other is forgotten."""

    def lost(key: str) -> Any:
        raise TimeoutError

    @durable(effect="write")
    def pays(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("pay", {}, (lambda key: "paid") if "ok" in state["log"] else lost)]}

    for n in range(3):
        ran(saver, line(saver, a=says("a"), inner=line(None, b=says("b"))), f"done {n}")
        ran(saver, line(saver, ask=asks("sure?")), f"asks {n}")
        ran(saver, line(saver, pays=pays), f"paid {n}", ["ok"])
        with pytest.raises(TimeoutError):
            ran(saver, line(saver, pays=pays), f"doubt {n}")
        clock.days(1)
    while events := saver.ledger.events(limit=1000):
        swept(store, events_older_than_seconds=(clock() - events[0].at.timestamp() * 1e6) / 1e6 - 1)
        assert [] == saver.ledger.verify()
        runs = saver.ledger.runs()
        assert 12 == len(runs)
        for run in runs:
            numbers = [event.run_seq for event in saver.ledger.events(run.run_id)]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)) if numbers else ())
    assert 3 == len(saver.ledger.effects(status="unknown"))
    assert 3 == len(saver.ledger.interrupts(pending=True))


def test_s10_a_run_that_was_open_when_its_first_events_went_leaves_none_when_its_end_goes(
    store: Driver, saver: LedgerSaver, clock: Clock, path: Path
) -> None:
    """What was kept to say why it stood as it did would say so for ever."""
    app = line(saver, a=says("a"), ask=asks("sure?"), again=asks("really?"))
    ran(saver, app, "t")
    for more in (1, 1, 0):
        clock.days(2)
        swept(store, events_older_than_seconds=DAY)
        assert [] == saver.ledger.verify()
        for question in saver.ledger.interrupts(pending=True)[:more]:
            saver.ledger.answer({question.interrupt_id: "yes"})
            app.invoke(saver.ledger.resume_command("t"), config())
    clock.days(2)
    ran(saver, line(saver, a=says("a")), "u")
    swept(store, events_older_than_seconds=DAY)
    with sqlite3.connect(path) as connection:
        left = connection.execute(
            "SELECT event FROM checkpoint_log WHERE thread_id = 't' AND event LIKE 'run.%'"
        ).fetchall()

    assert ("succeeded", []) == (saver.ledger.runs(thread_id="t")[0].status, saver.ledger.verify())
    assert [] == left


def test_s10_the_last_number_of_the_log_never_comes_again(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """Though everything is forgotten."""
    ran(saver, line(saver, a=says("a")), "t")
    clock.days(1)
    swept(store, older_than_seconds=0, keep_last=0)
    last = saver.ledger.events()[-1].cursor
    for _ in range(2):
        clock.days(1)
        swept(store, events_older_than_seconds=0)
    assert [] == saver.ledger.events()
    ran(saver, line(saver, a=says("a")), "u")

    shown = saver.ledger.events()
    assert ["run.started", "visit.succeeded", "run.succeeded"] == list(names(shown))
    assert all(event.cursor > last for event in shown)


def test_s10_a_kept_ledger_is_forgotten_with_its_events(
    store: Driver, saver: LedgerSaver, clock: Clock, path: Path
) -> None:
    """Then its runs and totals alone are left, and no row of the log."""
    ran(saver, line(saver, a=says("a"), inner=line(None, b=says("b"))), "t")
    store.call("delete_thread", "t", keep_ledger=True)
    ran(saver, line(saver, a=says("a")), "t")
    clock.days(2)
    did = swept(store, events_older_than_seconds=DAY)
    with sqlite3.connect(path) as connection:
        left = connection.execute("SELECT count(*) FROM checkpoint_log WHERE thread_id LIKE 'kept:%'").fetchone()[0]
        visits = connection.execute("SELECT count(*) FROM kept_thread").fetchone()[0]

    assert did.events > 3
    assert (0, 0, 2) == (left, visits, len(saver.ledger.runs(thread_id="t")))
    assert ([], []) == (saver.ledger.events(saver.ledger.runs(thread_id="t")[1].run_id), saver.ledger.verify())


def test_s10_an_observer_that_was_overtaken_goes_on(path: Path, clock: Clock) -> None:
    """It was silent while another process wrote and swept; it is told of what comes, and logs what it missed."""
    seen: list[str] = []
    database = open_database(path, clock_us=clock)
    with LedgerSaver(database, on_event=lambda event: seen.append(event.name)) as saver, LedgerSaver(path) as other:
        ran(saver, line(saver, a=says("a")), "t")
        count = len(seen)
        ran(other, line(other, a=says("a")), "u")
        other.sweep(events_older_than_seconds=0)
        ran(saver, line(saver, b=says("b")), "v")
        ran(saver, line(saver, b=says("b")), "v")

    assert "run.succeeded" == seen[-1]
    assert count < len(seen)


def test_s10_l48_readers_in_other_processes_are_told(store: Driver, saver: LedgerSaver, clock: Clock) -> None:
    """A ledger of its own, and one that follows."""
    ran(saver, line(saver, a=says("a")), "t")
    first = saver.ledger.events(limit=1)[0].cursor
    clock.days(2)
    swept(store, events_older_than_seconds=DAY)
    ran(saver, line(saver, a=says("a")), "t")
    with RunLedger(saver.database.name) as ledger:
        with pytest.raises(NotFound, match="cursor_expired"):
            next(ledger.follow(after=first))
        shown = list(ledger.follow(idle_seconds=0))

    assert ["run.started", "visit.succeeded", "run.succeeded"] == list(names(shown))
