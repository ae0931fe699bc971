"""The model LedgerSaver is compared with: InMemorySaver, plus the rules that differ from it on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver


class Reference(InMemorySaver):
    """InMemorySaver with LedgerSaver's deliberate differences, each in the method that makes it.

    What you put is what you get: a checkpoint is read back with the values it was put with. InMemorySaver looks values
    up by version: it drops one whose version was not listed as new, finds one again that was left out, and lets a fork
    that reaches the same version overwrite another's. SqliteSaver and LedgerSaver do none of this.

    It has the three methods that InMemorySaver lacks (`delete_for_runs`, `copy_thread`, `prune`), so that a test can
    compare them as well. `prune` is that of threads without a DeltaChannel: ancestors go.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.values: dict[tuple[str, str, str], tuple[str, bytes]] = {}
        self.copied: set[tuple[str, str, str]] = set()
        """Checkpoints made by `copy_thread`: they belong to no run."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        where = config["configurable"]
        place = (where["thread_id"], where["checkpoint_ns"], checkpoint["id"])
        self.values[place] = self.serde.dumps_typed(checkpoint["channel_values"])
        self.copied.discard(place)
        return super().put(config, checkpoint, metadata, new_versions)

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        return found and self._as_put(found)

    def list(
        self, config: Any, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> Iterator[CheckpointTuple]:
        """Newest id first over all namespaces and threads, as SqliteSaver; InMemorySaver goes thread by thread."""
        found = sorted(
            super().list(config, filter=filter, before=before),
            key=lambda item: item.config["configurable"]["checkpoint_id"],
            reverse=True,
        )
        yield from map(self._as_put, found if limit is None else found[:limit])

    def get_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Any:
        """The base class's own walk, which only uses `get_tuple`."""
        return BaseCheckpointSaver.get_delta_channel_history(self, config=config, channels=channels)

    def _as_put(self, found: CheckpointTuple) -> CheckpointTuple:
        where = found.config["configurable"]
        place = (where["thread_id"], where.get("checkpoint_ns", ""), where["checkpoint_id"])
        values = self.serde.loads_typed(self.values[place])
        return found._replace(checkpoint={**found.checkpoint, "channel_values": values})

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        doomed = [
            (thread, ns, id)
            for thread, spaces in self.storage.items()
            for ns, saved in spaces.items()
            for id, (_, meta, _) in saved.items()
            if self.serde.loads_typed(meta).get("run_id") in run_ids and (thread, ns, id) not in self.copied
        ]
        self._drop(doomed)

    def copy_thread(self, source: str, target: str) -> None:
        for ns, saved in list(self.storage.get(source, {}).items()):
            self.storage[target][ns].update(saved)
        for (thread, ns, id), slots in list(self.writes.items()):
            if thread == source:
                self.writes[(target, ns, id)] = dict(slots)
        for (thread, ns, id), values in list(self.values.items()):
            if thread == source:
                self.values[(target, ns, id)] = values
                self.copied.add((target, ns, id))

    def prune(self, threads: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in threads:
            if strategy != "keep_latest":
                self.delete_thread(thread)
                continue
            for ns, saved in self.storage.get(thread, {}).items():
                newest = max(saved, default="")
                self._drop([(thread, ns, id) for id in saved if id != newest])
                for where in [key for key in self.writes if key[:2] == (thread, ns) and key[2] < newest]:
                    del self.writes[where]  # of checkpoints that never came

    def _drop(self, places: Iterable[tuple[str, str, str]]) -> None:
        for thread, ns, id in list(places):
            del self.storage[thread][ns][id]
            self.writes.pop((thread, ns, id), None)
