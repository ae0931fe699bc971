"""S1: get_delta_channel_history equals LangGraph's own walk over parents, whatever the shape of the thread."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph_ext.database import Row, Tx
from tests.support.build import cid, config
from tests.support.driver import Driver

CHANNELS = ["log", "plain", "never"]


def grow(store: Driver, seed: int, version: Callable[[int], Any], size: int = 14) -> list[str]:
    """A thread of `size` checkpoints with random parents, snapshots, plain values, writes and missing ancestors."""
    dice = random.Random(seed)
    ids = [cid(n) for n in range(1, size + 1)]
    for n, id in enumerate(ids):
        values: dict[str, Any] = {}
        if dice.random() < 0.15:
            values["log"] = _DeltaSnapshot([f"snapshot {n}"])
        if dice.random() < 0.2:
            values["plain"] = dice.choice([None, f"value {n}", []])
        versions = {channel: version(n) for channel in ("log", "plain") if channel in values or dice.random() < 0.5}
        versions |= {channel: version(n) for channel in values}
        if dice.random() < 0.9 or n == size - 1:
            parent = dice.choice(ids[:n]) if n and dice.random() < 0.3 else (ids[n - 1] if n else None)
            store.save(id, values, versions, parent=parent)
        for task in range(dice.randrange(4)):
            batch = dice.choices([("log", f"{n}.{task}"), ("plain", n), ("__resume__", "r"), ("other", None)], k=3)
            store.put_writes(config(id=id), batch, f"task-{dice.randrange(5)}", dice.choice(["", "~a", "~b", "~"]))
    return ids


def walked(store: Driver, where: Any, channels: list[str]) -> dict[str, Any]:
    """What the base class's own implementation, which only uses `get_tuple`, finds."""
    walk: Any = BaseCheckpointSaver.get_delta_channel_history
    if store.form == "async":
        walk = BaseCheckpointSaver.aget_delta_channel_history
        return dict(store.loop.run_until_complete(walk(store.saver, config=where, channels=channels)))
    return dict(walk(store.saver, config=where, channels=channels))


@pytest.mark.parametrize("seed", range(8))
def test_s1_the_delta_history_is_the_base_classs_walk(store: Driver, version: Callable[[int], Any], seed: int) -> None:
    """For every checkpoint of a random fork, and for the latest, all channels at once and one by one."""
    ids = grow(store, seed, version)
    found = 0
    for where in [config(id=id) for id in ids] + [config(), config(ns=None)]:
        for channels in [CHANNELS, ["log"], ["never"]]:
            expected = walked(store, where, channels)
            assert expected == store.history(where, channels)
            found += sum(len(entry["writes"]) for entry in expected.values())

    assert found > 50, "the random thread holds too little to prove anything"


