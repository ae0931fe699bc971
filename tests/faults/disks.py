"""Disks and permissions as they are elsewhere: nobody's powers, a small disk, a quota. For processes of their own."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langgraph_ext import LedgerSaver
from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.errors import StoreError
from tests.support.build import checkpoint, cid, config, metadata

_LIBC: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def obey_permissions() -> str | None:
    """Make this process heed the permissions of files, even as root; why it cannot, if so."""
    if os.geteuid() != 0:
        return None
    if _LIBC is None:
        return "root heeds no permissions here, and only Linux can take its powers away"
    header = _Header(0x20080522, 0)  # version 3 of Linux's capability sets, this process
    if _LIBC.capset(ctypes.byref(header), (_Sets * 2)()) != 0:
        return f"this root may not give its powers up ({os.strerror(ctypes.get_errno())})"
    return None


def mount_small_disk(place: Path, size: str) -> str | None:
    """Mount a file system in memory that only this process sees, gone when it ends; why it cannot, if so."""
    if _LIBC is None or os.geteuid() != 0:
        return "only root on Linux can mount a small disk"
    new_namespace, private, recursive = 0x00020000, 1 << 18, 1 << 14
    steps = [
        lambda: _LIBC.unshare(new_namespace),
        lambda: _LIBC.mount(b"none", b"/", None, private | recursive, None),
        lambda: _LIBC.mount(b"tmpfs", bytes(place), b"tmpfs", 0, f"size={size}".encode()),
    ]
    for step in steps:
        if step() != 0:
            return f"this root may not mount ({os.strerror(ctypes.get_errno())})"
    return None


def limit_file_size(size: int) -> None:
    """From now on no file of this process grows beyond so many bytes: writing fails with EFBIG."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size if size >= 0 else hard, hard))


