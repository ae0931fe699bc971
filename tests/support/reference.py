"""The model LedgerSaver is compared with: InMemorySaver, plus the rules that differ from it on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, writes_sort_key
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import ERROR, RESUME
from langgraph.pregel._task_status import CONTROL_WRITES

from langgraph_ext.errors import ConflictError
from tests.support.build import NULL_TASK

TOP = "\U0010ffff"
"""Above every id."""


class Call(NamedTuple):
    """One call of `put_writes`."""

    place: tuple[str, str, str]
    task: str
    path: str
    writes: list[tuple[str, tuple[str, bytes]]]
    answers: int
    """How many answers the task says it was given."""
    in_graph: bool
    """Whether a running graph made the call, not a program that uses the saver directly."""

    @property
    def who(self) -> tuple[Any, ...]:
        """The task, as one among all namespaces and checkpoints."""
        return (*self.place, self.task)


class Reference(InMemorySaver):
    """InMemorySaver with LedgerSaver's deliberate differences, each in the method that makes it.

    What you put is what you get: a checkpoint is read back with the values it was put with. InMemorySaver looks values
    up by version: it drops one whose version was not listed as new, finds one again that was left out, and lets a fork
    that reaches the same version overwrite another's. SqliteSaver and LedgerSaver do none of this.

    Writes that LangGraph would take for an unasked answer or for success are hidden (S12); slots are InMemorySaver's.

    It has the three methods that InMemorySaver lacks (`delete_for_runs`, `copy_thread`, `prune`), so that a test can
    compare them as well. `prune` is that of threads without a DeltaChannel: ancestors go.

    A deleted thread leaves a tombstone (S9), which InMemorySaver does not know.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.values: dict[tuple[str, str, str], tuple[str, bytes]] = {}
        self.calls: list[Call] = []
        """All calls of `put_writes`, in the order of their entry."""
        self.copied: set[tuple[str, str, str]] = set()
        """Checkpoints made by `copy_thread`: they belong to no run."""
        self.newest: dict[str, str] = {}
        """The greatest id that each thread has ever had."""
        self.tombstones: dict[str, str] = {}

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        where = config["configurable"]
        place = (where["thread_id"], where["checkpoint_ns"], checkpoint["id"])
        parent = where.get("checkpoint_id")
        if not self._has(place) and parent is not None and not self._has((*place[:2], parent)):
            self._refuse_late(place, upto=TOP)
        elif not self._has(place) and parent is None:
            self._refuse_late(place, upto=place[2])
        self._note(place)
        self.values[place] = self.serde.dumps_typed(checkpoint["channel_values"])
        self.copied.discard(place)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        where = config["configurable"]
        place = (where["thread_id"], where.get("checkpoint_ns", ""), where["checkpoint_id"])
        if writes and not self._has(place):
            self._refuse_late(place, upto=place[2])
        if writes:
            self._note(place)
        lists = [value for channel, value in writes if channel == RESUME and isinstance(value, list)]
        call = Call(
            place=place,
            task=task_id,
            path=task_path,
            writes=[(channel, self.serde.dumps_typed(value)) for channel, value in writes],
            answers=len(lists[-1]) if lists and task_id != NULL_TASK else 0,
            in_graph="__pregel_runtime" in where,
        )
        self.calls += [call] if writes else []

    def _ordered_writes(self, thread: str, ns: str, id: str) -> list[tuple[str, str, tuple[str, bytes], str]]:
        """InMemorySaver's slots (S3), filled by what is not hidden (S12)."""
        slots: dict[tuple[str, int], tuple[str, str, tuple[str, bytes], str]] = {}
        for number, call in enumerate(self.calls):
            for position, (channel, value) in enumerate(call.writes if call.place == (thread, ns, id) else []):
                at = (call.task, WRITES_IDX_MAP.get(channel, position))
                if not self._is_hidden(number, channel) and (at[1] < 0 or at not in slots):
                    slots[at] = (call.task, channel, value, call.path)
        return [slots[at] for at in sorted(slots, key=lambda at: writes_sort_key(slots[at][3], *at))]

    def _is_hidden(self, number: int, channel: str) -> bool:
        """S12: an answer of the null task that some task has taken since, and a graph's output beside an error."""
        call = self.calls[number]
        if call.task == NULL_TASK and channel == RESUME:
            return any(
                later.answers > max((e.answers for e in self.calls[:number] if e.who == later.who), default=0)
                for later in self.calls[number + 1 :]
                if later.place[0] == call.place[0]
            )
        channels = {channel for channel, _ in call.writes}
        unhandled = ERROR in channels and "__error_source_node__" not in channels
        return call.in_graph and unhandled and channel not in CONTROL_WRITES

    def _has(self, place: tuple[str, str, str]) -> bool:
        thread, ns, id = place
        return id in self.storage.get(thread, {}).get(ns, {})

    def _note(self, place: tuple[str, str, str]) -> None:
        self.newest[place[0]] = max(self.newest.get(place[0], ""), place[2])

    def _refuse_late(self, place: tuple[str, str, str], *, upto: str) -> None:
        """S9: raise if the thread was deleted, and what was deleted is not older than `upto`."""
        newest = self.tombstones.get(place[0])
        if newest is not None and (upto == TOP or upto <= newest):
            raise ConflictError(f"{place} is late", code="thread_deleted")

    def delete_thread(self, thread_id: str) -> None:
        if any(self.storage.get(thread_id, {}).values()) or any(call.place[0] == thread_id for call in self.calls):
            self.tombstones[thread_id] = self.newest[thread_id]
        super().delete_thread(thread_id)
        self.calls = [call for call in self.calls if call.place[0] != thread_id]

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
        for call in [call for call in self.calls if call.place[0] == source]:
            self.calls.append(call._replace(place=(target, *call.place[1:])))
            self._note(self.calls[-1].place)
        for (thread, ns, id), values in list(self.values.items()):
            if thread == source:
                self.values[(target, ns, id)] = values
                self._note((target, ns, id))
                self.copied.add((target, ns, id))

    def prune(self, threads: Sequence[str], *, strategy: str = "keep_latest", keep_last: int = 1) -> None:
        for thread in threads:
            if strategy != "keep_latest":
                self.delete_thread(thread)
                continue
            for ns, saved in self.storage.get(thread, {}).items():
                newest = max(saved, default="")
                self._drop([(thread, ns, id) for id in sorted(saved)[:-keep_last]])
                self.calls = [  # without those for older checkpoints that never came
                    call
                    for call in self.calls
                    if call.place[:2] != (thread, ns) or call.place[2] >= newest or self._has(call.place)
                ]

    def prune_thread(self, thread: str, *, keep_last: int) -> None:
        self.prune([thread], keep_last=keep_last)

    def sweep(self, *, keep_last: int) -> None:
        """Threads in which a checkpoint goes."""
        long = [thread for thread, spaces in self.storage.items() if any(len(s) > keep_last for s in spaces.values())]
        self.prune(long, keep_last=keep_last)

    def _drop(self, places: Sequence[tuple[str, str, str]]) -> None:
        for thread, ns, id in places:
            del self.storage[thread][ns][id]
        self.calls = [call for call in self.calls if call.place not in places]
