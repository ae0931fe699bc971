"""Renewal: one thread that keeps the leases of a database alive, however long their owners' event loops are blocked.

Each lease is renewed at a third of its TTL, by the monotonic clock: a wall clock that is set does not matter. A store
that is busy is asked again until the lease would have expired. A lease that is lost is told of once, and forgotten.

The thread begins with the first lease, and ends when there is none for a while, when `close` is called, or when whoever
made the `Renewal` forgets it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable

from langgraph_ext.database import Database, Tx
from langgraph_ext.database.forks import Ancestry
from langgraph_ext.errors import LangGraphExtError, LeaseError, StoreError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.leases import Lease

__all__ = ["OnLost", "Renewal"]

OnLost = Callable[[LeaseError], object]

_LOGGER = logging.getLogger("langgraph_ext")

_PART = 3
"""A lease is renewed when this part of its TTL is over."""

_AGAIN = 12
"""After a failure, when this part of its TTL is over."""

_GROUP = 64
"""Most leases that are renewed in one transaction."""

_IDLE_SECONDS = 5.0
"""For how long the thread waits for a lease before it ends."""

_LONGEST_SECONDS = 3600.0
"""How long it sleeps at most."""

_FOR_GOOD = frozenset({"closed", "forked"})
"""Codes of errors that trying again does not help against."""


class Renewal:
    """What keeps the leases of one database alive. Safe to use from any thread; does not block an event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._closed = False
        self._rosters: dict[int, _Roster] = {}
        """By `Ancestry.forks`, so that a forked child meets no lock that nobody will give back."""
        self._finalizer = weakref.finalize(self, _let_go, self._rosters)

    def add(self, lease: Lease, on_lost: OnLost) -> None:
        """Renew a lease from now on, until it is removed or lost.

        Args:
            lease: The lease.
            on_lost: Called once, in the renewing thread, if it is lost: it was taken over or released, or could not be
                renewed before it would have expired. It must not block. What it refers to lives on until then.

        Raises:
            StoreError: This object or its database is closed (`closed`), or is used in a forked child (`forked`).
        """
        self._database.check()
        roster = self._rosters.get(Ancestry.forks)
        if roster is None:
            roster = self._rosters.setdefault(Ancestry.forks, _Roster(self._database))
        left_us = min(lease.ttl_us, lease.expires_us - self._database.clock_us())
        held = _Held(lease, on_lost, ends=time.monotonic() + left_us / 1e6)
        if self._closed or not roster.add(held):
            raise StoreError(
                f"the renewal of leases in {self._database.name!r} is closed; make a new one", code="closed"
            )

    def remove(self, thread_id: str, epoch: int) -> None:
        """Renew a lease no more. Once this has returned, nobody is told that it is lost."""
        roster = self._rosters.get(Ancestry.forks)
        if roster is not None:
            roster.remove(thread_id, epoch)

    def soon(self, act: Callable[[], object]) -> None:
        """Run something in the renewing thread, if there is one. Takes no lock: a garbage collection may call it."""
        roster = self._rosters.get(Ancestry.forks)
        if roster is not None:
            roster.soon(act)

    def close(self, *, wait: bool = True) -> None:
        """Renew nothing more, and wait for the thread to end. May be called twice; does nothing in a forked child."""
        self._closed = True
        roster = self._rosters.get(Ancestry.forks)
        if roster is not None:
            roster.close(wait=wait)


class _Held:
    """A lease that is renewed, and when, in seconds of the monotonic clock."""

    __slots__ = ("due", "ends", "key", "on_lost", "ttl")

    def __init__(self, lease: Lease, on_lost: OnLost, *, ends: float) -> None:
        self.key = (lease.thread_id, lease.epoch)
        self.on_lost = on_lost
        self.ttl = lease.ttl_us / 1e6
        self.holds_until(ends)

    def holds_until(self, ends: float) -> None:
        """It was renewed, or acquired, one TTL before this moment."""
        self.ends = ends
        self.due = ends - self.ttl * (1 - 1 / _PART)

    def put_off(self, now: float) -> None:
        """Try again in a while, and when it would expire at the latest."""
        self.due = min(now + self.ttl / _AGAIN, self.ends)


