"""One saver, called in one of its two forms: `put` directly, or `aput` on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple

from tests.support.build import checkpoint, config, metadata

Form = Literal["sync", "async"]


class Driver:
    """A saver behind plain blocking calls, made in the form the test asked for.

    Args:
        saver: The saver under test.
        form: `"sync"` calls `put`, `"async"` calls `aput`, and so on for every method.
        loop: Where the async form runs; it must not be running.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], form: Form, loop: asyncio.AbstractEventLoop) -> None:
        self.saver, self.form, self.loop = saver, form, loop

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call `method` (sync) or `a<method>` (async) and wait for what it returns."""
        if self.form == "sync":
            return getattr(self.saver, method)(*args, **kwargs)
        return self.loop.run_until_complete(getattr(self.saver, f"a{method}")(*args, **kwargs))

    def save(
        self,
        id: str,
        values: dict[str, Any] | None = None,
        versions: Any = None,
        *,
        thread: Any = "t",
        ns: str = "",
        parent: str | None = None,
        new: Any = None,
        meta: Any = None,
        **fields: Any,
    ) -> RunnableConfig:
        """Put a checkpoint made of these parts; every version is new unless `new` says which are."""
        made = checkpoint(id, values, versions, **fields)
        new = made["channel_versions"] if new is None else new
        return self.put(config(thread, ns, parent), made, metadata() if meta is None else meta, new)

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: Any, new_versions: Any) -> RunnableConfig:
        return self.call("put", config, checkpoint, metadata, new_versions)

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str = "") -> None:
        self.call("put_writes", config, writes, task, path)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.call("get_tuple", config)

    def read(self, id: str | None = None, *, thread: Any = "t", ns: str = "") -> CheckpointTuple:
        """The checkpoint with this id, or the latest; it must exist."""
        found = self.get_tuple(config(thread, ns, id))
        assert found is not None, f"no checkpoint {id or 'at all'} in thread {thread!r}, namespace {ns!r}"
        return found

    def list(self, config: RunnableConfig | None, **kwargs: Any) -> list[CheckpointTuple]:
        if self.form == "sync":
            return list(self.saver.list(config, **kwargs))

        async def collect() -> list[CheckpointTuple]:
            return [found async for found in self.saver.alist(config, **kwargs)]

        return self.loop.run_until_complete(collect())

    def ids(self, config: RunnableConfig | None, **kwargs: Any) -> list[str]:
        """The checkpoint ids that `list` gives, in its order."""
        return [found.checkpoint["id"] for found in self.list(config, **kwargs)]

    def writes(self, id: str | None = None, *, thread: Any = "t", ns: str = "") -> list[tuple[str, str, Any]]:
        """The pending writes of a checkpoint as plain tuples."""
        return [tuple(write) for write in self.read(id, thread=thread, ns=ns).pending_writes or []]

    def delete_thread(self, thread: str) -> None:
        self.call("delete_thread", thread)

    def delete_for_runs(self, run_ids: Iterable[str]) -> None:
        self.call("delete_for_runs", list(run_ids))

    def copy_thread(self, source: str, target: str) -> None:
        self.call("copy_thread", source, target)

    def prune(self, threads: Iterable[str], **kwargs: Any) -> None:
        self.call("prune", list(threads), **kwargs)

    def history(self, config: RunnableConfig, channels: Sequence[str]) -> dict[str, Any]:
        return dict(self.call("get_delta_channel_history", config=config, channels=channels))
