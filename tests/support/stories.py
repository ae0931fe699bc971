"""One story told twice: the same graph and the same calls over two savers, and what LangGraph answered, without ids."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from tests.support.build import NULL_TASK, whole
from tests.support.driver import Form

_IDS = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32}\b")


class Teller:
    """A graph over one saver. It does what the story says and keeps what came back, with ids named in order.

    Args:
        build: Compiles the graph over the saver it is given; called once.
        saver: The saver.
        form: Whether `invoke` or `ainvoke` is called, and so on.
        durability: How LangGraph is to save: `"sync"`, `"async"` or `"exit"`.
        loop: Where the async form runs.
    """

    def __init__(
        self,
        build: Callable[[Any], Any],
        saver: BaseCheckpointSaver[Any],
        form: Form,
        durability: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.saver, self.form, self.durability, self.loop = saver, form, durability, loop
        self.graph = build(saver)
        self.told: list[Any] = []
        self.brief = False
        """Tell only where a run ends, for stories in which LangGraph leaves it to chance what is stored between."""
        self._names: dict[str, str] = {}

    def run(self, input: Any, config: Any = None, **options: Any) -> Any:
        """Invoke the graph, tell what it returned or raised, and what the thread looks like afterwards."""
        config = config or whole()
        answer = self._attempt("invoke", input, config, durability=self.durability, **options)
        if isinstance(answer, dict) and "__interrupt__" in answer:  # parallel ones come as they come
            answer = {**answer, "__interrupt__": sorted(answer["__interrupt__"], key=lambda item: str(item.value))}
        self._tell("run", answer)
        self.look(config["configurable"]["thread_id"])
        return answer

    def update(self, values: Any, config: Any = None, **options: Any) -> Any:
        """Call `update_state`, tell what the thread looks like afterwards, return the new config."""
        config = config or whole()
        answer = self._attempt("update_state", config, values, **options)
        self._tell("update", answer if isinstance(answer, tuple) else "done")
        self.look(config["configurable"]["thread_id"])
        return answer

    def state(self, config: Any = None, **options: Any) -> StateSnapshot:
        """The thread's state; told as well."""
        found: StateSnapshot = self.call("get_state", config or whole(), **options)
        told = self._snapshot(found)
        self._tell("state", {key: told[key] for key in ("values", "next")} if self.brief else told)
        return found

    def history(self, config: Any = None, **options: Any) -> list[StateSnapshot]:
        """The thread's history, newest first; told as well."""
        if self.form == "sync":
            found = list(self.graph.get_state_history(config or whole(), **options))
        else:
            found = self.loop.run_until_complete(
                self._collect(self.graph.aget_state_history(config or whole(), **options))
            )
        self._tell("history", [self._snapshot(item) for item in found])
        return found

    def look(self, thread: str = "t") -> None:
        """Tell all of a thread: state with subgraphs, history, and every checkpoint with its pending writes."""
        if self.brief:
            return
        self.state(whole(thread), subgraphs=True)
        self.history(whole(thread))
        places = sorted(_place(item.config)[::-1] for item in self.saver.list(whole(thread)))
        spaces = {self._named(ns): ns for _, ns in places}  # named in the order of their first checkpoints
        for name, ns in sorted(spaces.items()):
            where = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
            self._tell(f"stored in {name}", [self._stored(item) for item in self.saver.list(where)])

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call `method` of the graph (sync) or `a<method>` (async), and tell nothing."""
        if self.form == "sync":
            return getattr(self.graph, method)(*args, **options)
        return self.loop.run_until_complete(getattr(self.graph, f"a{method}")(*args, **options))

    def _attempt(self, method: str, *args: Any, **options: Any) -> Any:
        """As `call`; an error is the answer, as its name and text."""
        try:
            return self.call(method, *args, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same over both savers
            return type(error).__name__, str(error)

    async def _collect(self, items: Any) -> list[Any]:
        return [item async for item in items]

    def _tell(self, what: str, answer: Any) -> None:
        self.told.append((what, self._named(answer)))

    def _snapshot(self, found: StateSnapshot) -> dict[str, Any]:
        return {
            "at": _place(found.config),
            "parent": found.parent_config and _place(found.parent_config),
            "values": found.values,
            "next": found.next,
            "tasks": [self._task(task) for task in found.tasks],
            "interrupts": list(found.interrupts),
            "metadata": found.metadata and {key: found.metadata.get(key) for key in ("source", "step", "parents")},
        }

    def _task(self, task: PregelTask) -> dict[str, Any]:
        state = task.state
        return {
            "name": task.name,
            "path": task.path,
            "error": task.error and repr(task.error),
            "interrupts": list(task.interrupts),
            "result": task.result,
            "state": self._snapshot(state) if isinstance(state, StateSnapshot) else state and _place(state),
        }

    def _stored(self, item: Any) -> dict[str, Any]:
        return {
            "at": _place(item.config),
            "parent": item.parent_config and _place(item.parent_config),
            "metadata": item.metadata,
            # InMemorySaver shows a snapshot again in later checkpoints of its version, which were put without it.
            "values": {k: v for k, v in item.checkpoint["channel_values"].items() if not isinstance(v, _DeltaSnapshot)},
            "writes": [
                (task, channel, repr(value) if isinstance(value, BaseException) else value)
                for task, channel, value in item.pending_writes or []
                if (task, channel) != (NULL_TASK, "__resume__")
            ],
        }

    def _named(self, told: Any) -> Any:
        """`told` with every id replaced by a name: the first one met is #1, and so on."""
        if isinstance(told, str):
            return _IDS.sub(lambda found: self._names.setdefault(found[0], f"#{len(self._names) + 1}"), told)
        if isinstance(told, dict):
            return {self._named(key): self._named(value) for key, value in told.items()}
        if isinstance(told, Interrupt):
            return ("interrupt", self._named(told.id), told.value)
        if isinstance(told, tuple) and hasattr(told, "_fields"):
            return type(told).__name__, [self._named(item) for item in told]
        if isinstance(told, list | tuple):
            return [self._named(item) for item in told]
        return told


def _place(config: Any) -> tuple[str, str]:
    where = config["configurable"]
    return where.get("checkpoint_ns", ""), where.get("checkpoint_id", "")
