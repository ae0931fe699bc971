"""Graphs of durable nodes, in both forms, and what is on record of their attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langgraph_ext import LedgerSaver
from langgraph_ext.nodes import Frame, durable
from tests.support.apps import CONFIG, Boom, State, line
from tests.support.driver import Form

__all__ = ["Acts", "cancelled_inside"]


class Acts:
    """Makes durable nodes in one form, runs graphs in it, and counts how often each body ran."""

    def __init__(self, saver: LedgerSaver, form: Form, durability: str, loop: asyncio.AbstractEventLoop) -> None:
        self.saver, self.form, self.durability, self.loop = saver, form, durability, loop
        self.ran: list[str] = []
        """The node of each body that ran, in order."""

    def node(self, name: str, body: Callable[[Frame], Any] | None = None, **options: Any) -> Any:
        """A durable node that says its name, or what `body(frame)` returns."""

        def act(frame: Frame) -> Any:
            self.ran.append(name)
            return {"log": [name]} if body is None else body(frame)

        if self.form == "sync":

            @durable(**options)
            def node(state: Any, frame: Frame) -> Any:
                return act(frame)

            return node

        @durable(**options)
        async def anode(state: Any, frame: Frame) -> Any:
            return act(frame)

        return anode

    def run(self, app: Any, given: Any = ("in",), config: Any = CONFIG, **options: Any) -> Any:
        """Run until it ends, fails or asks."""
        given = {"log": list(given)} if isinstance(given, tuple) else given
        options = {"durability": self.durability, **options}
        try:
            if self.form == "sync":
                return app.invoke(given, config, **options)
            return self.loop.run_until_complete(app.ainvoke(given, config, **options))
        except Boom:
            return None

    def stream(self, app: Any, given: Any, modes: Sequence[str], **options: Any) -> list[tuple[str, Any]]:
        """The parts of a graph's stream, each with its mode."""
        options = {"stream_mode": list(modes), "durability": self.durability, **options}
        if self.form == "sync":
            return list(app.stream(given, CONFIG, **options))

        async def gather() -> list[tuple[str, Any]]:
            return [each async for each in app.astream(given, CONFIG, **options)]

        return self.loop.run_until_complete(gather())

    def attempts(self) -> list[tuple[str, int, str]]:
        """Node, number and status of every attempt, the oldest first."""
        runs = reversed(self.saver.ledger.runs())
        found = [attempt for run in runs for attempt in self.saver.ledger.attempts(run.run_id)]
        return [(attempt.node, attempt.number, str(attempt.status)) for attempt in found]

    def events(self, *nouns: str) -> list[str]:
        """Names of the events of these nouns."""
        return [e.name for e in self.saver.ledger.events(limit=10_000) if e.name.partition(".")[0] in nouns]

    def lease(self) -> tuple[int, bool]:
        """The thread's epoch, and whether it is held; behind what was queued before."""
        row = self.saver.database.transact(lambda tx: tx.one("lease_get", thread_id="t"))
        return row["epoch"], row["released_us"] is None


async def cancelled_inside(saver: LedgerSaver, meanwhile: Callable[[], Any] = lambda: None) -> Any:
    """Cancel a graph inside the durable body of its node `slow`; what `meanwhile` found before that."""
    entered = asyncio.Event()

    @durable
    async def slow(state: State) -> Any:
        entered.set()
        await asyncio.sleep(60)

    running = asyncio.create_task(line(saver, slow=slow).ainvoke({"log": []}, CONFIG))
    await entered.wait()
    found = meanwhile()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return found
