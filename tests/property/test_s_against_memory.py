"""The same random operations on LedgerSaver and on InMemorySaver give the same answers.

Where the two differ on purpose, InMemorySaver is corrected by `tests.support.reference.Reference`, which says why:

- What you put is what you get: values are a checkpoint's own, whatever `new_versions` says and whatever other
  checkpoints use the same versions (InMemorySaver looks values up by version).
- `list` goes by checkpoint id over all namespaces and threads (InMemorySaver goes namespace by namespace).
- Reads hide an answer that was taken, and what a graph's task wrote beside an error that nobody handles (S12).
- InMemorySaver lacks `delete_for_runs`, `copy_thread` and `prune`.

Not among the operations, as LangGraph never does it: a value that changes while its version stays the same and is not
listed as new, and parents that form a circle.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as check_machine

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.build import NULL_TASK, VERSIONS, cid, config, metadata
from tests.support.compare import difference, facts, typed
from tests.support.driver import Driver
from tests.support.reference import Reference

THREADS = ["t", "T", "t'%_"]
SPACES = ["", "a|b:1"]
CHANNELS = ["a", "b", "c"]
SPECIAL = ["__error__", "__interrupt__", "__resume__", "__scheduled__", "__error_source_node__"]
PLACES = [(thread, ns) for thread in THREADS for ns in SPACES]
KEEP, DROP = object(), object()

places = st.sampled_from(PLACES)
threads = st.sampled_from(THREADS)
numbers = st.integers(0, 7)
forms = st.sampled_from(["sync", "async"])
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=4)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
changes = st.fixed_dictionaries({channel: st.just(KEEP) | st.just(DROP) | values for channel in CHANNELS})
run_ids = st.sampled_from([None, "r1", "r2", "r'3"])
tags = st.sampled_from([None, True, 1, 1.0, "1", "", "x'y", [1], {"x": 1}])
answers = st.lists(st.integers(0, 9), max_size=3) | st.integers(0, 9)
writes = st.tuples(st.sampled_from([*CHANNELS, *SPECIAL]), values) | st.tuples(st.just("__resume__"), answers)
batches = st.lists(writes, max_size=4)


class AgainstMemory(RuleBasedStateMachine):
    """Two savers on one file, both used in both forms, against one reference; every step compares all there is."""

    @initialize(kind=st.sampled_from(sorted(VERSIONS)))
    def begin(self, kind: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.reference = Driver(Reference(), "sync", self.loop)
        self.savers = [self.open(), self.open()]
        self.version, self.used = VERSIONS[kind], 0
        self.last: dict[tuple[str, str, str], tuple[dict[str, Any], dict[str, Any]]] = {}

    def open(self) -> LedgerSaver:
        return LedgerSaver(self.folder / "runs.db", fsync="normal")

    def driver(self, form: Any, which: int) -> Driver:
        return Driver(self.savers[which], form, self.loop)

    def teardown(self) -> None:
        if hasattr(self, "savers"):
            for saver in self.savers:
                saver.close()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            shutil.rmtree(self.folder)

    def id_at(self, place: tuple[str, str], n: int) -> str:
        """Ids differ between namespaces, so that a thread's listing has one order only."""
        return cid(n * len(SPACES) + SPACES.index(place[1]))

    @rule(
        form=forms,
        which=st.integers(0, 1),
        place=places,
        n=numbers,
        back=st.integers(0, 3),
        changes=changes,
        listed=st.sampled_from(["changed", "changed", "all", "none"]),
        run_id=run_ids,
        tag=tags,
    )
    def put(
        self, form: Any, which: int, place: Any, n: int, back: int, changes: Any, listed: str, run_id: Any, tag: Any
    ) -> None:
        """A new checkpoint, or an old id again; its parent is one before it, one that is missing, or none."""
        id, parent = self.id_at(place, n), self.id_at(place, n - back) if 0 < back <= n else None
        held, versions = map(dict, self.last.get((*place, parent or ""), ({}, {})))
        changed = {channel: value for channel, value in changes.items() if value is not KEEP}
        for channel, value in changed.items():
            self.used += 1
            versions[channel] = self.version(self.used)
            held.pop(channel, None)
            if value is not DROP:
                held[channel] = value
        new = {"changed": {c: versions[c] for c in changed}, "all": versions, "none": {}}[listed]
        meta = metadata(n, tag=tag) | ({} if run_id is None else {"run_id": run_id})
        answers = [
            each.save(
                id,
                held,
                versions,
                thread=place[0],
                ns=place[1],
                parent=parent,
                new=new,
                meta=meta,
                versions_seen={"n": versions},
            )
            for each in (self.reference, self.driver(form, which))
        ]
        assert answers[0] == answers[1]
        self.last[(*place, id)] = held, versions

    @rule(
        form=forms,
        which=st.integers(0, 1),
        place=places,
        n=numbers,
        batch=batches,
        task=st.sampled_from(["t1", "t2", NULL_TASK]),
        path=st.sampled_from(["", "~a", "~b", "~é"]),
        in_graph=st.booleans(),
    )
    def put_writes(
        self, form: Any, which: int, place: Any, n: int, batch: Any, task: str, path: str, in_graph: bool
    ) -> None:
        """Regular and special writes, mixed and repeated, to checkpoints that are there, will be, or never come."""
        where = config(*place, self.id_at(place, n), **({"__pregel_runtime": object()} if in_graph else {}))
        if task == NULL_TASK:  # it is given answers and updates; it never fails
            batch = [write for write in batch if write[0] != "__error__"]
        for each in (self.reference, self.driver(form, which)):
            each.put_writes(where, batch, task, path)

    @rule(form=forms, which=st.integers(0, 1), thread=threads)
    def delete_thread(self, form: Any, which: int, thread: str) -> None:
        for each in (self.reference, self.driver(form, which)):
            each.delete_thread(thread)

    @rule(form=forms, which=st.integers(0, 1), runs=st.lists(run_ids.filter(bool), max_size=2))
    def delete_for_runs(self, form: Any, which: int, runs: Any) -> None:
        for each in (self.reference, self.driver(form, which)):
            each.delete_for_runs(runs)

    @rule(
        form=forms,
        which=st.integers(0, 1),
        some=st.lists(threads, max_size=2),
        strategy=st.sampled_from(["keep_latest", "keep_latest", "delete", "delete_all"]),
    )
    def prune(self, form: Any, which: int, some: list[str], strategy: str) -> None:
        for each in (self.reference, self.driver(form, which)):
            each.prune(some, strategy=strategy)

    @rule(form=forms, which=st.integers(0, 1), source=threads, copy=threads)
    def copy_thread(self, form: Any, which: int, source: str, copy: str) -> None:
        """Into an empty thread; into one that holds anything, writes included, it is refused."""
        memory: Any = self.reference.saver
        if any(memory.storage[copy].values()) or any(call.place[0] == copy for call in memory.calls):
            with pytest.raises(InvalidArgument):
                self.driver(form, which).copy_thread(source, copy)
            return
        for each in (self.reference, self.driver(form, which)):
            each.copy_thread(source, copy)
        for (thread, ns, id), what in list(self.last.items()):
            if thread == source:
                self.last[(copy, ns, id)] = what

    @rule(form=forms, which=st.integers(0, 1))
    def reopen(self, form: str, which: int) -> None:
        """Close one of the two savers, in either form, and open another one in its place."""
        if form == "sync":
            self.savers[which].close()
        else:
            self.loop.run_until_complete(self.savers[which].aclose())
        self.savers[which] = self.open()

    @rule(form=forms, which=st.integers(0, 1), place=places, n=st.none() | numbers)
    def get_tuple(self, form: Any, which: int, place: Any, n: int | None) -> None:
        """By id and the latest, with all there is to a checkpoint."""
        where = config(*place, None if n is None else self.id_at(place, n))
        expected, actual = (each.get_tuple(where) for each in (self.reference, self.driver(form, which)))
        assert difference(typed(facts(expected)), typed(facts(actual))) is None

    @rule(
        form=forms,
        which=st.integers(0, 1),
        thread=threads,
        ns=st.none() | st.sampled_from(SPACES),
        wanted=st.none() | st.fixed_dictionaries({}, optional={"tag": tags, "run_id": run_ids, "step": numbers}),
        before=st.none() | numbers,
        limit=st.none() | st.integers(0, 4),
    )
    def list(self, form: Any, which: int, thread: str, ns: Any, wanted: Any, before: Any, limit: Any) -> None:
        """A namespace or a thread, filtered, from some id downwards, and not more than so many."""
        options = {"filter": wanted, "limit": limit, "before": before and config(id=cid(before * len(SPACES)))}
        expected, actual = (
            each.list(config(thread, ns), **options) for each in (self.reference, self.driver(form, which))
        )
        assert difference([facts(item) for item in expected], [facts(item) for item in actual]) is None

    @rule(form=forms, which=st.integers(0, 1), place=places, n=st.none() | numbers)
    def get_delta_channel_history(self, form: Any, which: int, place: Any, n: int | None) -> None:
        """What the ancestors wrote, back to the nearest value."""
        where = config(*place, None if n is None else self.id_at(place, n))
        expected, actual = (
            each.history(where, [*CHANNELS, "never"]) for each in (self.reference, self.driver(form, which))
        )
        assert difference(expected, actual) is None

    @precondition(lambda self: hasattr(self, "savers"))
    @invariant()
    def all_is_the_same(self) -> None:
        """Every checkpoint of every thread, as both forms and both savers list them."""
        expected = everything(self.reference)
        for which, form in enumerate(("sync", "async")):
            assert difference(expected, everything(self.driver(form, which))) is None


def everything(store: Driver) -> Any:
    """All that is listed; ids that several threads share are put in one order."""
    found = store.list(None)
    ids = [item.checkpoint["id"] for item in found]
    assert ids == sorted(ids, reverse=True)
    return sorted((typed(facts(item)) for item in found), key=lambda fact: repr(fact["at"]))


def test_s1_random_operations_agree_with_inmemorysaver() -> None:
    """Whatever is put, written, deleted, copied, pruned and reopened, both savers tell the same (S1 to S5)."""
    check_machine(
        AgainstMemory, settings=settings(stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
    )
