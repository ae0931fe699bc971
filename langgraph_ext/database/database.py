"""Database: the door to one database file, with a sync and an async form of each way in.

    transact / atransact    one durable transaction on the lane
    read / aread            one snapshot, on a connection that cannot write

Nothing here runs on asyncio's or LangGraph's default executor, whose threads waiting nodes may hold.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from os import PathLike, fspath
from typing import Any, Concatenate, ParamSpec, TypeVar

from langgraph_ext.database.appends import Append
from langgraph_ext.database.backup import BackedUp, OnPages, back_up
from langgraph_ext.database.connection import IN_MEMORY, Fsync, WriteConnection
from langgraph_ext.database.encryption import Cipher, Encryption, Locked, keyring_of
from langgraph_ext.database.lane import Backend, Lane
from langgraph_ext.database.loops import Answer, on_a_loop
from langgraph_ext.database.marks import Keys
from langgraph_ext.database.queries import load_queries
from langgraph_ext.database.readers import ReaderThread, answer
from langgraph_ext.database.sealing import Lock, Sealer
from langgraph_ext.database.sqlite import SqliteBackend
from langgraph_ext.database.tx import Tx
from langgraph_ext.errors import InvalidArgument

__all__ = ["Database", "open_database"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def now_us() -> int:
    """This host's wall clock: microseconds since the epoch, UTC."""
    return time.time_ns() // 1000


def open_database(
    url: str | PathLike[str],
    *,
    fsync: Fsync = "full",
    clock_us: Callable[[], int] = now_us,
    connection: type[WriteConnection] = WriteConnection,
    create: bool = True,
    encryption: Encryption | Cipher | Locked | None = None,
    keys: Keys = "exactly",
) -> Database:
    """Name a database; it is opened, created and migrated by its first use.

    Args:
        url: A path, `sqlite:///relative.db`, `sqlite:////absolute.db`, or `:memory:`.
        fsync: `"full"`: what was acknowledged survives a power loss. `"normal"`: it survives the death of the process;
            a power loss may take the last commits, never the soundness of the file.
        clock_us: Microseconds since the epoch, UTC.
        connection: The class of the write connection; tests replace it to inject faults.
        create: False: its first use refuses a file that is not there (`store_missing`).
        encryption: What payloads are encrypted with: an `Encryption`, or a cipher of LangGraph's convention. None: the
            database is plain, and one that is not is refused. `LOCKED`: it may be either, and is only looked at.
        keys: What keys that are given say of the database: it is encrypted (`"exactly"`); it may as well be plain, and
            if not, its own newest key seals (`"either"`); it may be plain, and is being encrypted (`"converts"`, the
            saver's reencrypting.py).

    Raises:
        InvalidArgument: The URL names no database this code can open, `fsync` is neither word, or `encryption` none.
        AdmissionError: The extra `encryption` is not installed (`extra_missing`).
    """
    if fsync not in ("full", "normal"):
        raise InvalidArgument(f'fsync is {fsync!r}; it must be "full" or "normal"')
    if not isinstance(url, str | PathLike):
        raise InvalidArgument(
            f"{type(url).__name__} names no database; pass the path that the connection was opened with, or another one"
            if hasattr(url, "cursor")
            else f"{url!r} names no database; use a path, 'sqlite:///runs.db' or ':memory:'"
        )
    path = _path_of(fspath(url))
    queries = partial(load_queries, "sqlite")  # reads files: not on an event loop, but when the database is opened
    backend = SqliteBackend(
        path,
        queries=queries,
        fsync=fsync,
        clock_us=clock_us,
        connection=connection,
        create=create,
        sealer=_sealer_of(encryption),
        keys=keys,
    )
    return Database(backend, clock_us=clock_us)


def _sealer_of(encryption: Encryption | Cipher | Locked | None) -> Sealer | None:
    if encryption is None:
        return None
    return Lock() if isinstance(encryption, Locked) else Sealer(keyring_of(encryption))


def _path_of(url: str) -> str:
    if url.startswith(("postgresql://", "postgres://")):
        raise InvalidArgument("PostgreSQL is not supported yet; name a SQLite file")
    path = url.removeprefix("sqlite:///")
    if "://" in path or path.startswith(("sqlite:", "file:")) or not path:
        scheme = url.partition(":")[0]  # the rest may hold a password
        raise InvalidArgument(f"{scheme + ':…'!r} names no database; use a path, 'sqlite:///runs.db' or ':memory:'")
    if "\0" in path:
        raise InvalidArgument(f"{path!r} names no database: a path holds no NUL")
    # On an event loop, asking for the working folder is a call that blocks: there, the first use resolves the path.
    return path if path == IN_MEMORY or on_a_loop() else os.path.abspath(path)