def put(saver: LedgerSaver, n: int, size: int = 20_000) -> str:
    """Put checkpoint n of thread t with a value of some size and a write: "stored", or the code of the refusal."""
    parent = cid(n - 1) if n else None
    value = random.Random(n).randbytes(size // 2).hex()  # another one each time: what is alike is stored once
    made = checkpoint(cid(n), {"n": value}, {"n": n})
    try:
        saver.put(config(id=parent), made, metadata(n), {"n": n})
        saver.put_writes(config(id=cid(n)), [("n", n), ("m", n)], "task")
    except StoreError as error:
        return error.code
    return "stored"


def stored(saver: LedgerSaver) -> list[tuple[str, int]]:
    """What is there: each checkpoint of thread t, oldest first, and how many writes it has."""
    return [(item.checkpoint["id"], len(item.pending_writes or [])) for item in saver.list(config())][::-1]


def fill(saver: LedgerSaver, most: int = 2_000) -> tuple[int, str]:
    """Put until it is refused: how many calls were stored whole, and the code."""
    for n in range(most):
        if (answer := put(saver, n)) != "stored":
            return n, answer
    return most, "never refused"


def is_sound(path: Path) -> bool:
    """Whether SQLite finds no fault in the file."""
    connection = sqlite3.connect(path)
    try:
        return [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


def meet_the_end(saver: LedgerSaver, more_room: Callable[[], None]) -> dict[str, Any]:
    """Fill a disk, look what is left, make room and go on: what a user of the saver sees of all that."""
    saver.setup()
    whole, code = fill(saver)
    again = put(saver, whole)
    left = stored(saver)
    more_room()
    later = [put(saver, n) for n in range(whole, whole + 20)]
    after = stored(saver)
    path = Path(saver.database.name)
    saver.close()
    return {
        "code": code,
        "again": again,
        "acknowledged": left[:whole] == [(cid(n), 2) for n in range(whole)],
        "some": whole > 0,
        "halves": [item for item in left[whole:] if item not in [(cid(whole), 0), (cid(whole), 2)]],
        "later": set(later),
        "after": [name for name, _ in after] == [cid(n) for n in range(whole + 20)],
        "sound": is_sound(path),
    }


def fill_small_disk(folder: str) -> dict[str, Any] | str:
    """A disk of 8 MB, half of it held by somebody else until room is needed."""
    place = Path(folder)
    if (why := mount_small_disk(place, "16m")) is not None:
        return why
    ballast = place / "ballast"
    ballast.write_bytes(bytes(7 << 20))
    return meet_the_end(LedgerSaver(place / "runs.db"), ballast.unlink)


def open_on_full_disk(folder: str, left: int) -> list[str] | str:
    """Open a new database where so many bytes are left, then with room: the codes, and what else lies there."""
    place = Path(folder)
    if (why := mount_small_disk(place, "16m")) is not None:
        return why
    ballast = place / "ballast"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    ballast.write_bytes(bytes(free - left))
    with LedgerSaver(place / "runs.db") as saver:
        first = put(saver, 0, size=200_000)
        ballast.unlink()
        return [first, put(saver, 0, size=200_000), *(name for name, _ in stored(saver))]


def fill_quota(folder: str) -> dict[str, Any]:
    """A limit on the size of files, a little above that of the log, lifted when room is needed."""
    saver = LedgerSaver(f"{folder}/runs.db")
    saver.setup()
    limit_file_size(Path(f"{folder}/runs.db-wal").stat().st_size + (1 << 20))
    return meet_the_end(saver, lambda: limit_file_size(-1))


def fill_pages(folder: str) -> dict[str, Any]:
    """A database that may have 200 pages, and later more: SQLite's own SQLITE_FULL, on every platform."""

    class Bounded(WriteConnection):
        pages = 200

        def begin(self) -> None:
            self.execute(f"PRAGMA max_page_count = {self.pages}")
            super().begin()

        def run_alone(self, sql: str, params: Sequence[object]) -> int:
            self.execute(f"PRAGMA max_page_count = {self.pages}")
            return super().run_alone(sql, params)

    def more_room() -> None:
        Bounded.pages = 1_000_000

    return meet_the_end(LedgerSaver(open_database(f"{folder}/runs.db", connection=Bounded)), more_room)


# -- files and folders that may not be written

PLACES: dict[str, Callable[[Path], None]] = {
    "a folder that may not be written": lambda path: path.parent.chmod(0o500),
    "a folder that may not be entered": lambda path: path.parent.chmod(0o600),
    "a database in a folder that may not be written": lambda path: (_make(path), path.parent.chmod(0o500))[1],
    "a database that may not be written": lambda path: (_make(path), path.chmod(0o400))[1],
    "a database that may not be read": lambda path: (_make(path), path.chmod(0o000))[1],
}


def _make(path: Path) -> None:
    with LedgerSaver(path) as saver:
        put(saver, 0)


def use_forbidden(folder: str, place: str) -> dict[str, Any] | str:
    """What the first use of a database that may not be written says, for each kind of use, and whether it wrote."""
    path = Path(folder) / "closed" / "runs.db"
    path.parent.mkdir()
    PLACES[place](path)
    before = _look(path)
    if (why := obey_permissions()) is not None:
        return why
    errors = []
    for use in (LedgerSaver.setup, put_bare, lambda saver: saver.get_tuple(config())):
        with LedgerSaver(path) as saver:
            try:
                use(saver)
            except StoreError as error:
                errors.append((error.code, str(path) in str(error), error.retryable))
            else:
                errors.append(("no error", True, False))
    path.parent.chmod(0o700)
    if path.exists():
        path.chmod(0o600)
    unchanged = before == _look(path)
    with LedgerSaver(path) as saver:
        later = put(saver, 1)
    return {"errors": errors, "unchanged": unchanged, "later": later}


def put_bare(saver: LedgerSaver) -> None:
    """A put whose errors are not caught."""
    saver.put(config(), checkpoint(cid(5)), metadata(), {})


def _look(path: Path) -> dict[str, bytes]:
    """Every file of the folder."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}
