"""How far a crash test has come, in a line on stderr; a pipe or a file gets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph_ext.cli.progress import shown_line
from langgraph_ext.testing.progress import CrashProgress, OnProgress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress() -> Iterator[OnProgress | None]:
    """What the harness calls to show how far it is; None where nobody looks."""
    with shown_line("kills, {task.fields[broken]} broken") as line:
        if line is None:
            yield None
            return
        task = line.add_task("undisturbed", total=None, broken=0)

        def show(at: CrashProgress) -> None:
            line.update(task, description="killing", total=at.planned, completed=at.done, broken=at.broken)

        yield show
