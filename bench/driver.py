"""Drivers: one opened saver behind the same blocking methods, called through its sync or its async API.

What is timed inside the async driver runs within one coroutine, so that entering the event loop is not measured.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import perf_counter
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Durability

__all__ = ["App", "AsyncDriver", "Call", "Driver", "Form", "Saver", "SyncDriver", "config_of"]

Form = Literal["sync", "async"]
Saver: TypeAlias = BaseCheckpointSaver[Any]
App: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]
Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of one call, by position and by name."""

_numbers = count()


def config_of(thread_id: str | None = None, **more: str) -> RunnableConfig:
    """The config of a thread; a new thread if none is named."""
    thread_id = f"run-{next(_numbers)}" if thread_id is None else thread_id
    return {"configurable": {"thread_id": thread_id, **more}, "recursion_limit": 1000}


class Driver(ABC):
    """One opened saver."""

    form: Form

    def __init__(self, saver: Saver, pragma: Callable[[str], object]) -> None:
        self.saver = saver
        self.pragma = pragma
        """Reads a pragma from the connection that this saver writes through."""

    @abstractmethod
    def invoke(self, app: App, given: Any, config: RunnableConfig, durability: Durability | None) -> Any:
        """Run a graph; returns its final state."""

    @abstractmethod
    def state(self, app: App, config: RunnableConfig) -> Any:
        """The values of a thread's newest state."""

    @abstractmethod
    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the saver, named by its sync form; `list` gives a list."""

    @abstractmethod
    def timed(self, method: str, calls: Iterable[Call]) -> list[float]:
        """Call a method of the saver again and again; seconds for each call."""

    @abstractmethod
    def crowd(self, app: App, given: Any, durability: Durability | None, *, at_once: int, each: int) -> list[float]:
        """Run a graph `each` times in a row in each of `at_once` threads or tasks; seconds for each run."""


class SyncDriver(Driver):
    """Calls `invoke`, `put`, `list` … in the thread at hand."""

    form = "sync"

    def invoke(self, app: App, given: Any, config: RunnableConfig, durability: Durability | None) -> Any:
        return app.invoke(given, config, durability=durability)

    def state(self, app: App, config: RunnableConfig) -> Any:
        return app.get_state(config).values

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self.saver, method)(*args, **kwargs)
        return list(found) if method == "list" else found

    def timed(self, method: str, calls: Iterable[Call]) -> list[float]:
        took = []
        for args, more in calls:
            begun = perf_counter()
            self.call(method, *args, **more)
            took.append(perf_counter() - begun)
        return took

    def crowd(self, app: App, given: Any, durability: Durability | None, *, at_once: int, each: int) -> list[float]:
        def one() -> list[float]:
            took = []
            for _ in range(each):
                begun = perf_counter()
                self.invoke(app, given, config_of(), durability)
                took.append(perf_counter() - begun)
            return took

        with ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(one) for _ in range(at_once)]
            return [seconds for future in futures for seconds in future.result()]


class AsyncDriver(Driver):
    """Calls `ainvoke`, `aput`, `alist` … on an event loop of its own."""

    form = "async"

    def __init__(self, saver: Saver, pragma: Callable[[str], object], runner: asyncio.Runner) -> None:
        super().__init__(saver, pragma)
        self._runner = runner

    def invoke(self, app: App, given: Any, config: RunnableConfig, durability: Durability | None) -> Any:
        return self._runner.run(app.ainvoke(given, config, durability=durability))

    def state(self, app: App, config: RunnableConfig) -> Any:
        return self._runner.run(app.aget_state(config)).values

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._runner.run(self._call(method, args, kwargs))

    async def _call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = getattr(self.saver, f"a{method}")(*args, **kwargs)
        return [found async for found in answer] if method == "list" else await answer

    def timed(self, method: str, calls: Iterable[Call]) -> list[float]:
        async def one_by_one() -> list[float]:
            took = []
            for args, more in calls:
                begun = perf_counter()
                await self._call(method, args, more)
                took.append(perf_counter() - begun)
            return took

        return self._runner.run(one_by_one())

    def crowd(self, app: App, given: Any, durability: Durability | None, *, at_once: int, each: int) -> list[float]:
        async def one() -> list[float]:
            took = []
            for _ in range(each):
                begun = perf_counter()
                await app.ainvoke(given, config_of(), durability=durability)
                took.append(perf_counter() - begun)
            return took

        async def together() -> list[list[float]]:
            return await asyncio.gather(*(one() for _ in range(at_once)))

        return [seconds for took in self._runner.run(together()) for seconds in took]