class Database:
    """One database, shared by every thread and event loop of this process. Made by `open_database`."""

    def __init__(self, backend: Backend, *, clock_us: Callable[[], int]) -> None:
        self.clock_us = clock_us
        self._backend = backend
        self._lane = Lane(backend)
        self.check = self._lane.check
        self._reading = ReaderThread(backend.read)
        # Threads keep the lane alive, not this object: forgetting it without close() ends them.
        self._finalizer = weakref.finalize(self, _let_go, self._lane, self._reading)

    @property
    def sealer(self) -> Sealer | None:
        """What payloads are sealed with; None if the database is plain."""
        return self._backend.sealer

    @property
    def name(self) -> str:
        """The database's file, absolute once it is open, or `:memory:`."""
        return self._backend.name

    def transact(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, …)` as one transaction; returns once it is committed and, under `fsync="full"`, synced.

        Raises:
            StoreError: The database could not do it; nothing of it was written.
        """
        result: T = self._lane.submit(partial(_call, fn, args, kwargs))
        return result

    def submit(
        self,
        fn: Callable[[Tx], T],
        *,
        append: Append | None = None,
        may_linger: bool = False,
        rouses: bool = False,
        queued: Callable[[], None] | None = None,
    ) -> T:
        """As `transact`, for a caller that cares about order and company.

        Args:
            fn: The transaction.
            append: The same, if it only adds a row.
            may_linger: It may wait up to a millisecond for another transaction whose commit it can share.
            rouses: Those that lingered and share its commit are answered with it, not at the next good moment.
            queued: Called once its place in the order of commits is settled, before it is committed.
        """
        result: T = self._lane.submit(fn, append=append, may_linger=may_linger, rouses=rouses, queued=queued)
        return result

    async def atransact(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As `transact`. Cancelling the await does not undo a transaction that has begun."""
        result: T = await self._lane.asubmit(partial(_call, fn, args, kwargs))
        return result

    def room(self) -> AbstractAsyncContextManager[None]:
        """Backpressure: a coroutine takes a place, by `async with`, before it encodes what it will `queue`."""
        return self._lane.room()

    def queue(self, fn: Callable[[Tx], T], append: Append | None = None) -> asyncio.Future[T]:
        """As `atransact` in two steps: the order is settled when this returns, the commit when the answer is there."""
        return self._lane.queue(fn, append)

    def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, …)` on one snapshot, which sees every transaction acknowledged before."""
        self._lane.check()
        self._lane.refuse_nested()
        if not self._backend.reads_apart:
            return self.transact(fn, *args, **kwargs)
        if not self._backend.is_open:
            self.open()
        result: T = self._backend.read(partial(_call, fn, args, kwargs))
        return result

    async def aread(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As `read`, on this database's own reader thread."""
        return await self.aread_then(_as_it_is, fn, *args, **kwargs)

    async def aread_then(
        self,
        then: Callable[[T], R],
        fn: Callable[Concatenate[Tx, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """As `aread`, giving `then(…)` of what was read, made in the reader thread when the snapshot is over."""
        self._lane.check()
        if not self._backend.reads_apart:
            return then(await self.atransact(fn, *args, **kwargs))
        if not self._backend.is_open:
            await self.aopen()
        result: R = await self._reading.run(partial(_call, fn, args, kwargs), then)
        return result

    def backup(self, target: str | PathLike[str], *, on_progress: OnPages | None = None) -> BackedUp:
        """Copy the database to a new file while others write to it; see backup.py.

        Raises:
            InvalidArgument: There is such a file, or the database is in memory.
        """
        self._lane.check()
        self._lane.refuse_nested()
        if not self._backend.reads_apart:
            raise InvalidArgument("backup: a database in memory has no file to be copied; open one with a path")
        self.open()
        return back_up(self.name, fspath(target), on_progress=on_progress)

    async def abackup(self, target: str | PathLike[str], *, on_progress: OnPages | None = None) -> BackedUp:
        """As `backup`, in a thread of its own, which also calls `on_progress`."""
        self._lane.check()
        loop = asyncio.get_running_loop()
        done = Answer(loop=loop)
        work = partial(self.backup, target, on_progress=on_progress)
        threading.Thread(target=answer, args=(loop, done, work), daemon=True).start()
        made: BackedUp = await done
        return made

    def open(self) -> None:
        """Open, create and migrate the file now rather than at the first use."""
        self._lane.submit(None)

    async def aopen(self) -> None:
        """As `open`."""
        await self._lane.asubmit(None)

    def close(self) -> None:
        """Let what was begun finish, then close; a closed database refuses further calls. May be called twice."""
        self._lane.close()
        self._reading.close()

    async def aclose(self) -> None:
        """As `close`, without holding the event loop."""
        loop = asyncio.get_running_loop()
        done = Answer(loop=loop)
        threading.Thread(target=answer, args=(loop, done, self.close), daemon=True).start()
        await done


def _as_it_is(result: T) -> T:
    return result


def _call(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Tx) -> T:
    return fn(tx, *args, **kwargs)


def _let_go(lane: Lane, reading: ReaderThread) -> None:
    lane.let_go()
    reading.let_go()
