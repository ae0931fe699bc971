"""Lines: a file that processes append to, one JSON object a line. What was cut short is none, and spoils no other."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

if sys.platform != "win32":
    import fcntl

__all__ = ["alone", "append", "whole"]


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Hold the file, which is made if it is missing: of two who ask at once, one waits. A dead one lets go of it."""
    if sys.platform == "win32":
        yield
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def append(path: str, line: bytes, what: str) -> None:
    """Add one line at the end of the file, as one write; it is on disk when this returns.

    Who holds the file meanwhile (`alone`) does not take the middle of a line that somebody else is writing for one that
    was cut short.

    Args:
        path: The file; made if it is missing, for its owner alone (mode 0600).
        line: JSON, without its end.
        what: What an error calls it.

    Raises:
        OSError: It cannot be written.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        ended = line + b"\n" if _ends_with_a_line(file) else b"\n" + line + b"\n"
        written = os.write(file, ended)
        if written != len(ended):
            raise OSError(f"only {written} of {len(ended)} bytes of {what} fit into {path!r}")
        os.fsync(file)
    finally:
        os.close(file)


def whole(line: bytes) -> dict[str, Any] | None:
    """What a line says; None for an empty one and one that was cut short (it lacks the last bracket)."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _ends_with_a_line(file: int) -> bool:
    """Whether nothing stands behind the last line's end: what was cut short must not swallow the next line."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"
