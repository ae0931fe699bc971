"""How far a crash test has come, in a line on stderr; a pipe or a file gets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langgraph_ext.testing.progress import CrashProgress, OnProgress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress() -> Iterator[OnProgress | None]:
    """What the harness calls to show how far it is; None where nobody looks. The line goes at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("kills, {task.fields[broken]} broken,"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=True) as line:
        task = line.add_task("undisturbed", total=None, broken=0)

        def show(at: CrashProgress) -> None:
            line.update(task, description="killing", total=at.planned, completed=at.done, broken=at.broken)

        yield show
