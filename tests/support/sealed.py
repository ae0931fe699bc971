"""What tests of encryption put into a saver, and look for in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import EncryptionError
from tests.support.build import cid, config, metadata
from tests.support.driver import Driver
from tests.support.faults import Line

__all__ = ["MARK", "bytes_of", "everything", "fill", "letters", "write_in_the_plain"]

MARK = "BREADCRUMB"
"""Stands in all that is put."""


def letters(n: int) -> list[str]:
    """A large value; a longer one goes on with it."""
    return [f"{MARK} {number} " * 12 for number in range(n)]


def fill(driver: Driver, threads: tuple[str, ...] = ("t", "u"), steps: int = 3) -> None:
    """Two threads with two namespaces each: small values, a large one that grows, empty ones, and writes."""
    for thread in threads:
        for ns in ("", "sub:1"):
            for n in range(steps):
                held = {
                    "a": f"{MARK}{n}",
                    "b": f"{MARK}{n}",
                    "nothing": None,
                    "none": None,
                    "long": letters(20 + 4 * n),
                }
                held["kept"] = MARK
                versions = {"a": n + 1, "b": n + 1, "nothing": 1, "none": n + 1, "long": n + 1, "kept": 1}
                new = versions if n == 0 else {name: versions[name] for name in ("a", "b", "none", "long")}
                parent = cid(n - 1) if n else None
                meta = metadata(n, tag=f"{MARK}{n}", even=n % 2 == 0)
                driver.save(cid(n), held, versions, thread=thread, ns=ns, parent=parent, new=new, meta=meta)
                for task in ("one", "two"):
                    batch = [("a", f"{MARK}{n}"), ("b", None), ("a", f"{MARK}{n}"), ("b", f"{MARK}{n}")]
                    driver.put_writes(config(thread, ns, cid(n)), batch, task)
            driver.put_writes(config(thread, ns, cid(steps - 1)), [("long", letters(40))], "long")


def everything(saver: LedgerSaver, **more: Any) -> list[Any]:
    found = [(t.config, t.checkpoint, t.metadata, t.pending_writes) for t in saver.list(None, **more)]
    return found + [(t.config, t.checkpoint, t.metadata) for t in saver.list(config("t", ""), **more)]


def bytes_of(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def write_in_the_plain(path: str, line: Line) -> str:
    """Open a database without keys and, when it is told to, write into it; the code of what that is refused with."""
    with LedgerSaver(path) as saver:
        saver.setup()
        line.tell("open")
        line.hear()
        try:
            fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
        except EncryptionError as error:
            return error.code
    return ""
