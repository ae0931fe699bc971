"""S1: delete_thread, delete_for_runs and prune, in both forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument
from tests.support.backends import SqliteBackend
from tests.support.build import cid, config, metadata, whole
from tests.support.compare import facts
from tests.support.driver import Driver

HOSTILE = ["' OR '1'='1", "t%", "_", "t\\", "r;DROP TABLE checkpoint", ""]


def everything(store: Driver) -> list[Any]:
    """All that the saver lists, in no particular order among equal ids."""
    return sorted((facts(item) for item in store.list(None)), key=lambda item: (item["at"], item["checkpoint"]["id"]))


@pytest.fixture
def threads(store: Driver) -> dict[str, list[str]]:
    """Threads `t` and `u`, each with three checkpoints in two namespaces; writes everywhere; one run per checkpoint."""
    for thread in ("t", "u"):
        for ns, offset in (("", 0), ("child", 10)):
            for n in range(1, 4):
                id = cid(n + offset)
                store.save(
                    id,
                    {"once": f"{thread}{ns}", "each": n},
                    {"once": 1, "each": n},
                    thread=thread,
                    ns=ns,
                    parent=cid(n + offset - 1) if n > 1 else None,
                    new={"once": 1, "each": n} if n == 1 else {"each": n},
                    meta=metadata(n, run_id=f"{thread}-run{n}"),
                )
                store.put_writes(config(thread, ns, id), [("each", f"w{n}")], "task")
    return {thread: store.ids(whole(thread)) for thread in ("t", "u")}


def test_s1_delete_thread_takes_all_of_one_thread(store: Driver, threads: dict[str, list[str]]) -> None:
    """Checkpoints, values and writes of the thread go in every namespace; other threads keep theirs."""
    others = [facts(item) for item in store.list(whole("u"))]
    store.delete_thread("t")

    assert ([], None, None) == (
        store.list(whole("t")),
        store.get_tuple(config("t")),
        store.get_tuple(config("t", "child")),
    )
    assert others == [facts(item) for item in store.list(whole("u"))]


def test_s1_a_deleted_thread_leaves_no_writes_behind(store: Driver, threads: dict[str, list[str]]) -> None:
    """A thread begun anew under the same name finds none of the old writes or values, whatever their versions."""
    store.put_writes(config(id=cid(40)), [("each", "early")], "task")
    store.delete_thread("t")
    for id in (cid(41), cid(42)):
        store.save(id, {}, {"once": 1, "each": 3})

    assert [cid(42), cid(41)] == store.ids(whole("t"))
    assert [([], {})] * 2 == [(item.pending_writes, item.checkpoint["channel_values"]) for item in store.list(whole())]


@pytest.mark.parametrize("name", HOSTILE)
def test_s1_delete_thread_takes_its_argument_literally(store: Driver, threads: dict[str, list[str]], name: str) -> None:
    """A thread id is a value: no wildcard, no quote, no statement."""
    before = everything(store)
    store.save(cid(1), {"a": 1}, thread=name)
    store.delete_thread(name)

    assert before == everything(store)


def test_s1_deleting_nothing_is_no_error(store: Driver, threads: dict[str, list[str]]) -> None:
    """The API server calls deletes again and again: each is idempotent, and empty lists are fine."""
    before = everything(store)
    for _ in range(2):
        store.delete_thread("nobody")
        store.delete_for_runs([])
        store.delete_for_runs(["nobody"])
        store.prune([])
        store.prune(["nobody"])
        store.prune(["nobody"], strategy="delete_all")

    assert before == everything(store)


def test_s1_delete_for_runs_takes_the_listed_runs_everywhere(store: Driver, threads: dict[str, list[str]]) -> None:
    """`metadata.run_id` is the link: checkpoints of these runs go in every thread and namespace, and no others."""
    for _ in range(2):  # the server calls it two or three times for one rollback
        store.delete_for_runs(["t-run1", "t-run3", "u-run2", "nobody"])

    assert [cid(12), cid(2)] == store.ids(whole("t"))
    assert [cid(13), cid(11), cid(3), cid(1)] == store.ids(whole("u"))


def test_s1_delete_for_runs_takes_the_writes_too(store: Driver, threads: dict[str, list[str]]) -> None:
    """A checkpoint put again under an id that a run left finds none of the run's writes."""
    store.delete_for_runs(["t-run3"])
    store.save(cid(3), {}, {})

    assert ([], [("task", "each", "w2")]) == (store.writes(cid(3)), store.writes(cid(2)))


def test_s1_delete_for_runs_leaves_survivors_their_values(store: Driver, threads: dict[str, list[str]]) -> None:
    """A value that a deleted checkpoint stored first stays as long as another checkpoint holds its version."""
    store.delete_for_runs(["t-run1", "t-run2"])

    assert {"once": "t", "each": 3} == store.read(cid(3)).checkpoint["channel_values"]
    assert {"once": "tchild", "each": 3} == store.read(cid(13), ns="child").checkpoint["channel_values"]
    assert config(id=cid(2)) == store.read(cid(3)).parent_config


@pytest.mark.parametrize("run", HOSTILE)
def test_s1_delete_for_runs_takes_its_argument_literally(
    store: Driver, threads: dict[str, list[str]], run: str
) -> None:
    """A run id is a value, also an odd one: exactly the run of that name goes."""
    before = everything(store)
    store.save(cid(90), {"a": 1}, thread="v", meta=metadata(run_id=run))
    store.delete_for_runs([run])

    assert before == everything(store)


