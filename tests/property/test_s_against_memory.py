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

THREADS = ["t", "t'%_"]
SPACES = ["", "a|b:1"]
CHANNELS = ["a", "b", "c"]
SPECIAL = ["__error__", "__interrupt__", "__resume__", "__scheduled__"]
KEEP, DROP = object(), object()
PLAIN = [
    None,
    True,
    False,
    0,
    1,
    1.5,
    -1,
    2**63,
    1e300,
    "",
    "x",
    "é🙂",
    "nul\0",
    b"",
    b"\0\xff",
    [],
    {},
    [1, [2]],
    {"k": [None]},
]

# Mostly one place, one task and few channels: operations must meet each other to be interesting.
places = st.sampled_from([("t", "")] * 4 + [(thread, ns) for thread in THREADS for ns in SPACES])
threads = st.sampled_from(["t", "t", *THREADS])
picks = st.integers(0, 11)
forms = st.sampled_from(["sync", "async"])
savers = st.integers(0, 1)
values = st.sampled_from(PLAIN) | st.integers(0, 99) | st.text(max_size=3)
change = st.just(KEEP) | st.just(KEEP) | st.just(DROP) | values | values
changes = st.fixed_dictionaries(dict.fromkeys(CHANNELS, change))
run_ids = st.sampled_from([None, "r1", "r2", "r'3"])
tags = st.sampled_from([None, True, 1, 1.0, "1", "", "x'y", [1], {"x": 1}])
answers = st.lists(st.integers(0, 9), max_size=3) | st.integers(0, 9)
writes = (
    st.tuples(st.sampled_from(CHANNELS), values)
    | st.tuples(st.sampled_from([*SPECIAL, "__error__", "__error_source_node__"]), values)
    | st.tuples(st.just("__resume__"), answers)
)
batches = st.lists(writes, max_size=4)
tasks = st.sampled_from(["t1", "t1", "t2", NULL_TASK])
paths = st.sampled_from(["", "~b", "~a", "~é"])


