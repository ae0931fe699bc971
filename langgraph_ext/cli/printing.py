"""Printing: lines, coloured where a terminal shows it, and JSON; each at once where others wait for it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property

from rich.console import Console
from rich.text import Text

from langgraph_ext.render import Fit, Line, Part

__all__ = ["Printer", "print_json"]

_BY_ROLE = {"branch": "dim", "title": "bold", "label": "", "note": ""}

_BY_STATUS = {
    "succeeded": "green",
    "answered": "green",
    "committed": "green",
    "started": "cyan",
    "unknown": "bold red",
    "running": "cyan",
    "paused": "yellow",
    "pending": "yellow",
    "idle": "yellow",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "magenta",
    "budget_exhausted": "red",
    "recovery_required": "bold red",
    "reconciliation_required": "bold red",
    "completed": "green",
    "settled": "green",
    "dispatched": "cyan",
    "admitted": "cyan",
    "waiting": "yellow",
    "closing": "yellow",
    "exhausted": "red",
}


class Printer:
    """Where lines go, and what fits there."""

    @cached_property
    def fit(self) -> Fit:
        """What fits there: as many columns as the terminal has, or COLUMNS says; in a pipe, any number."""
        return Fit(columns=shutil.get_terminal_size((0, 0)).columns or None, only_ascii=_only_ascii())

    @cached_property
    def uncut(self) -> Fit:
        """As `fit`, for what must be readable to its end."""
        return Fit(only_ascii=self.fit.only_ascii)

    @cached_property
    def _console(self) -> Console:
        return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines; a pipe gets plain text."""
        if not self._console.is_terminal:
            for line in lines:
                sys.stdout.write(f"{line}\n")
            return
        for line in lines:
            self._console.print(Text.assemble(*((part.text, _style(part)) for part in line.parts)))

    def flush(self) -> None:
        """Let whoever reads see what was printed."""
        sys.stdout.flush()


def _only_ascii() -> bool:
    """Whether stdout can hold nothing else."""
    try:
        "├─└│…語".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def _style(part: Part) -> str:
    return _BY_STATUS.get(part.text, "") if part.role == "status" else _BY_ROLE[part.role]


def print_json(value: Mapping[str, object], *, indented: bool = True) -> None:
    """Print one JSON document, in ASCII; a line each where it is not indented."""
    text = json.dumps(value, indent=2 if indented else None, default=str)
    sys.stdout.write(text + "\n")