class _Roster:
    """The leases, and the thread that renews them. The mutex is held for moments only, never during a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mutex = threading.Lock()
        self._held: dict[tuple[str, int], _Held] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._looks_at = 0.0
        """When the thread will look what is due, if nobody wakes it."""
        self._wake: queue.SimpleQueue[bool | Callable[[], object]] = queue.SimpleQueue()
        """True: look anew. False: end. Else: run this. To put into it takes no lock: a garbage collection may do it."""

    def add(self, held: _Held) -> bool:
        """Take a lease in; False if this is closed."""
        with self._mutex:
            if self._closed:
                return False
            self._held[held.key] = held
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="lease renewal", daemon=True)
                thread.start()
                self._thread = thread
            elif held.due < self._looks_at:
                self._wake.put(True)
        return True

    def remove(self, thread_id: str, epoch: int) -> None:
        with self._mutex:
            self._held.pop((thread_id, epoch), None)

    def close(self, *, wait: bool) -> None:
        with self._mutex:
            self._closed = True
            self._held.clear()
            thread, self._thread = self._thread, None
        self.let_go()
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def soon(self, act: Callable[[], object]) -> None:
        self._wake.put(act)

    def let_go(self) -> None:
        self._wake.put(False)

    def _serve(self) -> None:
        try:
            while self._wait():
                if due := self._due():
                    self._renew(due)
        except BaseException as error:
            with self._mutex:
                self._thread, left = None, list(self._held.values())
            self._tell_all(left, error)
            raise

    def _wait(self) -> bool:
        """Sleep until something is due; False if the thread is to end."""
        with self._mutex:
            now = time.monotonic()
            is_idle = not self._held
            self._looks_at = min((held.due for held in self._held.values()), default=now + _IDLE_SECONDS)
            pause = min(max(self._looks_at - now, 0.0), _LONGEST_SECONDS)
        try:
            told = self._wake.get(timeout=pause)
        except queue.Empty:
            return not is_idle or self._goes_on()
        if callable(told):
            _run(told)
            return True
        return told

    def _goes_on(self) -> bool:
        """Whether a lease was added after all; if not, the next one starts a new thread."""
        with self._mutex:
            if not self._held:
                self._thread = None
            return bool(self._held)

    def _due(self) -> list[_Held]:
        now = time.monotonic()
        with self._mutex:
            due = sorted((held for held in self._held.values() if held.due <= now), key=_by_end)
        return due[:_GROUP]

    def _renew(self, due: list[_Held]) -> None:
        """Renew these leases in one transaction."""
        begun, keys, now_us = time.monotonic(), [held.key for held in due], self._database.clock_us()
        try:
            answers = self._database.transact(_renew_each, keys, now_us=now_us)
        except StoreError as error:
            self._put_off(due, error)
            return
        for held, lost in zip(due, answers, strict=True):
            if lost is None:
                held.holds_until(begun + held.ttl)
            else:
                self._tell(held, lost)

    def _put_off(self, due: list[_Held], error: StoreError) -> None:
        """The store did not answer: try again, but where it is in vain or too late."""
        now = time.monotonic()
        self._tell_all([held for held in due if error.code in _FOR_GOOD or held.ends <= now], error)
        for held in due:
            held.put_off(now)

    def _tell_all(self, all_held: Iterable[_Held], cause: BaseException) -> None:
        for held in all_held:
            error = leases.lost(*held.key, f"it could not be renewed ({cause})")
            error.__cause__ = cause
            self._tell(held, error)

    def _tell(self, held: _Held, error: LeaseError) -> None:
        """Forget a lease and tell of it, unless it was removed meanwhile."""
        with self._mutex:
            if self._held.get(held.key) is not held:
                return
            del self._held[held.key]
        try:
            held.on_lost(error)
        except Exception:
            _LOGGER.exception("thread %r: its lease is lost, and the function that was told of it raised", held.key[0])


def _run(act: Callable[[], object]) -> None:
    try:
        act()
    except LangGraphExtError as error:
        _LOGGER.warning("what an abandoned body came to could not be recorded (%s): %s", error.code, error.details)


def _renew_each(tx: Tx, keys: Iterable[tuple[str, int]], *, now_us: int) -> list[LeaseError | None]:
    """Renew what is still held; of each other one, the error that says so."""
    answers: list[LeaseError | None] = []
    for thread_id, epoch in keys:
        try:
            leases.renew(tx, thread_id, epoch, now_us=now_us)
        except LeaseError as error:  # raised before it wrote anything
            answers.append(error)
        else:
            answers.append(None)
    return answers


def _by_end(held: _Held) -> float:
    return held.ends


def _let_go(rosters: dict[int, _Roster]) -> None:
    for roster in rosters.values():
        roster.let_go()
