"""L14 (store half): a lease is renewed from a thread of its own; one that is lost is told of, once."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_ext.database import Database, open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.database.forks import Ancestry
from langgraph_ext.errors import LeaseError, StoreError
from langgraph_ext.ledger import leases, renewal
from langgraph_ext.ledger.leases import Lease, release, take
from langgraph_ext.ledger.renewal import Renewal
from tests.database.notes import nobody_waits_long, until
from tests.support import leased
from tests.support.faults import Child, run
from tests.support.leased import SECOND, ask, elsewhere, happened, here, outcome

SHORT_US = SECOND * 3 // 10


class Locked(WriteConnection):
    """A connection to a file whose write lock another process holds, as long as the test says so."""

    locked = False
    refusals = 0
    gate: threading.Event | None = None
    waiting = False

    def begin(self) -> None:
        """As ever, or the error that comes when waiting was in vain."""
        if type(self).locked:
            type(self).refusals += 1
            raise StoreError("another process holds its write lock", code="store_busy", retryable=True)
        if type(self).gate is not None:
            type(self).waiting = True
            type(self).gate.wait(20)
        super().begin()


@pytest.fixture
def connection() -> type[Locked]:
    """A class of its own for each test."""
    return type("Locked", (Locked,), {})


@pytest.fixture
def database(path: Path, connection: type[Locked]) -> Iterator[Database]:
    made = open_database(path, fsync="normal", connection=connection)
    made.open()
    yield made
    made.close()


@pytest.fixture
def renewing(database: Database) -> Iterator[Renewal]:
    made = Renewal(database)
    yield made
    made.close()


@pytest.fixture
def told() -> list[LeaseError]:
    """What was told of lost leases."""
    return []


def hold(database: Database, *, thread: str = "t", ttl_us: int = SHORT_US) -> Lease:
    return take(database, thread_id=thread, owner=here(), ttl_us=ttl_us)


def expires_us(path: Path, thread: str = "t") -> int:
    return ask(path, "SELECT expires_us FROM lease WHERE thread_id = ?", thread)[0][0]


def threads() -> list[threading.Thread]:
    """Those that renew leases."""
    return [thread for thread in threading.enumerate() if thread.name == "lease renewal"]


def until_past(database: Database, lease: Lease, times: int = 1) -> None:
    """Wait until a lease would have expired, so many times, had nobody renewed it."""
    end_us = lease.expires_us + (times - 1) * lease.ttl_us
    until(lambda: database.clock_us() > end_us, "time passes")


async def test_l14_a_blocked_loop_keeps_its_lease(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError]
) -> None:
    """The event loop stands still for twice the TTL; the lease is live all the time, and its epoch is the first."""
    lease = await leases.atake(database, thread_id="t", owner=here(), ttl_us=SECOND)
    renewing.add(lease, told.append)
    time.sleep(2.1)  # blocks the loop, which is what this is about

    assert "thread_busy" == outcome(take, database, thread_id="t", owner=elsewhere())
    assert ([], [], [(1,)]) == (told, happened(path), ask(path, "SELECT epoch FROM lease"))


def test_l14_without_renewal_a_lease_ends(database: Database) -> None:
    """The control of the test above."""
    until_past(database, hold(database))

    assert 2 == take(database, thread_id="t", owner=elsewhere()).epoch


def test_l14_any_number_of_leases_is_renewed(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError]
) -> None:
    """By one thread, many of them in one transaction."""
    held = [hold(database, thread=f"thread {n}", ttl_us=SECOND) for n in range(200)]
    for lease in held:
        renewing.add(lease, told.append)
    last_us = max(lease.expires_us for lease in held)
    until(lambda: ask(path, "SELECT min(expires_us) FROM lease") > [(last_us,)], "all are renewed")

    assert (1, []) == (len(threads()), told)


def test_l14_a_lease_is_renewed_at_a_third_of_its_ttl(database: Database, renewing: Renewal, path: Path) -> None:
    """For one TTL from then, and not before."""
    lease = hold(database, ttl_us=SECOND)
    renewing.add(lease, lambda _: None)
    until(lambda: expires_us(path) > lease.expires_us, "it is renewed")

    assert SECOND // 3 <= expires_us(path) - lease.expires_us < SECOND


def test_l14_a_short_lease_does_not_wait_for_a_long_one(database: Database, renewing: Renewal, path: Path) -> None:
    """The thread sleeps until the next one is due, and is woken for one that is due before."""
    renewing.add(hold(database, thread="long", ttl_us=60 * SECOND), lambda _: None)
    until(lambda: renewing._rosters[Ancestry.forks]._looks_at > time.monotonic(), "it sleeps")
    lease = hold(database)
    renewing.add(lease, lambda _: None)

    until(lambda: expires_us(path) > lease.expires_us, "it is renewed", 3)


def test_l14_a_lease_that_is_lost_is_told_of_once(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError]
) -> None:
    """It is renewed no more, and the others are."""
    lost, kept = hold(database), hold(database, thread="kept")
    for lease in (lost, kept):
        renewing.add(lease, told.append)
    database.transact(release, "t", 1, now_us=database.clock_us())
    until_past(database, kept, 3)

    assert [("lease_lost", "t", 1)] == [(each.code, each.details["thread_id"], each.details["epoch"]) for each in told]
    assert expires_us(path, "kept") > kept.expires_us + SHORT_US


def test_l14_a_lease_that_was_removed_is_not_told_of(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError]
) -> None:
    """Nor renewed; removing one that is not there does nothing."""
    lease = hold(database)
    renewing.add(lease, told.append)
    renewing.remove("t", 1)
    renewing.remove("t", 2)
    database.transact(release, "t", 1, now_us=database.clock_us())
    until_past(database, lease)

    assert ([], lease.expires_us) == (told, expires_us(path))


def test_l14_a_lease_that_is_removed_while_it_is_renewed_is_not_told_of(
    database: Database, connection: type[Locked], renewing: Renewal, told: list[LeaseError]
) -> None:
    """Whoever has removed it may give it back at once, whatever its renewal then finds."""
    renewing.add(hold(database), told.append)
    database.transact(release, "t", 1, now_us=database.clock_us())
    connection.gate = threading.Event()
    until(lambda: connection.waiting, "its renewal has begun")
    renewing.remove("t", 1)
    connection.gate.set()
    renewing.close()

    assert [] == told


def test_l14_a_busy_store_is_asked_again(
    database: Database, connection: type[Locked], renewing: Renewal, told: list[LeaseError], path: Path
) -> None:
    """Until it answers, if it does before the lease would expire."""
    lease = hold(database, ttl_us=2 * SECOND)
    renewing.add(lease, told.append)
    connection.locked = True
    until(lambda: connection.refusals == 3, "three tries")
    connection.locked = False
    until(lambda: expires_us(path) > lease.expires_us, "it is renewed")

    assert [] == told


def test_l14_a_store_that_stays_busy_loses_the_lease(
    database: Database, connection: type[Locked], renewing: Renewal, told: list[LeaseError]
) -> None:
    """When it would have expired and not before, with the reason."""
    lease = hold(database)
    renewing.add(lease, told.append)
    connection.locked = True
    until(lambda: told, "it is told")
    ended_us = database.clock_us()
    connection.locked = False

    assert lease.expires_us <= ended_us
    assert ["lease_lost"] == [error.code for error in told]
    assert isinstance(told[0].__cause__, StoreError)
    assert "write lock" in str(told[0])


def test_l14_a_wall_clock_put_back_does_not_stop_renewal(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError]
) -> None:
    """Renewal goes by the monotonic clock; what it stores is one TTL from now, by the clock as it is now."""
    lease, clock_us = hold(database), database.clock_us
    renewing.add(lease, told.append)
    database.clock_us = lambda: clock_us() - 3600 * SECOND
    until(lambda: expires_us(path) < lease.expires_us, "it is renewed")
    first = expires_us(path)
    until(lambda: expires_us(path) > first, "it is renewed again")

    assert expires_us(path) <= database.clock_us() + SHORT_US
    assert [] == told


def test_l14_what_is_told_may_fail(
    database: Database, renewing: Renewal, path: Path, told: list[LeaseError], caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, and the other leases are none the worse."""

    def fail(error: LeaseError) -> None:
        told.append(error)
        raise ValueError("inside")

    lost, kept = hold(database), hold(database, thread="kept")
    renewing.add(lost, fail)
    renewing.add(kept, fail)
    database.transact(release, "t", 1, now_us=database.clock_us())
    until_past(database, kept, 2)

    [record] = caplog.records
    assert (1, True) == (len(told), "thread 't'" in record.getMessage())
    assert expires_us(path, "kept") > kept.expires_us


