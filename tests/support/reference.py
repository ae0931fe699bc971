"""The model LedgerSaver is compared with: InMemorySaver, plus the rules that differ from it on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver


class Reference(InMemorySaver):
    """InMemorySaver with LedgerSaver's deliberate differences, each in the method that makes it.

    It has the three methods that InMemorySaver lacks (`delete_for_runs`, `copy_thread`, `prune`), so that a test can
    compare them as well. `prune` is that of threads without a DeltaChannel: ancestors go.
    """

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """What you put is what you get: a value whose version was stored by no earlier put is stored, listed as new
        or not. InMemorySaver drops it; SqliteSaver keeps it."""
        where = config["configurable"]
        thread, ns = where["thread_id"], where["checkpoint_ns"]
        versions = checkpoint["channel_versions"]
        unseen = {
            channel: versions[channel]
            for channel in checkpoint["channel_values"]
            if channel in versions and (thread, ns, channel, versions[channel]) not in self.blobs
        }
        return super().put(config, checkpoint, metadata, {**new_versions, **unseen})

    def list(
        self, config: Any, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> Iterator[CheckpointTuple]:
        """Newest id first over all namespaces and threads, as SqliteSaver lists; InMemorySaver goes thread by thread."""
        found = sorted(
            super().list(config, filter=filter, before=before),
            key=lambda item: item.config["configurable"]["checkpoint_id"],
            reverse=True,
        )
        yield from found if limit is None else found[:limit]

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        doomed = [
            (thread, ns, id)
            for thread, spaces in self.storage.items()
            for ns, saved in spaces.items()
            for id, (_, meta, _) in saved.items()
            if self.serde.loads_typed(meta).get("run_id") in run_ids
        ]
        self._drop(doomed)

    def copy_thread(self, source: str, target: str) -> None:
        for ns, saved in list(self.storage.get(source, {}).items()):
            self.storage[target][ns].update(saved)
        for (thread, ns, id), slots in list(self.writes.items()):
            if thread == source:
                self.writes[(target, ns, id)] = dict(slots)
        for (thread, *rest), blob in list(self.blobs.items()):
            if thread == source:
                self.blobs[(target, *rest)] = blob  # type: ignore[index]

    def prune(self, threads: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in threads:
            if strategy != "keep_latest":
                self.delete_thread(thread)
                continue
            for ns, saved in self.storage.get(thread, {}).items():
                self._drop([(thread, ns, id) for id in saved if id != max(saved)])

    def _drop(self, places: Iterable[tuple[str, str, str]]) -> None:
        for thread, ns, id in list(places):
            del self.storage[thread][ns][id]
            self.writes.pop((thread, ns, id), None)
