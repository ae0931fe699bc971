"""Two LedgerSavers on one file and a reference saver beside them: whatever is done to one is done to the other.

Operations take small numbers and turn them into ids that meet each other: mostly new checkpoints on top of the newest,
as LangGraph makes them, but also old ids again, missing parents, and writes to what is not there.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import langgraph_ext
from langgraph_ext.errors import ConflictError, InvalidArgument
from tests.support.build import NULL_TASK, cid, config, metadata
from tests.support.changes import Change
from tests.support.compare import difference, facts, typed
from tests.support.driver import Driver
from tests.support.reference import Reference

KEEP, DROP = object(), object()
"""A channel that stays as it is; one that loses its value."""

MISSING = "0 was never put"
"""A parent that is not there."""

LATE = "thread_deleted"
"""The code of what comes too late to a deleted thread."""

SPACES = ["", "a|b:1"]
CHANNELS = ["a", "b", "c"]

Place = tuple[str, str]
"""Thread and namespace."""


class World:
    """What is done to it is done to LedgerSaver and to the reference; what they answer must be the same.

    Args:
        version: Spells the n-th version.
        memory: How many bytes of large values the savers may remember.
        encryption: Theirs.
    """

    def __init__(self, version: Callable[[int], Any], memory: int = 2_000, encryption: Any = None) -> None:
        self.memory = memory
        self.encryption = encryption
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.reference = Driver(Reference(), "sync", self.loop)
        self.savers = [self._open(), self._open()]
        self.version = version
        self.versions_used = self.newest = 0
        self.last: dict[tuple[str, str, str], tuple[dict[str, Any], dict[str, Any]]] = {}
        """Values and versions of every checkpoint that was put."""

    def close(self) -> None:
        for saver in self.savers:
            saver.close()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        shutil.rmtree(self.folder)

    def both(self, form: Any, which: int) -> tuple[Driver, Driver]:
        """The reference, and one of the two savers in one of its forms."""
        return self.reference, Driver(self.savers[which], form, self.loop)

    # -- operations

    def put(
        self,
        form: Any,
        which: int,
        place: Place,
        *,
        new: int,
        above: int,
        changes: Any,
        listed: str,
        run_id: Any,
        tag: Any,
    ) -> None:
        """A new checkpoint, or an old id again; the parent is one below, one that is missing, or none."""
        id = self._pick_new(place, new)
        parent = self._pick_parent(place, id, above)
        held, versions = map(dict, self.last.get((*place, parent or ""), ({}, {})))
        changed = {channel: value for channel, value in changes.items() if value is not KEEP}
        for channel, value in changed.items():
            self.versions_used += 1
            versions[channel] = self.version(self.versions_used)
            before = held.pop(channel, None)
            if value is not DROP:
                held[channel] = value.of(before) if isinstance(value, Change) else value
        parts = {
            "new": {"changed": {c: versions[c] for c in changed}, "all": versions, "none": {}}[listed],
            "meta": metadata(new, tag=tag) | ({} if run_id is None else {"run_id": run_id}),
            "versions_seen": {"n": versions},
        }
        where = {"thread": place[0], "ns": place[1], "parent": parent}
        saves = [partial(each.save, id, held, versions, **where, **parts) for each in self.both(form, which)]
        answers = [_outcome(save) for save in saves]
        assert answers[0] == answers[1]
        if answers[0] != LATE:
            self.last[(*place, id)] = held, versions

    def write(
        self, form: Any, which: int, place: Place, *, pick: int, batch: Any, task: str, path: str, in_graph: bool
    ) -> None:
        """Writes of a task to a checkpoint that is there, will be, or never comes."""
        runtime = {"__pregel_runtime": object()} if in_graph else {}
        if task == NULL_TASK:  # it is given answers and updates; it never fails
            batch = [write for write in batch if write[0] != "__error__"]
        at = self.pick(place, pick)
        held, _ = self.last.get((*place, at), ({}, {}))
        batch = [
            (channel, value.of(held.get(channel)) if isinstance(value, Change) else value) for channel, value in batch
        ]
        where = config(*place, at, **runtime)
        answers = [_outcome(partial(each.put_writes, where, batch, task, path)) for each in self.both(form, which)]
        assert answers[0] == answers[1]

    def take_away(self, form: Any, which: int, *, what: str, threads: list[str], runs: list[str]) -> None:
        """The checkpoints of runs, all but the newest, or whole threads.

        A thread of which nothing is stored any more is not deleted: whether the ledger knows something of it yet, so
        that a tombstone is left, the reference does not know.
        """
        if what in ("thread", "delete", "delete_all"):
            threads = [thread for thread in threads if not self._is_emptied(thread)]
        for each in self.both(form, which):
            if what == "runs":
                each.delete_for_runs(runs)
            elif what == "thread":
                each.delete_thread(threads[0] if threads else "nobody")
            elif what == "keep two":
                each.call("prune_thread", threads[0] if threads else "nobody", keep_last=2)
            elif what == "sweep":
                each.call("sweep", keep_last=2)
            else:
                each.prune(threads, strategy=what)

    def _is_emptied(self, thread: str) -> bool:
        memory: Any = self.reference.saver
        return thread in memory.newest and not self._holds(thread)

    def _holds(self, thread: str) -> bool:
        memory: Any = self.reference.saver
        return any(memory.storage[thread].values()) or any(call.place[0] == thread for call in memory.calls)

    def copy(self, form: Any, which: int, *, source: str, target: str) -> None:
        """Into an empty thread; into one that holds anything, writes included, it is refused."""
        reference, ours = self.both(form, which)
        if self._holds(target):
            with pytest.raises(InvalidArgument):
                ours.copy_thread(source, target)
            return
        for each in (reference, ours):
            each.copy_thread(source, target)
        for (thread, ns, id), what in list(self.last.items()):
            if thread == source:
                self.last[(target, ns, id)] = what

    def reopen(self, form: Any, which: int) -> None:
        """Close one of the two savers, in either form, and open another one in its place."""
        if form == "sync":
            self.savers[which].close()
        else:
            self.loop.run_until_complete(self.savers[which].aclose())
        self.savers[which] = self._open()

    def look(self, form: Any, which: int, place: Place, *, ns: Any, pick: int | None, wanted: Any, limit: Any) -> None:
        """Every way to read: the latest or one by its id, a filtered page from there downwards, the delta history."""
        id = None if pick is None else self.pick(place, pick)
        options = {"filter": wanted, "limit": limit, "before": id and config(id=id)}
        answers = [
            (
                typed(facts(each.get_tuple(config(*place, id)))),
                [facts(item) for item in each.list(config(place[0], ns), **options)],
                [facts(item) for item in each.list(config(place[0], ns, id), filter=wanted)],
                each.history(config(*place, id), [*CHANNELS, "never"]),
            )
            for each in self.both(form, which)
        ]
        assert difference(*answers) is None

    def compare(self) -> None:
        """All that is stored: every checkpoint of every thread, as both forms and both savers list them."""
        expected = _everything(self.reference)
        for which, form in enumerate(("sync", "async")):
            assert difference(expected, _everything(self.both(form, which)[1])) is None

    # -- ids

    def stored(self, place: Place) -> list[str]:
        """The ids of a namespace, newest first."""
        memory: Any = self.reference.saver
        return sorted(memory.storage[place[0]][place[1]], reverse=True)

    def pick(self, place: Place, pick: int) -> str:
        """Mostly an id that is stored, the newest ones more often; else one that never was, or is no more."""
        ids = self.stored(place)
        return ids[pick // 2 % len(ids)] if ids and pick < 10 else _id_at(place, pick)

    def _pick_new(self, place: Place, pick: int) -> str:
        """Mostly an id above all others; else one that is stored, or one in between."""
        if pick > 8:
            return self.pick(place, pick - (pick < 10) * 9)
        self.newest += 1
        return _id_at(place, 12 + self.newest)

    def _pick_parent(self, place: Place, id: str, pick: int) -> str | None:
        """Mostly a stored checkpoint below `id`, the newest ones more often; else none, or one that is missing."""
        below = [each for each in self.stored(place) if each < id]
        return {0: None, 1: MISSING}.get(pick, below[(pick - 2) // 4 % len(below)] if below else None)

    def _open(self) -> langgraph_ext.LedgerSaver:
        path, memory = self.folder / "runs.db", self.memory
        return langgraph_ext.LedgerSaver(path, fsync="normal", growing_memory_bytes=memory, encryption=self.encryption)


def _outcome(call: Callable[[], Any]) -> Any:
    """What a call answers, or that it comes too late to a deleted thread."""
    try:
        return call()
    except ConflictError as error:
        return error.code


def _id_at(place: Place, n: int) -> str:
    """Ids differ between namespaces, so that a thread's listing has one order only."""
    return cid(n * len(SPACES) + SPACES.index(place[1]))


def _everything(store: Driver) -> Any:
    """All that is listed; ids that several threads share are put in one order."""
    found = store.list(None)
    ids = [item.checkpoint["id"] for item in found]
    assert ids == sorted(ids, reverse=True)
    return sorted((typed(facts(item)) for item in found), key=lambda fact: repr(fact["at"]))