class AgainstMemory(RuleBasedStateMachine):
    """Two savers on one file, both used in both forms, against one reference; every step compares all there is."""

    @initialize(kind=st.sampled_from(sorted(VERSIONS)))
    def begin(self, kind: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.reference = Driver(Reference(), "sync", self.loop)
        self.savers = [self.open(), self.open()]
        self.version, self.used = VERSIONS[kind], 0
        self.newest = 0
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

    def stored(self, place: tuple[str, str]) -> list[str]:
        """The ids of a namespace, newest first."""
        memory: Any = self.reference.saver
        return sorted(memory.storage[place[0]][place[1]], reverse=True)

    def id_at(self, place: tuple[str, str], n: int) -> str:
        """Ids differ between namespaces, so that a thread's listing has one order only."""
        return cid(n * len(SPACES) + SPACES.index(place[1]))

    def pick(self, place: tuple[str, str], pick: int) -> str:
        """Mostly an id that is stored, the newest ones more often; else one that never was, or is no more."""
        ids = self.stored(place)
        return ids[pick // 2 % len(ids)] if ids and pick < 10 else self.id_at(place, pick)

    def pick_new(self, place: tuple[str, str], pick: int) -> str:
        """Mostly an id above all others, as LangGraph makes them; else one that is stored, or one in between."""
        if pick > 6:
            return self.pick(place, pick)
        self.newest += 1
        return self.id_at(place, 12 + self.newest)

    def pick_parent(self, place: tuple[str, str], id: str, pick: int) -> str | None:
        """Mostly a stored checkpoint below `id`, the newest ones more often; else none, or one that is missing."""
        below = [each for each in self.stored(place) if each < id]
        return {0: None, 1: cid(0)}.get(pick, below[(pick - 2) // 3 % len(below)] if below else None)

    @rule(
        form=forms,
        which=savers,
        place=places,
        new=picks,
        above=picks,
        changes=changes,
        listed=st.sampled_from(["changed", "changed", "all", "none"]),
        run_id=run_ids,
        tag=tags,
    )
    def put(
        self, form: Any, which: int, place: Any, new: int, above: int, changes: Any, listed: str, run_id: Any, tag: Any
    ) -> None:
        """A new checkpoint, or an old id again; its parent is one before it, one that is missing, or none."""
        id = self.pick_new(place, new)
        parent = self.pick_parent(place, id, above)
        held, versions = map(dict, self.last.get((*place, parent or ""), ({}, {})))
        changed = {channel: value for channel, value in changes.items() if value is not KEEP}
        for channel, value in changed.items():
            self.used += 1
            versions[channel] = self.version(self.used)
            held.pop(channel, None)
            if value is not DROP:
                held[channel] = value
        news = {"changed": {c: versions[c] for c in changed}, "all": versions, "none": {}}[listed]
        meta = metadata(new, tag=tag) | ({} if run_id is None else {"run_id": run_id})
        answers = [
            each.save(
                id,
                held,
                versions,
                thread=place[0],
                ns=place[1],
                parent=parent,
                new=news,
                meta=meta,
                versions_seen={"n": versions},
            )
            for each in (self.reference, self.driver(form, which))
        ]
        assert answers[0] == answers[1]
        self.last[(*place, id)] = held, versions

    @rule(
        form=forms,
        which=savers,
        place=places,
        n=picks,
        batch=batches,
        task=tasks,
        path=paths,
        in_graph=st.booleans(),
    )
    def put_writes(
        self, form: Any, which: int, place: Any, n: int, batch: Any, task: str, path: str, in_graph: bool
    ) -> None:
        """Regular and special writes, mixed and repeated, to checkpoints that are there, will be, or never come."""
        where = config(*place, self.pick(place, n), **({"__pregel_runtime": object()} if in_graph else {}))
        if task == NULL_TASK:  # it is given answers and updates; it never fails
            batch = [write for write in batch if write[0] != "__error__"]
        for each in (self.reference, self.driver(form, which)):
            each.put_writes(where, batch, task, path)

    @rule(
        form=forms,
        which=savers,
        what=st.sampled_from(["prune", "prune", "runs", "runs", "thread", "delete", "delete_all"]),
        some=st.lists(threads, max_size=2),
        runs=st.lists(run_ids.filter(bool), max_size=2),
    )
    def take_away(self, form: Any, which: int, what: str, some: list[str], runs: list[str]) -> None:
        """Checkpoints of runs, all but the newest, or whole threads."""
        for each in (self.reference, self.driver(form, which)):
            if what == "runs":
                each.delete_for_runs(runs)
            elif what == "thread":
                each.delete_thread(some[0] if some else "nobody")
            else:
                each.prune(some, strategy=what.replace("prune", "keep_latest"))

    @rule(form=forms, which=savers, source=threads, copy=threads)
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

    @rule(form=forms, which=savers)
    def reopen(self, form: str, which: int) -> None:
        """Close one of the two savers, in either form, and open another one in its place."""
        if form == "sync":
            self.savers[which].close()
        else:
            self.loop.run_until_complete(self.savers[which].aclose())
        self.savers[which] = self.open()

    @rule(
        form=forms,
        which=savers,
        place=places,
        ns=st.sampled_from([None, *SPACES]),
        pick=st.none() | picks,
        wanted=st.none() | st.fixed_dictionaries({}, optional={"tag": tags, "run_id": run_ids, "step": picks}),
        limit=st.none() | st.integers(0, 4),
    )
    def look(self, form: Any, which: int, place: Any, ns: Any, pick: Any, wanted: Any, limit: Any) -> None:
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
            for each in (self.reference, self.driver(form, which))
        ]
        assert difference(*answers) is None

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


@pytest.mark.timeout(600)  # when it fails, Hypothesis needs some minutes to find the shortest story
def test_s1_random_operations_agree_with_inmemorysaver() -> None:
    """Whatever is put, written, deleted, copied, pruned and reopened, both savers tell the same (S1 to S5)."""
    check_machine(
        AgainstMemory, settings=settings(stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
    )
