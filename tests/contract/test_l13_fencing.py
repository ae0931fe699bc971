"""L13: what is written under a lease is checked in its own transaction; a stale epoch writes nothing."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_ext.database import Database, open_database
from langgraph_ext.errors import ConflictError, LeaseError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.attempts import interrupt_left
from langgraph_ext.ledger.leases import check, release, renew
from tests.database.notes import until
from tests.support import leased
from tests.support.attempts import NOW_US, begin, end, settle, status_of
from tests.support.faults import Child, full
from tests.support.leased import SECOND, TTL_US, acquire, elsewhere, everything, gone, happened, here, note, outcome

SEEDS = 10_000 if full() else 300

STEPS = 32
"""Steps of one story."""


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    made = open_database(path, fsync="normal")
    made.open()
    yield made
    made.close()


def refused(database: Database, path: Path, epoch: int) -> LeaseError:
    """How a write under an epoch is refused, with everything as it was."""
    before = everything(path)
    with pytest.raises(LeaseError) as found:
        database.transact(note, "t", epoch)
    assert (before, "lease_lost", False) == (everything(path), found.value.code, found.value.retryable)
    return found.value


# -- the fence


def test_l13_its_holder_writes(database: Database, path: Path) -> None:
    acquire(database, here())
    database.transact(note, "t", 1, "mine")

    assert ["mine"] == [event["text"] for event in happened(path, "note.written")]


def test_l13_who_was_taken_over_writes_nothing(database: Database, path: Path) -> None:
    """The message says by whom."""
    acquire(database, gone())
    acquire(database, here("next"))
    error = refused(database, path, 1)

    assert {"thread_id": "t", "epoch": 1, "now_epoch": 2} == error.details
    assert "'next'" in str(error)


def test_l13_who_gave_the_thread_back_writes_nothing(database: Database, path: Path) -> None:
    acquire(database, here())
    database.transact(release, "t", 1, now_us=NOW_US)

    assert "was released" in str(refused(database, path, 1))


@pytest.mark.parametrize("epoch", [0, 2])
def test_l13_an_epoch_that_was_never_given_out_writes_nothing(database: Database, path: Path, epoch: int) -> None:
    """Nor does any on a thread that was never held."""
    refused(database, path, epoch)
    acquire(database, here())

    refused(database, path, epoch)


def test_l13_an_expired_lease_is_its_owners_until_somebody_takes_it(database: Database) -> None:
    """Time decides who may take over, not whether a write is in order: the fence looks at no clock."""
    acquire(database, elsewhere(), now_us=NOW_US - 2 * TTL_US)
    database.transact(check, "t", 1)
    database.transact(renew, "t", 1, now_us=NOW_US)

    assert "thread_busy" == outcome(acquire, database, here())


@pytest.mark.parametrize("is_released", [True, False], ids=["released", "taken over"])
def test_l13_a_lost_lease_is_not_renewed(database: Database, path: Path, is_released: bool) -> None:
    acquire(database, gone())
    if is_released:
        database.transact(release, "t", 1, now_us=NOW_US)
    else:
        acquire(database, here())
    before = everything(path)

    assert "lease_lost" == outcome(database.transact, renew, "t", 1, now_us=NOW_US)
    assert before == everything(path)


def test_l13_a_fence_and_what_it_guards_are_one_transaction(database: Database, path: Path) -> None:
    """What was written before the look goes with it."""
    acquire(database, here())
    before = everything(path)

    def write_twice(tx: object) -> None:
        note(tx, "t", 1)  # type: ignore[arg-type]
        note(tx, "t", 2)  # type: ignore[arg-type]

    assert "lease_lost" == outcome(database.transact, write_twice)
    assert before == everything(path)


def test_l13_an_epoch_fences_attempts(database: Database) -> None:
    """What an earlier owner left running is given up under the new epoch, and its late end is refused."""
    acquire(database, gone())
    database.transact(begin, "a1", epoch=1)
    epoch = acquire(database, here()).epoch

    assert ("a1",) == database.transact(interrupt_left, "t", epoch=epoch, now_us=NOW_US)
    with pytest.raises(ConflictError, match="terminal_conflict"):
        database.transact(settle, end(epoch=1), now_us=NOW_US)
    assert "interrupted" == status_of(database)


# -- real processes


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_l13_a_stopped_worker_that_wakes_up_writes_nothing(database: Database, path: Path) -> None:
    """Stopped past its lease of a second: another takes over within two, and what it writes afterwards is refused."""
    worker = Child(leased.hold, str(path), SECOND)
    assert 1 == worker.told()
    worker.say("before")
    assert "done" == worker.told()
    worker.signal(signal.SIGSTOP)
    assert database.read(leases.holder, "t", now_us=0) is not None  # a process that is stopped is not gone
    until(lambda: outcome(leases.take, database, thread_id="t", owner=here()) == "done", "another takes over", 2)
    before = everything(path)
    worker.signal(signal.SIGCONT)
    worker.say("after")

    assert "lease_lost" == worker.told()
    assert before == everything(path)
    worker.say("end")
    worker.wait()


def test_l13_workers_that_fight_for_a_thread_never_write_across_each_other(path: Path) -> None:
    """Two processes whose leases expire at once, over and over: no write of an epoch stands behind a later one's."""
    database = open_database(path)
    database.open()
    database.close()
    crowd = [Child(leased.fight, str(path), name) for name in ("a", "b")]
    assert ["ready"] * 2 == [child.told() for child in crowd]
    for child in crowd:
        child.say("go")
    assert ["enough"] * 2 == [child.told() for child in crowd]
    for child in crowd:
        child.say("stop")
    for child in crowd:
        child.wait()
    written = [(event["epoch"], event["text"]) for event in happened(path, "note.written")]

    assert sorted(written) == written
    assert len({epoch for epoch, _ in written}) == len(set(written))
    assert {"a", "b"} == {name for _, name in written}