# -- its thread


def test_l14_the_thread_ends_when_there_is_nothing_to_do(
    database: Database, renewing: Renewal, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """None runs before the first lease; after a while without one it ends, and the next lease starts another."""
    monkeypatch.setattr(renewal, "_IDLE_SECONDS", 0.02)
    assert [] == threads()
    for thread in ("one", "two"):
        lease = hold(database, thread=thread)
        renewing.add(lease, lambda _: None)
        until(lambda lease=lease: expires_us(path, lease.thread_id) > lease.expires_us, "it is renewed")
        renewing.remove(thread, 1)
        until(lambda: not threads(), "the thread ends")


def test_l14_closing_ends_the_thread(database: Database, renewing: Renewal, told: list[LeaseError]) -> None:
    """At once; nobody is told; further leases are refused; it may be closed twice."""
    lease = hold(database, ttl_us=60 * SECOND)
    renewing.add(lease, told.append)
    with nobody_waits_long(3):
        renewing.close()
        renewing.close()

    assert ([], []) == (threads(), told)
    assert "closed" == outcome(renewing.add, lease, told.append)


def test_l14_it_may_be_closed_by_what_it_tells(
    database: Database, renewing: Renewal, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever stops everything when a lease is lost does not wait for itself."""
    renewing.add(hold(database), lambda _: renewing.close())
    database.transact(release, "t", 1, now_us=database.clock_us())

    until(lambda: not threads(), "the thread ends")
    assert [] == caplog.records


def test_l14_a_renewal_that_is_forgotten_ends_its_thread(path: Path) -> None:
    """At once, with leases still to be renewed; nothing keeps its database alive then."""
    database = open_database(path)
    forgotten, alive = Renewal(database), weakref.ref(database)
    forgotten.add(hold(database, ttl_us=60 * SECOND), lambda _: None)
    assert 1 == len(threads())
    del forgotten, database
    gc.collect()

    until(lambda: not threads(), "the thread ends", 3)
    assert alive() is None


def test_l14_a_database_that_is_closed_loses_its_leases(
    database: Database, renewing: Renewal, told: list[LeaseError]
) -> None:
    """They are told of when they are due, since trying again is in vain; it takes in no more."""
    lease = hold(database, ttl_us=2 * SECOND)
    renewing.add(lease, told.append)
    database.close()
    until(lambda: told, "it is told")

    assert database.clock_us() < lease.expires_us
    assert "closed" in str(told[0])
    assert "closed" == outcome(renewing.add, lease, told.append)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_l14_a_forked_child_renews_nothing_of_its_parent(path: Path) -> None:
    """It is refused, hangs nowhere, and does no harm: its parent's lease lives on."""
    assert {"child": 7, "told": []} == run(leased.renew_over_a_fork, str(path)).value()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_l14_a_renewal_that_was_only_made_may_be_used_after_a_fork(path: Path) -> None:
    """Servers make their objects first and fork then: parent and child each have a thread of their own."""
    assert [7, 7] == run(leased.renew_after_a_fork, str(path)).value()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_l14_a_worker_that_was_stopped_hears_that_its_lease_is_lost(database: Database, path: Path) -> None:
    """As soon as it wakes up, before it writes anything; the new owner's lease is left alone."""
    worker = Child(leased.hold_and_renew, str(path), SHORT_US)
    assert 1 == worker.told()
    worker.signal(signal.SIGSTOP)
    until(lambda: outcome(take, database, thread_id="t", owner=here()) == "done", "another takes over", 2)
    ours = expires_us(path)
    worker.signal(signal.SIGCONT)

    assert "lease_lost" == worker.told()
    assert ours == expires_us(path)
    worker.say("end")
    worker.wait()