def test_s1_a_run_id_must_be_a_text_to_match(store: Driver) -> None:
    """Metadata may hold anything under `run_id`; only the text that was asked for is deleted."""
    for n, run in enumerate([7, None, ["r"], {"r": 1}, True, "R", "r"], start=1):
        store.save(cid(n), meta=metadata(run_id=run))
    store.delete_for_runs(["r"])

    assert [cid(n) for n in range(6, 0, -1)] == store.ids(whole())


@pytest.mark.slow
def test_s1_long_lists_are_no_problem(store: Driver, threads: dict[str, list[str]]) -> None:
    """More names than a database allows parameters (32,766 in SQLite) are one call."""
    many = [f"nobody-{n}" for n in range(33_000)]
    store.delete_for_runs([*many, "t-run3"])
    store.prune([*many, "u"])

    assert [cid(12), cid(11), cid(2), cid(1)] == store.ids(whole("t"))
    assert [cid(13), cid(3)] == store.ids(whole("u"))


def test_s1_prune_keeps_the_latest_of_each_namespace(store: Driver, threads: dict[str, list[str]]) -> None:
    """`keep_latest`, the default, leaves one checkpoint per namespace with its values, writes and metadata."""
    kept = [facts(store.read(cid(13), ns="child")), facts(store.read(cid(3)))]
    others = [facts(item) for item in store.list(whole("u"))]
    for _ in range(2):
        store.prune(["t"])

    assert kept == [facts(item) for item in store.list(whole("t"))]
    assert kept == [facts(store.read(ns="child")), facts(store.read())]
    assert (None, others) == (store.get_tuple(config(id=cid(2))), [facts(item) for item in store.list(whole("u"))])


def test_s1_prune_goes_by_id_not_by_order_of_arrival(store: Driver) -> None:
    """The latest is the greatest id, as for `get_tuple`."""
    for n in (3, 1, 2):
        store.save(cid(n), {"a": n}, {"a": n})
    store.prune(["t"], strategy="keep_latest")

    assert [cid(3)] == store.ids(whole())
    assert {"a": 3} == store.read().checkpoint["channel_values"]


@pytest.mark.parametrize("strategy", ["delete", "delete_all"])
def test_s1_prune_deletes_whole_threads(store: Driver, threads: dict[str, list[str]], strategy: str) -> None:
    """The base class says `delete`, the server `delete_all`: both remove the threads and nothing else."""
    others = [facts(item) for item in store.list(whole("u"))]
    store.prune(["t", "nobody"], strategy=strategy)

    assert [] == store.list(whole("t"))
    assert others == [facts(item) for item in store.list(whole("u"))]


def test_s1_prune_refuses_a_strategy_it_does_not_know(store: Driver, threads: dict[str, list[str]]) -> None:
    """A misspelt strategy deletes nothing."""
    before = everything(store)
    with pytest.raises(InvalidArgument, match="keep_last") as caught:
        store.prune(["t"], strategy="keep_last")

    assert ("invalid_argument", before) == (caught.value.code, everything(store))


@pytest.mark.parametrize("call", ["delete_thread", "prune", "delete_for_runs", "prune nothing"])
def test_s1_a_name_that_is_missing_is_not_the_name_none(store: Driver, call: str) -> None:
    """None is a thread that somebody forgot to name; one that is called "None" keeps what it has."""
    store.save(cid(1), thread="None", meta=metadata(1, run_id="None"))
    method, _, nothing = call.partition(" ")
    with pytest.raises(InvalidArgument):
        store.call(method, None if nothing or method == "delete_thread" else [None])

    assert 1 == len(store.list(whole("None")))


def test_s1_prune_leaves_writes_that_wait_for_a_newer_checkpoint(store: Driver, threads: dict[str, list[str]]) -> None:
    """Under durability async writes overtake their checkpoint: those of the next one stay, those of a lost one go."""
    store.delete_for_runs(["t-run2"])
    for n in (2, 4):
        store.put_writes(config(id=cid(n)), [("each", "early")], "task")
    store.prune(["t"])
    for n in (2, 4):
        store.save(cid(n), parent=cid(n - 1))

    assert ([], [("task", "each", "early")]) == (store.writes(cid(2)), store.writes(cid(4)))


def test_s1_a_thread_goes_on_after_a_prune(store: Driver, threads: dict[str, list[str]]) -> None:
    """New checkpoints find the values that the kept one holds, though its ancestors are gone."""
    store.prune(["t"])
    store.save(cid(4), {"once": "t", "each": 4}, {"once": 1, "each": 4}, parent=cid(3), new={"each": 4})

    assert {"once": "t", "each": 4} == store.read().checkpoint["channel_values"]
    assert [cid(13), cid(4), cid(3)] == store.ids(whole())


def test_s1_deletes_are_on_disk(
    store: Driver, threads: dict[str, list[str]], backend: SqliteBackend, forms: Callable[[Any], Driver]
) -> None:
    """What was deleted stays deleted when the file is opened again."""
    store.delete_thread("u")
    store.delete_for_runs(["t-run1"])
    store.prune(["t"])
    store.saver.close()

    assert [cid(13), cid(3)] == forms(backend.open()).ids(None)