@pytest.mark.parametrize("seed", range(4))
def test_s1_the_delta_history_is_that_of_the_reference(store: Driver, reference: Driver, seed: int) -> None:
    """InMemorySaver, grown by the same calls, finds the same seeds and writes in the same order."""
    ids = grow(store, seed, lambda n: n)
    grow(reference, seed, lambda n: n)

    for id in ids:
        assert reference.history(config(id=id), CHANNELS) == store.history(config(id=id), CHANNELS)


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_s1_the_delta_history_is_the_same_however_it_is_paged(
    store: Driver, reference: Driver, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Pages that end within a checkpoint's calls, or hold other branches only, and those from parent to parent."""
    for name in ("_PAGE", "_CLIMBED", "_MOST_CLIMBED"):
        monkeypatch.setattr(f"langgraph_ext.saver.ancestors.{name}", rows)
    ids = grow(store, rows, lambda n: n, size=30)
    grow(reference, rows, lambda n: n, size=30)
    for id in ids:
        assert reference.history(config(id=id), CHANNELS) == store.history(config(id=id), CHANNELS)


SHAPES = ["a line", "many calls at each", "many calls at forks between"]


@pytest.mark.parametrize("shape", SHAPES)
def test_s1_the_delta_history_reads_the_calls_that_it_needs(
    store: Driver, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Those from the checkpoint up to the value, in a few looks; not those above, and not those of forks."""
    steps, calls = 150, 80 if shape == SHAPES[1] else 1
    for n in range(steps):
        above = cid(2 * n - 2) if n else None
        store.save(cid(2 * n), {"log": _DeltaSnapshot([n])} if n == 100 else {}, {"log": n}, parent=above)
        for task in range(calls):
            store.put_writes(config(id=cid(2 * n)), [("log", n)], f"task-{task}")
        if shape == SHAPES[2]:
            store.save(cid(2 * n + 1), {}, {"log": n}, parent=above)
            for task in range(80):
                store.put_writes(config(id=cid(2 * n + 1)), [("log", n)], f"task-{task}")
    looks: list[tuple[str, int]] = []
    read = Tx.all

    def counted(tx: Tx, name: str, /, **params: object) -> list[Row]:
        rows = read(tx, name, **params)
        looks.append((name, len(rows)))
        return rows

    monkeypatch.setattr(Tx, "all", counted)
    found = store.history(config(id=cid(2 * steps - 2)), ["log"])["log"]
    assert (49 * calls, _DeltaSnapshot([100])) == (len(found["writes"]), found["seed"])
    assert 49 * calls == sum(rows for name, rows in looks if name.startswith("writes"))
    assert len(looks) < 12
    looks.clear()
    store.call("prune", ["t"])
    assert [] == [name for name, _ in looks if name in ("writes_between", "writes_of_lineage")]


def test_s1_the_delta_history_ends_at_each_channels_own_seed(store: Driver) -> None:
    """One channel stops at its snapshot, the other goes on to the root; the seed's own writes still count."""
    store.save(cid(1), {"plain": "old"})
    store.put_writes(config(id=cid(1)), [("log", "too old"), ("plain", 1)], "task")
    store.save(cid(2), {"log": _DeltaSnapshot(["s"])}, {"log": 2}, parent=cid(1))
    store.put_writes(config(id=cid(2)), [("log", "b"), ("plain", 2)], "task", "~b")
    store.put_writes(config(id=cid(2)), [("log", "a")], "task-z", "~a")
    store.save(cid(3), {}, {"log": 3}, parent=cid(2))
    store.put_writes(config(id=cid(3)), [("log", "of the target itself")], "task")

    assert {
        "log": {"writes": [("task-z", "log", "a"), ("task", "log", "b")], "seed": _DeltaSnapshot(["s"])},
        "plain": {"writes": [("task", "plain", 1), ("task", "plain", 2)], "seed": "old"},
    } == store.history(config(id=cid(3)), ["log", "plain"])


@pytest.mark.parametrize("where", [config("nobody"), config(id=cid(9)), config(ns="x"), config(id=cid(1))])
def test_s1_the_delta_history_of_nothing_is_empty(store: Driver, where: Any) -> None:
    """A missing checkpoint and a root without ancestors have no writes and no seed; no channels, no answer."""
    store.save(cid(1), {"log": 1})

    assert {"log": {"writes": []}, "x": {"writes": []}} == store.history(where, ["log", "x"])
    assert {} == store.history(where, [])


@pytest.mark.timeout(60)
def test_s1_the_delta_history_survives_a_loop_of_parents(store: Driver) -> None:
    """A checkpoint put again under its own descendant makes parents a circle: the walk ends all the same."""
    store.save(cid(1), {}, {})
    store.save(cid(2), {}, {}, parent=cid(1))
    store.put_writes(config(id=cid(2)), [("log", "x")], "task")
    store.save(cid(1), {}, {}, parent=cid(2))

    assert ("task", "log", "x") in store.history(config(id=cid(1)), ["log"])["log"]["writes"]
