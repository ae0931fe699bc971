"""A stand-in for LangGraph's API server: what it does between a graph and the saver it was given."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from langgraph_ext import LedgerSaver


class ServerAdapter(BaseCheckpointSaver[str]):
    """Calls a saver as the API server does: async methods only, versions of its own, metadata with the run's ids.

    Args:
        saver: The saver named in `langgraph.json`; the server opens one for each event loop.
        run_id: The run that the metadata of every put names.
    """

    def __init__(self, saver: LedgerSaver, run_id: str) -> None:
        super().__init__(serde=saver.serde)
        self.saver, self.run_id = saver, run_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self.saver, name)

    def get_next_version(self, current: Any, channel: None) -> str:
        counter = 0 if current is None else int(str(current).split(".")[0])
        return f"{counter + 1:032}.{random.random():.16f}"

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return await self.saver.aget_tuple(config)

    async def alist(
        self, config: Any, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> AsyncIterator[CheckpointTuple]:
        async for item in self.saver.alist(config, filter=filter, before=before, limit=limit):
            yield item

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        extra = {"run_id": self.run_id, "graph_id": "agent", "run_attempt": 1, "langgraph_auth_user_id": "secret"}
        where = {**config, "configurable": {**config["configurable"], **extra}}
        return await self.saver.aput(where, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self.saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self.saver.adelete_for_runs(run_ids)
