"""The lane: one FIFO of transactions in front of one write connection, committed in groups.

    sync caller ──┐                      ┌── leads: commits a group in its own thread
    sync caller ──┼──▶ FIFO ──▶ group ──▶┤
    async caller ─┘                      └── or the one writer thread leads

Whoever finds nobody leading leads: a sync caller in its own thread (no hop), an async caller by waking the writer
thread. A leader commits a bounded snapshot of the queue as one group, wakes its members (one wake-up a loop and group),
and hands the lead to a waiting caller, so no caller serves others for ever. A caller that may linger waits a little for
company before it leads; joined, it sleeps on until the next leader goes to the disk, unless somebody waits for it. A
caller that leads waits a little for others where many graphs run at once (company.py). A caller is answered when its
group is committed and synced, never before.

Sync callers are bounded by their threads, async callers by `_OUTSTANDING` a loop.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from langgraph_ext.database.appends import Append
from langgraph_ext.database.company import Company, Crowd
from langgraph_ext.database.forks import Ancestry
from langgraph_ext.database.loops import Answer, tell
from langgraph_ext.database.room import Room
from langgraph_ext.database.sealing import Sealer
from langgraph_ext.database.tx import Tx
from langgraph_ext.errors import StoreError

__all__ = ["Backend", "Lane", "Queued"]

_GROUP = 256
"""Most transactions in one group: bounds how long the first member waits for the last."""

_OUTSTANDING = 1024
"""Most unanswered transactions of one event loop; further callers wait their turn (backpressure)."""


_LOOK_AGAIN_SECONDS = 0.1
"""How often a waiting caller looks whether the lead is free, though nobody woke it."""


_LINGER_SECONDS = 0.001
"""How long a lingering call waits at most: for company and, once joined, for a better moment to wake up."""

_CROWD_SECONDS = 0.001
"""How long a leader waits for a crowd."""


class Queued:
    """One transaction in the queue: what to run, and afterwards what came of it."""

    attempted = False
    result: Any = None
    error: BaseException | None = None
    finished = False
    lingers = False
    rouses = False
    turn: threading.Lock | None = None
    loop: asyncio.AbstractEventLoop | None = None
    future: Answer | None = None

    def __init__(self, fn: Callable[[Tx], Any] | None, append: Append | None = None) -> None:
        self.fn = fn
        self.append = append

    def settle(self, result: Any = None, error: BaseException | None = None) -> None:
        """Record what came of it; the lane wakes the caller afterwards."""
        self.result, self.error, self.finished = result, error, True


class Backend(Protocol):
    """A database under the lane: one that writes groups, and readers beside it."""

    @property
    def name(self) -> str:
        """What messages call it: a path, or an address without its password."""

    @property
    def is_open(self) -> bool:
        """Whether it was opened and migrated; the first group does that."""

    @property
    def sealer(self) -> Sealer | None:
        """What payloads are sealed with; None if the database is plain."""

    @property
    def reads_apart(self) -> bool:
        """Whether `read` works beside the lane. If not, reads are transactions like any other."""

    def commit(self, group: list[Queued]) -> None:
        """Run a group in one transaction and settle every member; when Ctrl-C cuts it short, those whose end is known.

        Called by one thread at a time.
        """

    def read(self, fn: Callable[[Tx], Any]) -> Any:
        """Run `fn(tx)` on one snapshot, in any thread."""

    def close(self) -> None:
        """Give the connections back, when nobody leads."""


class Lane:
    """One queue and its leaders. Safe to use from any thread and any event loop at once.

    `_lead` is held by whoever leads. A waiting caller that is woken looks again: it is answered, or it tries to lead.
    It also looks again by itself now and then, so a wake-up lost to Ctrl-C at the worst moment costs a pause, no hang.
    The lock is reentrant only because such a lock can tell whether its thread holds it, wherever Ctrl-C has struck.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._name = f"database {backend.name!r}"
        self._mutex = threading.Lock()
        self._lead = threading.RLock()
        self._leads: Callable[[], bool] = self._lead._is_owned  # type: ignore[attr-defined]  # as threading.Condition
        """Whether this thread holds the lead."""
        self._committing: int | None = None
        self._calls: deque[Queued] = deque()
        self._company = Company()
        self._crowd = Crowd()
        self._asleep: list[Queued] = []
        """Lingering calls that were answered; only for the holder of `_lead`."""
        self._closed = False
        self._pid: int | None = None
        """The process that uses it, known from its first use on: a lane may be made before a fork."""
        self._forks = -1
        """Its `Ancestry.forks`."""
        self._writer: threading.Thread | None = None
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._told = False
        """Whether the writer thread was woken and has not looked yet."""
        self._room: WeakKeyDictionary[asyncio.AbstractEventLoop, Room] = WeakKeyDictionary()

    def submit(
        self,
        fn: Callable[[Tx], Any] | None,
        *,
        append: Append | None = None,
        may_linger: bool = False,
        rouses: bool = False,
        queued: Callable[[], None] | None = None,
    ) -> Any:
        """As `Database.submit`; a `fn` that is None only sees to it that the backend is open."""
        call = Queued(fn, append)
        call.rouses = rouses
        call.turn = threading.Lock()
        call.turn.acquire()
        if self._forks != Ancestry.forks or self._leads():
            self.check()
            self.refuse_nested()
        with self._mutex:
            if self._closed:
                self.check()
            call.lingers = may_linger and not self._calls and self._company.expected()
            self._calls.append(call)
        try:
            if queued is not None:
                queued()
            if call.lingers:
                call.turn.acquire(timeout=_LINGER_SECONDS)
                call.lingers = False
                self._company.came(call.finished)
            while not call.finished:
                if self._lead.acquire(blocking=False):
                    self._commit_groups(call)
                else:
                    call.turn.acquire(timeout=_LOOK_AGAIN_SECONDS)
        except BaseException:
            self._withdraw(call)
            raise
        if call.error is not None:
            raise call.error
        return call.result

    async def asubmit(self, fn: Callable[[Tx], Any] | None) -> Any:
        """As `submit`, for a coroutine. Cancelling the await does not undo a transaction that has begun."""
        async with self.room():
            return await self.queue(fn)

    def room(self) -> Room:
        """The running loop's places in the queue: a coroutine holds one, by `async with`, until it is answered."""
        loop = asyncio.get_running_loop()
        self.check()
        room = self._room.get(loop)
        if room is None:
            with self._mutex:
                room = self._room.setdefault(loop, Room(_OUTSTANDING))
        return room

    def queue(self, fn: Callable[[Tx], Any] | None, append: Append | None = None) -> asyncio.Future[Any]:
        """Queue a transaction for a coroutine that holds room, and return its answer to wait for."""
        call = Queued(fn, append)
        call.loop = asyncio.get_running_loop()
        call.future = future = Answer(loop=call.loop)
        with self._mutex:
            if self._closed:
                self.check()
            self._start_writer()
            self._calls.append(call)
            if not self._told:
                self._wake.put(True)  # first: a wake-up too many does no harm, one too few would be for ever
                self._told = True
        return future

    def close(self) -> None:
        """Refuse further calls, let those already queued finish, then close the backend. May be called twice."""
        if self._forks not in (-1, Ancestry.forks):
            return
        self.refuse_nested()
        with self._mutex:
            self._closed = True
            writer, self._writer = self._writer, None
        with self._lead:
            while self._calls:
                self._commit_group([], None)
            self._backend.close()
        self._wake.put(False)
        if writer is not None:
            writer.join()

    def let_go(self) -> None:
        """Let the writer thread end, for a lane that nobody can reach any more."""
        self._wake.put(False)

    def write_when_woken(self) -> None:
        """The writer thread: leads one group whenever it is woken and nobody else leads."""
        while self._wake.get():
            with self._mutex:
                self._told = False  # before it looks: what is queued from here on wakes it again
            if self._calls and self._lead.acquire(blocking=False):
                self._commit_groups(None)
        self._wake.put(False)  # for another one, should Ctrl-C have come when it was started

    def _commit_groups(self, own: Queued | None) -> None:
        """Lead until `own` is answered (one group, for the writer thread), then let go of the lead."""
        group: list[Queued] = []
        try:
            if own is not None and self._crowd.is_late(len(self._calls)):
                time.sleep(_CROWD_SECONDS)
            while True:
                self._commit_group(group, own)
                if own is None or own.finished:
                    return
                with self._mutex:
                    if own not in self._calls:  # dropped by a leader that was interrupted twice
                        self._calls.appendleft(own)
        except BaseException:
            self._put_back(group, own)
            raise
        finally:
            self._let_go_of_lead()

    def _commit_group(self, group: list[Queued], own: Queued | None) -> None:
        """Commit the front of the queue and wake whoever was answered. Only for the holder of `_lead`."""
        group.clear()
        calls = self._calls
        with self._mutex:
            while calls and len(group) < _GROUP:
                group.append(calls.popleft())
        if group:
            self._crowd.came([call.append for call in group])
            asleep, self._asleep = self._asleep, []
            if asleep:
                # Now, as this thread is about to wait for the disk: when their commit ended, all that waited for it
                # would have had to wait for the interpreter behind them.
                _wake_callers(asleep, None)
            self._committing = threading.get_ident()
            try:
                self._backend.commit(group)
            finally:
                self._committing = None
                if len(group) > 1 or group[0] is not own:
                    self._answer(group, own)

    def _answer(self, group: list[Queued], own: Queued | None) -> None:
        """Wake whoever was answered, but those that may sleep on."""
        asleep = [call for call in group if call.lingers]
        if asleep and not any(call.rouses for call in group):
            self._asleep = asleep
            group = [call for call in group if not call.lingers]
        _wake_callers(group, own)

    def _put_back(self, group: list[Queued], own: Queued | None) -> None:
        """What an interrupted leader left unsettled goes back to the front of the queue, in its order."""
        left = [call for call in group if not call.finished and call is not own]
        if left:
            with self._mutex:
                self._calls.extendleft(reversed(left))

    def _wake_heir(self) -> None:
        """Wake the first caller that waits for a leader, if there is one."""
        with self._mutex:
            heir = next((call for call in self._calls if not call.lingers), None)
        if heir is None:
            return
        if heir.turn is None:
            self._wake.put(True)
        else:
            _wake_caller(heir.turn)

    def _withdraw(self, call: Queued) -> None:
        """The caller was interrupted: take its call back unless it has begun, and let go of the lead if it had it."""
        try:
            with self._mutex, suppress(ValueError):
                self._calls.remove(call)
        finally:
            self._let_go_of_lead()

    def _let_go_of_lead(self) -> None:
        """End a lead, if this thread has one, and wake whoever waits for it."""
        try:
            while self._leads():
                self._lead.release()
        finally:
            if self._calls:
                self._wake_heir()

    def refuse_nested(self) -> None:
        """A transaction that begins another one would wait for itself. A lead left over by an interrupt is let go."""
        if self._leads():
            if self._committing == threading.get_ident():
                raise RuntimeError("a transaction function began another transaction; pass its tx on instead")
            self._let_go_of_lead()

    def _start_writer(self) -> None:
        if self._writer is None:
            writer = threading.Thread(target=self.write_when_woken, name=f"{self._name} writer", daemon=True)
            writer.start()
            self._writer = writer

    def check(self) -> None:
        """Raise unless calls are accepted here: not after `close`, not in a forked child."""
        if self._pid is None:
            self._pid, self._forks = os.getpid(), Ancestry.forks
        if self._forks != Ancestry.forks:
            raise StoreError(
                f"{self._name} was used in process {self._pid} and is used in its forked child {os.getpid()}; "
                "open it anew in the child (SQLite connections do not survive a fork)",
                code="forked",
            )
        if self._closed:
            raise StoreError(f"{self._name} is closed; open it again to use it", code="closed")


def _wake_callers(group: list[Queued], own: Queued | None) -> None:
    """Wake everybody else whose call was answered: threads one by one, each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[Queued]] = {}
    for call in group:
        if not call.finished or call is own:
            continue
        if call.turn is not None:
            _wake_caller(call.turn)
        elif call.loop is not None:
            loops.setdefault(call.loop, []).append(call)
    for loop, calls in loops.items():
        tell(loop, _settle_futures, loop, calls)


def _wake_caller(turn: threading.Lock) -> None:
    """Wake one that waits in a thread of its own, unless it was woken already."""
    if turn.locked():
        try:  # noqa: SIM105 - at every commit, for each of its callers: suppress() takes three calls
            turn.release()
        except RuntimeError:  # somebody else woke it in between
            pass


def _settle_futures(loop: asyncio.AbstractEventLoop, calls: list[Queued]) -> None:
    left = iter(calls)
    try:
        for call in left:
            assert call.future is not None
            call.future.settle(call.result, call.error)
    finally:
        if rest := list(left):  # one of the tasks stopped the loop
            loop.call_soon(_settle_futures, loop, rest)
