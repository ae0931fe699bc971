"""Watches: has anybody committed since I last looked? A connection of its own that reads one counter.

SQLite changes a connection's `data_version` when another connection, of this process or of another, has committed. Take
the version, read, and wait for another version: what was committed in between has changed it already.
"""

from __future__ import annotations

import sqlite3
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Protocol

from langgraph_ext.database.connection import BUSY_SECONDS, IN_MEMORY, QUERY_ONLY, open_reading, translate, uri_of
from langgraph_ext.database.database import Database
from langgraph_ext.database.tx import Tx

if TYPE_CHECKING:
    import aiosqlite

__all__ = ["AsyncWatch", "Watch", "awatch", "watch"]

_VERSION = "PRAGMA data_version"


class Watch(Protocol):
    """A connection that tells whether the database has changed."""

    def version(self) -> int:
        """Another number than before if anybody has committed."""

    def close(self) -> None:
        """Close the connection."""


class AsyncWatch(Protocol):
    """As `Watch`, for a coroutine."""

    async def version(self) -> int:
        """As `Watch.version`."""

    async def close(self) -> None:
        """As `Watch.close`."""


def watch(database: Database) -> Watch:
    """Watch a database. One in memory has no other connections: it always seems changed.

    Raises:
        StoreError: It cannot be opened.
    """
    database.open()
    return Seeming() if database.name == IN_MEMORY else FileWatch(database.name)


async def awatch(database: Database) -> AsyncWatch:
    """As `watch`."""
    await database.aopen()
    if database.name == IN_MEMORY:
        return AsyncSeeming()
    # Loaded by who follows from a coroutine, and by nobody else; in the reader thread, as it reads files.
    await database.aread_then(_load_driver, _nothing)
    return await AsyncFileWatch.opened(database.name)


def _nothing(tx: Tx) -> None:
    """A read that reads nothing."""


def _load_driver(_: None) -> None:
    import_module("aiosqlite")


class Seeming:
    """A watch that has always seen a change."""

    def __init__(self) -> None:
        self._versions = count()

    def version(self) -> int:
        """Another number each time."""
        return next(self._versions)

    def close(self) -> None:
        """Nothing to close."""


class AsyncSeeming:
    """As `Seeming`."""

    def __init__(self) -> None:
        self._versions = count()

    async def version(self) -> int:
        """As `Seeming.version`."""
        return next(self._versions)

    async def close(self) -> None:
        """As `Seeming.close`."""


class FileWatch:
    """A watch on a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._connection = open_reading(path)
        except sqlite3.Error as error:
            raise translate(error, path) from error

    def version(self) -> int:
        """As `Watch.version`."""
        try:
            version: int = self._connection.execute(_VERSION).fetchone()[0]
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        return version

    def close(self) -> None:
        """As `Watch.close`."""
        self._connection.close()


class AsyncFileWatch:
    """As `FileWatch`, over aiosqlite."""

    def __init__(self, path: str, connection: aiosqlite.Connection) -> None:
        self._path = path
        self._connection = connection

    @classmethod
    async def opened(cls, path: str) -> AsyncFileWatch:
        """A watch whose connection is open."""
        driver = import_module("aiosqlite")
        try:
            connection = await driver.connect(uri_of(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise translate(error, path) from error
        made = cls(path, connection)
        try:
            await connection.execute_fetchall(QUERY_ONLY)
        except BaseException:
            await made.close()
            raise
        return made

    async def version(self) -> int:
        """As `Watch.version`."""
        try:
            [(version,)] = await self._connection.execute_fetchall(_VERSION)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        return int(version)

    async def close(self) -> None:
        """As `Watch.close`."""
        await self._connection.close()
