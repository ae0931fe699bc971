"""L12: a thread has one live lease; whoever else wants it is refused by name, or takes over what nobody holds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, canonical
from langgraph_ext.database import Database, open_database
from langgraph_ext.errors import InvalidArgument, LeaseError
from langgraph_ext.ledger import RunLedger, leases, owners
from langgraph_ext.ledger.leases import holder, release, renew
from langgraph_ext.ledger.owners import Owner, is_gone
from tests.support import leased
from tests.support.attempts import NOW_US
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Form
from tests.support.faults import KINDS, Child, run
from tests.support.leased import (
    SECOND,
    TTL_US,
    acquire,
    ask,
    elsewhere,
    everything,
    gone,
    happened,
    here,
    outcome,
    take_over_and_be_killed,
)

LATER = NOW_US + TTL_US
HOUR = 3600 * SECOND

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc here")


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    made = open_database(path)
    made.open()
    yield made
    made.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until it is killed."""
    made = subprocess.Popen(["sleep", "60"])
    yield made
    made.kill()
    made.wait()


def busy(database: Database, owner: Owner, *, now_us: int = NOW_US) -> LeaseError:
    """The refusal that an owner gets, after which everything is as it was."""
    path = Path(database.name)
    before = everything(path)
    with pytest.raises(LeaseError) as found:
        acquire(database, owner, now_us=now_us)
    assert (before, "thread_busy", True) == (everything(path), found.value.code, found.value.retryable)
    return found.value


# -- one live lease


def test_l12_a_thread_has_one_live_lease(database: Database) -> None:
    """Another invocation is refused, also one of the same process, and told who holds the thread until when."""
    acquire(database, here("first"))
    refused = busy(database, here("second"), now_us=NOW_US + 1)

    assert {"thread_id": "t", "epoch": 1, "expires_us": LATER} == {
        key: value for key, value in refused.details.items() if key != "owner"
    }
    assert Owner(**refused.details["owner"]) == here("first")  # type: ignore[arg-type]
    assert f"process {os.getpid()}" in str(refused)
    assert "'first'" in str(refused)
    assert "2023-11-14T22:13:50+00:00" in str(refused)


def test_l12_threads_are_held_apart(database: Database) -> None:
    acquire(database, here("first"))

    assert 1 == acquire(database, here("second"), thread="another").epoch


def test_l12_its_holder_gets_the_lease_it_has(database: Database, path: Path) -> None:
    """Acquiring again is a renewal, under the same epoch and for the same TTL, even when it had expired."""
    first = acquire(database, here())
    again = acquire(database, here(), ttl_us=5, now_us=NOW_US + 2 * TTL_US)

    assert replace(first, expires_us=NOW_US + 3 * TTL_US) == again
    assert [] == happened(path)


def test_l12_an_invocation_id_used_in_another_process_is_another_owner(database: Database) -> None:
    """Else two processes would write under one epoch."""
    acquire(database, replace(elsewhere("same id"), host=here().host))

    busy(database, here("same id"))


def test_l12_a_released_thread_is_free(database: Database, path: Path) -> None:
    """The next holder has the next epoch; nothing was taken over, so no event says so."""
    assert 1 == acquire(database, here("first")).epoch
    assert database.transact(release, "t", 1, now_us=NOW_US)
    assert database.read(holder, "t", now_us=NOW_US) is None
    assert 2 == acquire(database, elsewhere()).epoch

    assert [] == happened(path)


def test_l12_only_its_holder_releases_a_thread_and_only_once(database: Database, path: Path) -> None:
    """A second time, or under an epoch that is over, it changes nothing."""
    acquire(database, here("first"))
    assert [True, False] == [database.transact(release, "t", 1, now_us=NOW_US + each) for each in (1, 2)]
    acquire(database, here("second"))
    before = everything(path)

    assert [False, False] == [database.transact(release, "t", epoch, now_us=NOW_US) for epoch in (1, 3)]
    assert before == everything(path)


def test_l12_no_epoch_comes_again(database: Database, path: Path) -> None:
    """Not even when the thread was deleted meanwhile, and begins anew."""
    with LedgerSaver(path) as saver:
        saver.put(config(), checkpoint(cid(1), {}, {}), metadata(1), {})
        acquire(database, here("first"))
        saver.delete_thread("t")

    assert 2 == acquire(database, here("first")).epoch  # its own had lapsed, and ended with the thread
    database.transact(release, "t", 2, now_us=NOW_US)
    assert 3 == acquire(database, here("second")).epoch


@pytest.mark.parametrize("ttl_us", [0, -1, 10**16])
def test_l12_a_ttl_must_be_a_time(database: Database, path: Path, ttl_us: int) -> None:
    with pytest.raises(InvalidArgument, match="TTL"):
        acquire(database, here(), ttl_us=ttl_us)

    assert [] == everything(path)


