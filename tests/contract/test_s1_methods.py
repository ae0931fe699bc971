"""S1: every method of a checkpointer, in both forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.compare import facts, typed
from tests.support.driver import Driver

METHODS = [
    *("get_tuple", "list", "put", "put_writes", "delete_thread"),
    *("delete_for_runs", "copy_thread", "prune", "get_delta_channel_history"),
]
BOTH_FORMS = [f"{prefix}{method}" for method in METHODS for prefix in ("", "a")]


@pytest.fixture
def chain(store: Driver, version: Callable[[int], Any]) -> list[str]:
    """Three checkpoints in a row: `a` new in the first and third, `b` only in the first; writes at the third."""
    store.save(
        cid(1), {"a": "a1", "b": [1, {"x": None}]}, {"a": version(1), "b": version(1)}, meta=metadata(-1, "input")
    )
    store.save(
        cid(2),
        {"a": "a1", "b": [1, {"x": None}]},
        {"a": version(1), "b": version(1)},
        parent=cid(1),
        new={},
        meta=metadata(0),
    )
    store.save(
        cid(3),
        {"a": "a3", "b": [1, {"x": None}]},
        {"a": version(3), "b": version(1)},
        parent=cid(2),
        new={"a": version(3)},
        meta=metadata(1),
    )
    store.put_writes(config(id=cid(3)), [("a", "later"), ("b", "last")], "task", "path")
    return [cid(1), cid(2), cid(3)]


@pytest.mark.parametrize("method", BOTH_FORMS)
def test_s1_every_method_is_its_own_and_takes_what_the_base_class_takes(method: str) -> None:
    """No method is left to the base class, and parameters have LangGraph's names: it looks for `task_path` by name.

    What a method of ours takes besides has a name and a default.
    """
    ours, theirs = getattr(LedgerSaver, method), getattr(BaseCheckpointSaver, method)
    wanted, taken = ([*inspect.signature(each).parameters.values()] for each in (theirs, ours))

    assert ours is not theirs
    assert [(p.name, p.kind, p.default) for p in wanted] == [(p.name, p.kind, p.default) for p in taken[: len(wanted)]]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in taken[len(wanted) :])


def test_s1_a_checkpoint_comes_back_as_it_was_put(
    store: Driver, chain: list[str], version: Callable[[int], Any]
) -> None:
    """Every field of a checkpoint is read back, with values and versions of the very types that were put."""
    found = store.read(chain[2])

    assert chain[2] == found.checkpoint["id"]
    assert {"a": "a3", "b": [1, {"x": None}]} == found.checkpoint["channel_values"]
    assert typed({"a": version(3), "b": version(1)}) == typed(found.checkpoint["channel_versions"])
    assert typed({"__input__": {}, "node": {"a": version(3), "b": version(1)}}) == typed(
        found.checkpoint["versions_seen"]
    )
    assert (4, "2026-01-02T03:04:05.678901+00:00") == (found.checkpoint["v"], found.checkpoint["ts"])
    assert ["a", "b"] == found.checkpoint["updated_channels"]


def test_s1_every_checkpoint_of_a_chain_keeps_its_own_values(store: Driver, chain: list[str]) -> None:
    """A value is found by every checkpoint that still holds its version, and by no other."""
    assert ["a1", "a1", "a3"] == [store.read(id).checkpoint["channel_values"]["a"] for id in chain]
    assert [[1, {"x": None}]] * 3 == [store.read(id).checkpoint["channel_values"]["b"] for id in chain]


def test_s1_metadata_and_parents_come_back_as_they_were_put(store: Driver, chain: list[str]) -> None:
    """Metadata is what was put; the parent is the checkpoint that the put's config named."""
    found = [store.read(id) for id in chain]

    assert [metadata(-1, "input"), metadata(0), metadata(1)] == [item.metadata for item in found]
    assert [None, config(id=chain[0]), config(id=chain[1])] == [item.parent_config for item in found]
    assert [config(id=id) for id in chain] == [item.config for item in found]


def test_s1_pending_writes_come_with_their_checkpoint_only(store: Driver, chain: list[str]) -> None:
    """Writes belong to the checkpoint their config names, as (task, channel, value)."""
    assert [("task", "a", "later"), ("task", "b", "last")] == store.writes(chain[2])
    assert [[], []] == [store.writes(id) for id in chain[:2]]


def test_s1_list_and_get_tuple_tell_the_same(store: Driver, chain: list[str]) -> None:
    """A listed checkpoint is in nothing different from the one read alone."""
    listed = store.list(config())

    assert list(reversed(chain)) == [item.checkpoint["id"] for item in listed]
    assert [facts(store.read(id)) for id in reversed(chain)] == [facts(item) for item in listed]