# -- two workers, told apart by a model


class Thread:
    """What a thread's lease must be, by the rules alone."""

    def __init__(self) -> None:
        self.epoch = 0
        self.owner: str | None = None
        self.expires_us = 0

    def acquires(self, owner: str, ttl_us: int, now_us: int) -> str | int:
        """The epoch it gets, or the code of the refusal."""
        if self.owner is not None and self.owner != owner and now_us < self.expires_us:
            return "thread_busy"
        if self.owner != owner:
            self.epoch += 1
        self.owner, self.expires_us = owner, now_us + ttl_us
        return self.epoch

    def is_of(self, epoch: int) -> bool:
        """Whether it is held under this epoch."""
        return self.owner is not None and self.epoch == epoch


def test_l13_a_stale_writer_is_refused_every_time(database: Database, path: Path) -> None:
    """Acquire, write, renew and release of two workers, in any order and with any time in between."""
    counts = {"done": 0, "lease_lost": 0, "thread_busy": 0}
    for seed in range(SEEDS):
        tell(database, seed, counts)
    written = leased.ask(
        path, "SELECT thread_id, details FROM checkpoint_log WHERE event = 'note.written' ORDER BY thread_id, seq"
    )
    epochs = [(thread_id, int(details.partition('"epoch":')[2].split(",")[0])) for thread_id, details in written]

    assert sorted(epochs) == epochs
    assert all(count > SEEDS for count in counts.values()), counts


def tell(database: Database, seed: int, counts: dict[str, int]) -> None:
    """One story, compared with the model at every step."""
    chance, thread, now_us, ttl_us = random.Random(seed), Thread(), NOW_US, 10
    name = f"thread {seed:05}"
    known = {"a": 0, "b": 0}  # the last epoch that each was told
    for step in range(STEPS):
        now_us += chance.choice([0, 1, 2, 5, 12])
        who, what = (
            chance.choice("ab"),
            chance.choice(["acquire", "acquire", "write", "write", "write", "renew", "release"]),
        )
        epoch, where = known[who], f"seed {seed}, step {step}: {who} {what}"
        if what == "acquire":
            expected = thread.acquires(who, ttl_us, now_us)
            try:
                known[who] = found = acquire(database, elsewhere(who), thread=name, ttl_us=ttl_us, now_us=now_us).epoch
            except LeaseError as error:
                found = error.code
            assert expected == found, where
            if isinstance(found, str):
                counts[found] += 1
        elif what == "release":
            assert thread.is_of(epoch) == database.transact(release, name, epoch, now_us=now_us), where
            if thread.is_of(epoch):
                thread.owner = None
        else:
            expected = "done" if thread.is_of(epoch) else "lease_lost"
            if what == "write":
                found = outcome(database.transact, note, name, epoch)
            else:
                found = outcome(database.transact, renew, name, epoch, now_us=now_us)
            assert expected == found, where
            counts[found] += 1
            if what == "renew" and thread.is_of(epoch):
                thread.expires_us = now_us + ttl_us
