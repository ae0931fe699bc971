"""Leases and their owners, in this process and in others, and what the database holds of them."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.database.forks import Ancestry
from langgraph_ext.errors import LangGraphExtError, LeaseError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.owners import Owner, is_gone
from langgraph_ext.ledger.renewal import Renewal
from tests.database.notes import until
from tests.support.attempts import NOW_US
from tests.support.faults import Line, Points, faulty, kill_myself

SECOND = 1_000_000

TTL_US = 30 * SECOND


def here(invocation: str = "here") -> Owner:
    """An owner in this process."""
    return Owner.here(invocation)


def elsewhere(invocation: str = "elsewhere") -> Owner:
    """An owner on another host, of which nobody here can say whether it lives."""
    return replace(Owner.here(invocation), host="another host", boot_id="another boot", pid=2**22 + 1)


def gone(invocation: str = "gone") -> Owner:
    """An owner in a process of this host that has never been."""
    return replace(Owner.here(invocation), pid=2**22 + 1)  # Linux gives out no greater one than 2**22


def acquire(
    database: Database, owner: Owner, *, thread: str = "t", ttl_us: int = TTL_US, now_us: int = NOW_US
) -> Lease:
    """Hold a thread."""
    return database.transact(leases.acquire, thread_id=thread, owner=owner, ttl_us=ttl_us, now_us=now_us)


def note(tx: Tx, thread: str, epoch: int, text: str = "") -> None:
    """What every write under a lease does: look whether it still holds, and write."""
    leases.check(tx, thread, epoch)
    append_event(
        tx,
        name="note.written",
        run=None,
        thread_id=thread,
        checkpoint_ns="",
        checkpoint_id="",
        details={"epoch": epoch, "text": text},
        stored_us=NOW_US,
    )


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """`"done"`, or the code of the error."""
    try:
        call(*args, **kwargs)
    except LangGraphExtError as error:
        return error.code
    return "done"


def ask(path: Path, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """What another program sees."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, params).fetchall()
    finally:
        connection.close()


def everything(path: Path) -> list[tuple[Any, ...]]:
    """All leases, and the whole log."""
    return ask(path, "SELECT * FROM lease ORDER BY thread_id") + ask(path, "SELECT * FROM checkpoint_log ORDER BY seq")


def happened(path: Path, name: str = "lease.taken_over") -> list[dict[str, Any]]:
    """The details of the events of this name, oldest first."""
    found = ask(path, "SELECT details FROM checkpoint_log WHERE event = ? ORDER BY seq", name)
    return [canonical.decode(details) for (details,) in found]


# -- in other processes


def hold(path: str, ttl_us: int, line: Line) -> None:
    """Hold thread `t`, say under which epoch, and write whatever the parent says; tell how each write ended."""
    database = open_database(path)
    lease = leases.take(database, thread_id="t", owner=here("worker"), ttl_us=ttl_us)
    line.tell(lease.epoch)
    while (text := line.hear()) != "end":
        line.tell(outcome(database.transact, note, "t", lease.epoch, text))
    database.close()


def hold_and_renew(path: str, ttl_us: int, line: Line) -> None:
    """Hold thread `t` and renew the lease; say its epoch, and then, if that is so, that it is lost."""
    database = open_database(path)
    renewal = Renewal(database)
    lease = leases.take(database, thread_id="t", owner=here("worker"), ttl_us=ttl_us)
    renewal.add(lease, lambda error: line.tell(error.code))
    line.tell(lease.epoch)
    line.hear()
    renewal.close()
    database.close()


def contend(path: str, name: str, line: Line) -> None:
    """Try to hold thread `t` when the parent says so; tell what came of it, and live until the parent has heard."""
    database = open_database(path)
    database.open()
    line.tell("ready")
    line.hear()
    try:
        lease = leases.take(database, thread_id="t", owner=here(name))
        line.tell(("won", lease.epoch))
    except LeaseError as error:
        line.tell((error.code, error.details["owner"]["invocation_id"]))  # type: ignore[index]
    line.hear()
    database.close()


def fight(path: str, name: str, line: Line) -> None:
    """Take thread `t` again and again, for less time than its use takes, and write; say when 20 writes were refused."""
    database = open_database(path, fsync="normal")
    database.open()
    line.tell("ready")
    line.hear()
    refused = 0
    while not line.has_word(0):
        with suppress(LeaseError):
            lease = leases.take(database, thread_id="t", owner=here(name), ttl_us=300)
            for _ in range(3):
                if outcome(database.transact, note, "t", lease.epoch, name) == "lease_lost":
                    refused += 1
                    if refused == 20:
                        line.tell("enough")
    database.close()


def take_over_and_be_killed(path: str, kind: str, at: int) -> list[str]:
    """Take over the lease of an owner that is gone, and be killed at a point; the points passed if there was none."""
    points = Points(kill_myself, kind=kind, at=at, armed=False)
    database = open_database(path, connection=faulty(points))
    database.open()
    points.arm()
    acquire(database, elsewhere("next"), now_us=NOW_US)
    database.close()
    return points.passed


def fork_and_look() -> dict[str, Any]:
    """Fork: who the child takes itself for, and whether it takes its parent for gone."""
    parent = here()
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        owner = here()
        said = {"pid": owner.pid == os.getpid(), "same": owner.is_same(parent), "parent gone": is_gone(parent)}
        os.write(sending, canonical.encode(said))
        os._exit(0)
    os.waitpid(child, 0)
    said = canonical.decode(os.read(receiving, 4096))
    return {**said, "child gone": is_gone(replace(parent, pid=child))}


def renew_over_a_fork(path: str) -> dict[str, Any]:
    """Renew a lease, fork a child that uses what it inherited, and see that the parent's lease lives on."""
    database = open_database(path)
    renewal = Renewal(database)
    ttl_us = SECOND // 3
    lease = leases.take(database, thread_id="t", owner=here(), ttl_us=ttl_us)
    told: list[str] = []
    renewal.add(lease, lambda error: told.append(error.code))
    with renewal._rosters[Ancestry.forks]._mutex:  # as the thread may hold it at that moment: nobody gives it back
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            said = outcome(renewal.add, lease, told.append)
            renewal.remove("t", lease.epoch)
            renewal.close()
            os._exit(7 if said == "forked" and not told else 1)
    _, status = os.waitpid(child, 0)
    until_renewed(path, lease)
    renewal.close()
    database.close()
    return {"child": os.waitstatus_to_exitcode(status), "told": told}


def renew_after_a_fork(path: str) -> list[int]:
    """Make a renewal, fork, and use it on both sides; the exit code of the child, and of what the parent did."""
    open_database(path).close()
    database = open_database(path)
    renewal = Renewal(database)

    def renew(thread: str) -> int:
        lease = leases.take(database, thread_id=thread, owner=here(), ttl_us=SECOND // 3)
        renewal.add(lease, print)
        until_renewed(path, lease)
        renewal.close()
        return 7

    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(renew("child"))
    _, status = os.waitpid(child, 0)
    return [os.waitstatus_to_exitcode(status), renew("parent")]


def until_renewed(path: str, lease: Lease) -> None:
    """Wait until the database says that a lease was renewed."""
    before, sql = [(lease.expires_us,)], "SELECT expires_us FROM lease WHERE thread_id = ?"
    until(lambda: ask(Path(path), sql, lease.thread_id) != before, "the lease is renewed", 5)
