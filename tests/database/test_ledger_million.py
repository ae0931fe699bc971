"""L48: of a million events, a page and a follower read what they give, and nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import RunLedger
from langgraph_ext.ledger.order import behind
from tests.database.long_threads import Meter, metered
from tests.support.rows import Rows

SHORT, LONG, MILLION = 1_000, 20_000, 1_000_000

Reads = dict[str, Callable[[RunLedger, int], Any]]


def middle(ledger: RunLedger, count: int) -> str:
    """The run in the middle."""
    return f"run {count // 100 // 2}"


READS: Reads = {
    "the first page": lambda ledger, count: ledger.events(),
    "a page in the middle": lambda ledger, count: ledger.events(after=behind(count // 2)),
    "the last events": lambda ledger, count: ledger.events(after=behind(count - 10)),
    "nothing new": lambda ledger, count: ledger.events(after=behind(2 * count)),
    "a follower that is left": lambda ledger, count: taken(ledger.follow(after=behind(count // 2)), 10),
    "a follower at the end": lambda ledger, count: list(ledger.follow(after=behind(count - 10), idle_seconds=0)),
    "the events of a run": lambda ledger, count: ledger.events(middle(ledger, count)),
    "a follower of a run": lambda ledger, count: taken(ledger.follow(middle(ledger, count)), 99),
    "the visits of a run": lambda ledger, count: ledger.visits(middle(ledger, count)),
    "a snapshot": lambda ledger, count: [ledger.snapshot(middle(ledger, count))],
    "the newest runs": lambda ledger, count: ledger.runs(limit=10),
    "the runs of a thread": lambda ledger, count: ledger.runs(thread_id="thread 5"),
    "its questions": lambda ledger, count: ledger.interrupts(run_id=middle(ledger, count)) or [None],
}


def taken(events: Any, count: int) -> list[Any]:
    """The first events of a follower, which is closed then."""
    found = list(islice(events, count))
    events.close()
    return found


def fill(path: Path, count: int) -> None:
    """Runs of 100 rows each: a beginning, a checkpoint, 97 calls at it, an end. Each is the only one of its thread."""
    rows = Rows(path)
    numbers = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < :count)"
    common = "'thread ' || (n / 100), '', '1f0b0000-0000-6000-8000-' || substr('00000000000' || (n / 100), -12)"
    rows.connection.execute("BEGIN")
    rows.connection.execute(
        f"""{numbers} INSERT INTO checkpoint_log (
            seq, thread_id, checkpoint_ns, checkpoint_id, listed, metadata, task_id, task_path, event, run, stored_us,
            body, data
        ) SELECT
            n + 1, {common}, CASE WHEN n % 100 = 0 THEN 1 END, CASE WHEN n % 100 = 0 THEN CAST('{{}}' AS BLOB) END,
            CASE WHEN n % 100 BETWEEN 2 AND 98 THEN 'task ' || n END,
            CASE WHEN n % 100 BETWEEN 2 AND 98 THEN '~__pregel_pull, node' END,
            CASE n % 100
                WHEN 0 THEN NULL WHEN 1 THEN 'run.started' WHEN 99 THEN 'run.stopped' ELSE 'visit.succeeded'
            END,
            CASE WHEN n % 100 IN (0, 1, 99) THEN n / 100 + 1 END, n, x'', x''
        FROM n""",
        {"count": count},
    )
    rows.connection.execute(
        f"""{numbers} INSERT INTO run (run, run_id, thread_id, first_id, last_id, status, started_us, changed_us)
        SELECT n / 100 + 1, 'run ' || (n / 100 + 1), 'thread ' || (n / 100),
            '1f0b0000-0000-6000-8000-' || substr('00000000000' || (n / 100), -12), '', 'idle', n, n
        FROM n WHERE n % 100 = 0""",
        {"count": count},
    )
    rows.connection.execute("COMMIT")
    rows.close()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Files with so many rows, made when first asked for."""
    return maker(tmp_path_factory.mktemp("events"))


def maker(folder: Path) -> Callable[[int], Path]:
    """As the fixture."""

    def of(count: int) -> Path:
        path = folder / f"{count}.db"
        if not path.exists():
            fill(path, count)
        return path

    return of


@pytest.fixture
def meter() -> Iterator[Meter]:
    with metered() as made:
        yield made


def compare(meter: Meter, logs: Callable[[int], Path], read: Callable[[RunLedger, int], Any], more: int) -> None:
    """The same read of a short and of a long log does the same work, but for the depth of a tree."""
    done = []
    for count in (SHORT, more):
        with RunLedger(logs(count)) as ledger:
            steps, found = meter.of(lambda ledger=ledger, count=count: read(ledger, count))  # type: ignore[misc]
        done.append((steps, len(found)))
    (short, given), (long, as_many) = done

    assert given == as_many
    assert short > 0
    assert long <= short * 1.1 + 100


@pytest.mark.parametrize("read", READS)
def test_l48_reading_does_not_depend_on_the_length_of_the_log(
    meter: Meter, logs: Callable[[int], Path], read: str
) -> None:
    """Twenty times as many events, the same number of instructions."""
    compare(meter, logs, READS[read], LONG)


def test_l48_the_async_form_reads_no_more(meter: Meter, logs: Callable[[int], Path]) -> None:
    async def page_and_follow(ledger: RunLedger, count: int) -> list[Any]:
        found = [*await ledger.aevents(after=behind(count // 2))]
        async for event in ledger.afollow(after=behind(count - 10), idle_seconds=0):
            found.append(event)
        return found

    compare(meter, logs, lambda ledger, count: asyncio.run(page_and_follow(ledger, count)), LONG)


def test_l48_a_follower_reads_each_row_once(meter: Meter, logs: Callable[[int], Path]) -> None:
    """What comes later costs what it is, however much came before it."""
    with RunLedger(logs(LONG)) as ledger:
        events = ledger.follow(poll_seconds=0.001)
        steps = []
        for _ in range(10):
            meter.steps = 0
            assert 1900 == len(list(islice(events, 1900)))
            steps.append(meter.steps)
        events.close()

    assert max(steps) <= min(steps) * 1.5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_l48_a_million_events_are_paged_and_followed_alike(meter: Meter, tmp_path: Path) -> None:
    """Every read of the list above, a thousand times as many events; and all of it is looked through in pages."""
    logs = maker(tmp_path)
    try:
        for read in READS.values():
            compare(meter, logs, read, MILLION)
        with RunLedger(logs(MILLION)) as ledger:
            assert [] == ledger.verify()
    finally:
        for file in tmp_path.iterdir():
            file.unlink()


def test_the_log_of_this_test_is_a_sound_one(logs: Callable[[int], Path]) -> None:
    """Not only fast, but what it is taken for."""
    with RunLedger(logs(SHORT)) as ledger:
        assert [] == ledger.verify()
        assert SHORT - SHORT // 100 == len(ledger.events(limit=SHORT))
    connection = sqlite3.connect(logs(SHORT))
    assert (SHORT,) == connection.execute("SELECT count(*) FROM checkpoint_log").fetchone()
    connection.close()
