"""Savers: the contestants, each opened as a user would open it, in a folder of its own, and closed properly.

The peers run as shipped. Whether that means the same durability as ours is not assumed: the pragmas of every open
connection are read and printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.driver import AsyncDriver, Driver, Form, SyncDriver, config_of
from langgraph_ext import LedgerSaver

__all__ = ["PAIRS", "PRAGMAS", "Contestant", "Form", "Pair", "bytes_in", "pragmas_of"]

T = TypeVar("T")

PRAGMAS = ("journal_mode", "synchronous", "fullfsync", "wal_autocheckpoint")
"""What decides how durable a commit is, and what it costs."""

_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A saver in one of its forms."""

    label: str
    form: Form
    open: Callable[[Path], AbstractContextManager[Driver]]
    """Opens it on a database in the given folder, for a `with` block that closes it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contestants whose numbers are divided."""

    ours: Contestant
    peer: Contestant

    @property
    def form(self) -> Form:
        return self.ours.form


def pragmas_of(contestant: Contestant, root: Path) -> dict[str, str]:
    """The pragmas in force on the connection that the contestant writes through."""
    with TemporaryDirectory(dir=root) as folder, contestant.open(Path(folder)) as driver:
        driver.call("get_tuple", config_of("nobody"))  # any call sets a saver up
        return {name: _readable(name, driver.pragma(name)) for name in PRAGMAS}


def bytes_in(folder: Path) -> int:
    """Bytes of all files in a folder; of a closed database, its log has been merged by then."""
    return sum(path.stat().st_size for path in folder.iterdir())


def _readable(name: str, value: object) -> str:
    return _SYNCHRONOUS.get(value, str(value)) if name == "synchronous" and isinstance(value, int) else str(value)


@contextmanager
def _sqlite_saver(folder: Path) -> Iterator[Driver]:
    with SqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
        yield SyncDriver(saver, lambda name: saver.conn.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def _ledger_saver(folder: Path) -> Iterator[Driver]:
    with LedgerSaver(folder / "runs.db") as saver:
        yield SyncDriver(saver, lambda name: _pragma_of_ours(saver, name))


@contextmanager
def _async_sqlite_saver(folder: Path) -> Iterator[Driver]:
    async def pragma(saver: AsyncSqliteSaver, name: str) -> object:
        async with saver.conn.execute(f"PRAGMA {name}") as cursor:
            row = await cursor.fetchone()
        return row[0] if row else None

    opening = AsyncSqliteSaver.from_conn_string(str(folder / "runs.db"))
    with asyncio.Runner() as runner, _entered(runner, opening) as saver:
        yield AsyncDriver(saver, lambda name: runner.run(pragma(saver, name)), runner)


@contextmanager
def _async_ledger_saver(folder: Path) -> Iterator[Driver]:
    with asyncio.Runner() as runner, _entered(runner, LedgerSaver(folder / "runs.db")) as saver:
        yield AsyncDriver(saver, lambda name: _pragma_of_ours(saver, name), runner)


@contextmanager
def _entered(runner: asyncio.Runner, manager: AbstractAsyncContextManager[T, Any]) -> Iterator[T]:
    """`async with`, from outside the event loop."""

    async def enter() -> T:
        return await manager.__aenter__()

    async def leave() -> None:
        await manager.__aexit__(None, None, None)

    value = runner.run(enter())
    try:
        yield value
    finally:
        runner.run(leave())


def _pragma_of_ours(saver: LedgerSaver, name: str) -> object:
    # A transaction may run named queries only. To see what the open connection was really told, this one place looks
    # behind that door.
    return saver.database.transact(lambda tx: tx._execute(f"PRAGMA {name}", {}).fetchone()[0])


PAIRS = (
    Pair(Contestant("LedgerSaver (sync)", "sync", _ledger_saver), Contestant("SqliteSaver", "sync", _sqlite_saver)),
    Pair(
        Contestant("LedgerSaver (async)", "async", _async_ledger_saver),
        Contestant("AsyncSqliteSaver", "async", _async_sqlite_saver),
    ),
)
"""Each of ours with the saver that it is compared with."""