def test_s1_get_returns_the_bare_checkpoint(store: Driver, chain: list[str]) -> None:
    """`get` and `aget` give the checkpoint of `get_tuple`, or None."""
    assert store.read(chain[1]).checkpoint == store.call("get", config(id=chain[1]))
    assert store.call("get", config("nobody")) is None


def test_s1_the_latest_is_the_greatest_id_not_the_last_put(store: Driver) -> None:
    """Without an id, `get_tuple` reads the checkpoint whose id sorts last, whenever it was put."""
    store.save(cid(5), {"a": "newest"})
    store.save(cid(4), {"a": "late"}, {"a": 2})

    assert cid(5) == store.read().checkpoint["id"]
    assert {"a": "newest"} == store.read().checkpoint["channel_values"]


@pytest.mark.parametrize(
    "missing",
    [config("other"), config(ns="other"), config(id=cid(9)), config("other", id=cid(1)), config(ns="x", id=cid(1))],
)
def test_s1_a_checkpoint_that_was_never_put_is_none(store: Driver, missing: Any) -> None:
    """An unknown thread, namespace or id is `None` and an empty list, never an error."""
    store.save(cid(1), {"a": 1})

    assert store.get_tuple(missing) is None
    assert [] == store.list(missing)


def test_s1_put_returns_the_place_of_the_new_checkpoint(store: Driver) -> None:
    """The returned config names thread, namespace and new id, and nothing of the config that was passed."""
    saved = store.put(
        config("t1", "ns", cid(1), extra="x") | {"metadata": {"m": 1}},
        checkpoint(cid(2)),
        metadata(),
        {},
    )

    assert config("t1", "ns", cid(2)) == saved
    assert cid(2) == store.read(thread="t1", ns="ns").checkpoint["id"]


def test_s1_a_config_without_a_namespace_means_the_root(store: Driver) -> None:
    """Reading and writing without `checkpoint_ns` is reading and writing the root namespace."""
    store.save(cid(1), {"a": 1})
    store.save(cid(2), {"a": 2}, ns="child")
    store.put_writes(config(ns=None, id=cid(1)), [("a", "w")], "task")

    found = store.get_tuple(config(ns=None))
    assert found is not None
    assert (cid(1), [("task", "a", "w")]) == (found.checkpoint["id"], found.pending_writes)
    assert config(id=cid(1)) == found.config


def test_s1_threads_and_namespaces_do_not_mix(store: Driver) -> None:
    """The same ids, channels and versions in another thread or namespace are other checkpoints."""
    places = [("t", ""), ("t", "a"), ("t", "a|b:1"), ("t2", ""), ("T", "")]
    for thread, ns in places:
        store.save(cid(1), {"c": f"{thread}/{ns}"}, thread=thread, ns=ns)
        store.put_writes(config(thread, ns, cid(1)), [("c", f"w {thread}/{ns}")], "task")

    found = {place: store.read(thread=place[0], ns=place[1]) for place in places}
    assert [{"c": f"{t}/{ns}"} for t, ns in places] == [found[p].checkpoint["channel_values"] for p in places]
    assert [[("task", "c", f"w {t}/{ns}")] for t, ns in places] == [found[p].pending_writes for p in places]


def test_s1_an_int_thread_id_is_the_thread_of_its_text(store: Driver) -> None:
    """LangGraph users pass `thread_id=1`; SqliteSaver takes it as "1", and so do we."""
    store.save(cid(1), {"a": 1}, thread=7)
    store.put_writes(config(7, id=cid(1)), [("a", 2)], "task")

    assert [("task", "a", 2)] == store.writes(thread="7")
    assert [cid(1)] == store.ids(config(7))


def test_s1_putting_an_id_again_replaces_it_and_keeps_its_writes(store: Driver) -> None:
    """The second put of an id is the one that is read; writes that waited there stay."""
    store.save(cid(2), {"a": "old"}, {"a": 1}, parent=cid(1), meta=metadata(1, note="old"))
    store.put_writes(config(id=cid(2)), [("a", "w")], "task")
    store.save(cid(2), {"a": "new"}, {"a": 2}, meta=metadata(2))

    found = store.read(cid(2))
    assert ({"a": "new"}, metadata(2), None) == (
        found.checkpoint["channel_values"],
        found.metadata,
        found.parent_config,
    )
    assert ([("task", "a", "w")], [cid(2)]) == (found.pending_writes, store.ids(config()))


def test_s1_writes_may_come_before_their_checkpoint(store: Driver) -> None:
    """Under durability async a write overtakes the put of its own checkpoint: it waits there, unlisted."""
    store.put_writes(config(id=cid(1)), [("a", "early")], "task", "path")
    assert (None, []) == (store.get_tuple(config(id=cid(1))), store.list(config()))
    store.save(cid(1), {"a": "v"})

    assert [("task", "a", "early")] == store.writes(cid(1))