def test_l12_a_race_has_one_winner(path: Path) -> None:
    """Eight processes, let go at one moment: one holds the thread, the others are told which one it is."""
    crowd = [Child(leased.contend, str(path), f"worker {n}") for n in range(8)]
    assert ["ready"] * 8 == [child.told() for child in crowd]
    for child in crowd:
        child.say("go")
    said = [child.told() for child in crowd]
    for child in crowd:
        child.say("end")
        child.wait()

    [winner] = [n for n, answer in enumerate(said) if answer == ("won", 1)]
    assert [("thread_busy", f"worker {winner}")] * 7 == [answer for answer in said if answer != ("won", 1)]


# -- taken over


def test_l12_an_expired_lease_is_taken_over(database: Database, path: Path) -> None:
    """At the moment it expires and not before; an event says whose it was, and whose it is."""
    acquire(database, elsewhere("first"))
    busy(database, here("second"), now_us=LATER - 1)
    taken = acquire(database, here("second"), now_us=LATER)

    assert (2, LATER, LATER + TTL_US) == (taken.epoch, taken.acquired_us, taken.expires_us)
    [event] = happened(path)
    assert (Owner(**event["from"]), Owner(**event["by"])) == (elsewhere("first"), here("second"))
    assert ("expired", 1, 2, LATER) == tuple(event[key] for key in ("reason", "from_epoch", "epoch", "expires_us"))


def test_l12_a_takeover_is_an_event_of_the_ledger(database: Database, path: Path) -> None:
    """Whoever reads events sees it, at its place in the order of commits."""
    acquire(database, gone())
    acquire(database, here())
    with RunLedger(path) as ledger:
        [event] = ledger.events()

    assert ("lease.taken_over", "t", None) == (event.name, event.thread_id, event.run_id)


def test_l12_a_takeover_is_made_once(database: Database, path: Path) -> None:
    """A transaction may be run again; the second time the thread is its own."""
    acquire(database, gone())
    first, again = acquire(database, here()), acquire(database, here())

    assert first == again
    assert 1 == len(happened(path))


def test_l12_a_killed_owner_is_taken_over_at_once(database: Database, path: Path) -> None:
    """SIGKILL: nobody gave the lease back, and nobody waits for it to expire."""
    worker = Child(leased.hold, str(path), TTL_US)
    assert 1 == worker.told()
    assert "thread_busy" == outcome(leases.take, database, thread_id="t", owner=here())
    worker.signal(signal.SIGKILL)
    assert worker.wait().killed

    assert 2 == leases.take(database, thread_id="t", owner=here()).epoch
    assert ["owner_gone"] == [event["reason"] for event in happened(path)]


@pytest.mark.parametrize("field", ["host", "boot_id", "pid_ns"])
def test_l12_what_cannot_be_known_here_is_waited_for(database: Database, field: str) -> None:
    """A process of another host, boot or namespace may live although there is none of its id here."""
    acquire(database, replace(gone(), **{field: "another"}))  # type: ignore[arg-type]
    assert database.read(holder, "t", now_us=LATER - 1) is not None
    busy(database, here(), now_us=LATER - 1)

    assert 2 == acquire(database, here(), now_us=LATER).epoch


@pytest.mark.parametrize("kind", KINDS)
def test_l12_a_takeover_that_is_killed_is_whole_or_never_was(path: Path, kind: str) -> None:
    """At every point of it: the lease and the event are both as they were, or both new."""

    def end(at: int) -> tuple[Any, ...]:
        file = path.with_name(f"{kind} {at}.db")
        prepared = open_database(file)
        acquire(prepared, gone())
        prepared.close()
        ended = run(take_over_and_be_killed, str(file), kind, at)
        return ended.answer, ask(file, "SELECT epoch FROM lease"), len(happened(file))

    points, *_ = end(0)
    assert points.count(kind) > 0
    whole = [([(1,)], 0)] if kind != "after" else [([(2,)], 1)]
    assert whole * points.count(kind) == [end(at)[1:] for at in range(1, points.count(kind) + 1)]


# -- owners


def test_l12_a_live_process_is_not_gone(sleeper: subprocess.Popen[bytes]) -> None:
    assert not is_gone(here())
    assert not is_gone(process(sleeper.pid))
    assert not is_gone(replace(here(), pid=1, started=""))  # somebody else's


