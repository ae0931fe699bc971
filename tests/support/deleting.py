"""What late writers do: in threads of this process, and in another one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langgraph.checkpoint.base import Checkpoint

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError
from tests.support import apps
from tests.support.apps import CONFIG, State, says
from tests.support.build import checkpoint, config
from tests.support.faults import Line


def bare(id: str) -> Checkpoint:
    """A checkpoint without values."""
    return checkpoint(id, {}, {})


def at_once(saver: Any, places: list[tuple[str, str]], *, loop: asyncio.AbstractEventLoop | None) -> list[str | None]:
    """Write to these `(thread, checkpoint)` at once, a task for each; the code each was refused with, if it was."""

    def sync(n: int) -> str | None:
        thread, id = places[n]
        try:
            saver.put_writes(config(thread, id=id), [("a", f"w{n}")], f"task-{n}")
        except ConflictError as error:
            return error.code
        return None

    async def run(n: int) -> str | None:
        thread, id = places[n]
        try:
            await saver.aput_writes(config(thread, id=id), [("a", f"w{n}")], f"task-{n}")
        except ConflictError as error:
            return error.code
        return None

    async def all_of_them() -> list[str | None]:
        return await asyncio.gather(*map(run, range(len(places))))

    if loop is not None:
        return loop.run_until_complete(all_of_them())
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(sync, range(len(places))))


def run_while_it_is_deleted(url: str, durability: Any, line: Line) -> tuple[str, str]:
    """Run a graph a second time, whose node says so, and waits until its thread was deleted; then begin it anew."""

    def waits(state: State) -> Any:
        if "again" in state["log"]:
            line.tell("runs")
            line.hear()
        return {"log": ["a"]}

    with LedgerSaver(url) as saver:
        app = apps.line(saver, a=waits, b=says("b"))
        app.invoke({"log": ["first"]}, CONFIG, durability=durability)
        code = "nothing"
        try:
            app.invoke({"log": ["again"]}, CONFIG, durability=durability)
        except ConflictError as error:
            code = error.code
        app.invoke({"log": ["in"]}, CONFIG, durability=durability)
    return code, "begun anew"