def test_s1_writes_of_a_checkpoint_that_never_comes_disturb_nothing(store: Driver) -> None:
    """A run that broke off may leave writes without a checkpoint: they show up nowhere else."""
    store.save(cid(1), {"a": 1})
    store.put_writes(config(id=cid(2)), [("a", "lost")], "task")

    assert ([cid(1)], []) == (store.ids(config()), store.writes())
    assert {"a": {"writes": [], "seed": 1}} == store.history(store.save(cid(3), {}, parent=cid(1)), ["a"])


def test_s1_what_you_put_is_what_you_get(store: Driver, memory: Driver) -> None:
    """A value is read back though its version was not listed as new. InMemorySaver drops it; we do as SqliteSaver."""
    for each in (store, memory):
        each.save(cid(1), {"a": "kept", "b": "listed"}, {"a": 1, "b": 1}, new={"b": 1})

    assert {"a": "kept", "b": "listed"} == store.read().checkpoint["channel_values"]
    assert {"b": "listed"} == memory.read().checkpoint["channel_values"]


def test_s1_a_channel_without_a_value_is_absent_and_none_is_a_value(store: Driver) -> None:
    """A new version without a value means that the channel became empty; `None` is a value like any other."""
    store.save(cid(1), {"a": 1, "n": None}, {"a": 1, "n": 1})
    store.save(cid(2), {"n": None}, {"a": 2, "n": 1}, parent=cid(1), new={"a": 2})

    assert {"a": 1, "n": None} == store.read(cid(1)).checkpoint["channel_values"]
    assert {"n": None} == store.read(cid(2)).checkpoint["channel_values"]
    assert {"a": 2, "n": 1} == store.read(cid(2)).checkpoint["channel_versions"]


def test_s1_keys_of_other_versions_of_langgraph_come_back(store: Driver) -> None:
    """A checkpoint keeps the keys that it had, such as old `pending_sends`, and gets none that it had not."""
    odd = {
        "v": 1,
        "id": cid(1),
        "ts": "t",
        "channel_values": {"a": 1},
        "channel_versions": {"a": 1},
        "versions_seen": {},
    }
    store.put(config(), odd | {"pending_sends": [{"x": (1,)}], "from_the_future": {1, 2}}, metadata(), {"a": 1})
    store.put(config("u"), odd, metadata(), {"a": 1})

    assert odd | {"pending_sends": [{"x": [1]}], "from_the_future": {1, 2}} == store.read().checkpoint
    assert odd == store.read(thread="u").checkpoint


def test_s1_a_replaced_checkpoint_leaves_its_children_their_values(store: Driver) -> None:
    """A child that shares a value with its parent keeps it when the parent is put again with another one."""
    store.save(cid(1), {"a": "shared", "b": "b1"}, {"a": 1, "b": 1})
    store.save(cid(2), {"a": "shared", "b": "b2"}, {"a": 1, "b": 2}, parent=cid(1), new={"b": 2})
    store.save(cid(3), {"a": "shared"}, {"a": 1, "b": 3}, parent=cid(2), new={"b": 3})
    store.save(cid(1), {"a": "other"}, {"a": 4})

    values = [store.read(cid(n)).checkpoint["channel_values"] for n in (1, 2, 3)]
    assert [{"a": "other"}, {"a": "shared", "b": "b2"}, {"a": "shared"}] == values


def test_s1_no_argument_is_changed_and_no_answer_is_shared(store: Driver) -> None:
    """The caller may change what it passed and what it got: the stored checkpoint stays as it was."""
    values, versions, meta = {"a": [1]}, {"a": 1}, metadata(1, tags=["x"])
    store.save(cid(1), values, versions, meta=meta)
    assert ({"a": [1]}, {"a": 1}, metadata(1, tags=["x"])) == (values, versions, meta)
    values["a"].append(2)
    store.read().checkpoint["channel_values"]["a"].append(3)
    store.read().metadata["tags"].append("y")  # type: ignore[typeddict-item]

    found = store.read()
    assert ({"a": [1]}, ["x"]) == (found.checkpoint["channel_values"], found.metadata["tags"])  # type: ignore[typeddict-item]


def test_s1_a_reopened_file_tells_the_same(
    store: Driver, chain: list[str], backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """Another saver on the file, after the first was closed, reads every checkpoint as the first one did."""
    before = [typed(facts(item)) for item in store.list(config())]
    history = store.history(config(id=chain[2]), ["a", "b"])
    store.saver.close()  # type: ignore[attr-defined]
    again = forms(backend.open())

    assert before == [typed(facts(item)) for item in again.list(config())]
    assert history == again.history(config(id=chain[2]), ["a", "b"])
