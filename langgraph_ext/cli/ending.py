"""How a command ends: what it says on stderr, and its exit status.

    0    done
    1    done, and something is wrong (`verify`, `doctor`, `crash-test`, `demo`)
    2    not done: wrong usage, bad input, nothing found, or the database could not be read
    130  Ctrl-C
    141  whoever read the output has gone (`| head`)

The last two end quietly, with the numbers that a shell shows for SIGINT and SIGPIPE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.render import escape

__all__ = ["Status", "exits_with_code", "say"]


class Status(IntEnum):
    """Exit statuses."""

    FOUND = 1
    FAILED = 2
    INTERRUPTED = 130
    UNREAD = 141


@contextmanager
def exits_with_code() -> Iterator[None]:
    """Turn what ends a command early into one line, or none, and an exit status."""
    try:
        yield
        sys.stdout.flush()
    except LangGraphExtError as error:
        say(f"error: {error}")
        raise typer.Exit(Status.FAILED) from None
    except KeyboardInterrupt:
        _flush_if_read()
        raise typer.Exit(Status.INTERRUPTED) from None
    except BrokenPipeError:
        _drop_stdout()
        raise typer.Exit(Status.UNREAD) from None


def say(text: str) -> None:
    """One line on stderr."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    line = escape(text).encode(encoding, "backslashreplace").decode(encoding)
    typer.echo(line, err=True)


def _flush_if_read() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()


def _drop_stdout() -> None:
    """Python flushes stdout when it exits, and would complain once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
