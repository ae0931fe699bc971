"""How far a long command has come, in a line on stderr; a pipe or a file gets nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["OnStep", "shown_line", "shown_steps"]

OnStep = Callable[[int, int], None]
"""Called with how many are done, and of how many."""


@contextmanager
def shown_line(counted: str) -> Iterator[Progress | None]:
    """A line that shows what is done, how much of it is, and how long the rest takes; None where nobody looks.

    The line goes at the end.

    Args:
        counted: What stands behind the count, with the task's fields (rich's format).
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{counted},"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=True) as line:
        yield line


@contextmanager
def shown_steps(doing: str, unit: str) -> Iterator[OnStep | None]:
    """What to call after each step; None where nobody looks.

    Args:
        doing: What is done, such as `copying`.
        unit: What is counted, such as `pages`.
    """
    with shown_line(unit) as line:
        if line is None:
            yield None
            return
        task = line.add_task(doing, total=None)

        def show(done: int, of: int) -> None:
            line.update(task, total=of, completed=min(done, of))

        yield show