def test_l12_a_dead_process_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    owner = process(sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    assert is_gone(owner)


@needs_proc
def test_l12_a_zombie_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    """It has died, and its parent has not asked how."""
    owner = process(sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)

    assert is_gone(owner)


@needs_proc
def test_l12_a_process_that_began_at_another_moment_is_another(sleeper: subprocess.Popen[bytes]) -> None:
    """Process ids are given out again."""
    assert is_gone(replace(process(sleeper.pid), started="1"))
    assert not is_gone(replace(process(sleeper.pid), started=""))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_l12_a_forked_child_is_a_process_of_its_own() -> None:
    assert {"pid": True, "same": False, "parent gone": False, "child gone": True} == run(leased.fork_and_look).value()


def test_l12_without_proc_the_process_id_alone_decides(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on macOS."""
    monkeypatch.setattr(owners, "_PROC", tmp_path)
    owner = replace(here(), pid=sleeper.pid)
    assert ("", "", "", False) == (owner.boot_id, owner.pid_ns, owner.started, is_gone(owner))
    sleeper.kill()
    sleeper.wait()

    assert is_gone(owner)
    assert not is_gone(replace(owner, host="another"))


@needs_proc
def test_l12_a_proc_of_another_namespace_proves_nothing(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers are those of other processes."""
    owner = replace(process(sleeper.pid), started="1")
    link = owners._link
    monkeypatch.setattr(owners, "_link", lambda name: "1" if name == "self" else link(name))

    assert not is_gone(owner)


def test_l12_an_owner_is_read_as_it_was_written() -> None:
    """Also by code that knows less of it."""
    more = canonical.encode({**canonical.decode(here().to_text().encode()), "zone": "new"}).decode()

    assert [here(), here()] == [Owner.from_text(text) for text in (here().to_text(), more)]


def process(pid: int) -> Owner:
    """A process of this host as an owner, as it would name itself."""
    found = owners._look_up(str(pid))
    return replace(here(), pid=pid, started="" if found is None else found.started)


# -- clocks


@pytest.fixture
def take(database: Database, form: Form) -> Callable[..., Any]:
    """Both doors, at a time that the test says."""

    def at(now_us: int, owner: Owner) -> Any:
        database.clock_us = lambda: now_us
        if form == "sync":
            return leases.take(database, thread_id="t", owner=owner)
        return asyncio.run(leases.atake(database, thread_id="t", owner=owner))

    return at


def test_l12_a_clock_put_back_extends_no_lease_beyond_one_ttl(take: Callable[..., Any], path: Path) -> None:
    """Who looks first after that is refused as ever, and lets the lease end one TTL from then."""
    take(NOW_US, elsewhere())
    back = NOW_US - HOUR
    for now_us in (back, back + 1, back + TTL_US - 1):
        with pytest.raises(LeaseError, match="thread_busy") as refused:
            take(now_us, here())
        assert back + TTL_US == refused.value.details["expires_us"]
    assert [(1, back + TTL_US)] == ask(path, "SELECT epoch, expires_us FROM lease")

    assert 2 == take(back + TTL_US, here()).epoch


def test_l12_a_clock_that_is_right_shortens_nothing(take: Callable[..., Any], path: Path) -> None:
    take(NOW_US, elsewhere())
    with pytest.raises(LeaseError):
        take(NOW_US, here())

    assert [(LATER,)] == ask(path, "SELECT expires_us FROM lease")


def test_l12_a_holder_is_shown_to_end_one_ttl_from_now_at_the_latest(database: Database) -> None:
    """Looking writes nothing; so is a lease that its owner renews after the clock was put back."""
    acquire(database, here())
    shown = database.read(holder, "t", now_us=NOW_US - HOUR)
    renewed = database.transact(renew, "t", 1, now_us=NOW_US - HOUR)

    assert shown == renewed
    assert NOW_US - HOUR + TTL_US == renewed.expires_us


# -- deletion


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    """A saver with one checkpoint of thread `t`, at whose clock it is NOW_US."""
    with LedgerSaver(open_database(path, clock_us=lambda: NOW_US)) as made:
        made.put(config(), checkpoint(cid(1), {}, {}), metadata(1), {})
        yield made


def delete(saver: LedgerSaver, form: Form) -> None:
    if form == "sync":
        saver.delete_thread("t")
    else:
        asyncio.run(saver.adelete_thread("t"))


@pytest.mark.parametrize("owner", [here("any"), elsewhere()], ids=["this process", "another one"])
def test_l12_s9_a_thread_that_somebody_holds_is_not_deleted(
    saver: LedgerSaver, database: Database, path: Path, form: Form, owner: Owner
) -> None:
    """Whoever it is, in whatever process; nor are its checkpoints taken away."""
    acquire(database, owner)
    before = everything(path)
    with pytest.raises(LeaseError, match="thread_busy"):
        delete(saver, form)
    with pytest.raises(LeaseError, match="thread_busy"):
        saver.prune(["t"], strategy="delete")
    with pytest.raises(LeaseError, match="thread_busy"):
        saver.prune(["t"])

    assert before == everything(path)


@pytest.mark.parametrize("owner", [gone(), replace(elsewhere(), pid=1)], ids=["gone", "expired"])
def test_l12_a_thread_that_nobody_holds_any_more_is_deleted(
    saver: LedgerSaver, database: Database, owner: Owner, form: Form
) -> None:
    """Its last owner is known to be gone, or has let its lease expire."""
    acquire(database, owner, now_us=NOW_US - TTL_US if owner.pid == 1 else NOW_US)
    delete(saver, form)

    assert saver.get_tuple(config()) is None
