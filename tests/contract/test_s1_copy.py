"""S1: copy_thread makes a second thread that shares nothing with the first but its past."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument
from tests.support.build import NULL_TASK, cid, config, metadata, whole
from tests.support.compare import facts
from tests.support.driver import Driver


def story(store: Driver, thread: str) -> list[Any]:
    """All that a thread tells, with its own name left out."""
    told = []
    for item in store.list(whole(thread)):
        fact = facts(item)
        assert fact is not None
        assert thread == fact["at"][0]
        told.append({**fact, "at": fact["at"][1:], "parent": fact["parent"] and fact["parent"][1:]})
    return told


@pytest.fixture
def copied(store: Driver) -> Driver:
    """A thread with a fork, a subgraph namespace, pending and special writes; and its copy `copy`."""
    store.save(cid(1), {"a": "root"}, {"a": 1}, meta=metadata(-1, "input"))
    store.put_writes(config(id=cid(1)), [("a", "w1")], "task", "~path")
    store.save(cid(2), {"a": "left"}, {"a": 2}, parent=cid(1), meta=metadata(0, run_id="r"))
    store.save(cid(3), {"a": "right"}, {"a": 3}, parent=cid(1), meta=metadata(0, "fork"))
    store.put_writes(config(id=cid(2)), [("__interrupt__", "q"), ("a", "w2")], "task-1", "~a")
    store.put_writes(config(id=cid(2)), [("__resume__", "answer")], NULL_TASK)
    store.put_writes(config(id=cid(2)), [("a", "w0")], "task-2", "~0")
    store.save(cid(4), {"b": "sub"}, {"b": 1}, ns="child:1", meta=metadata(-1, "input", parents={"": cid(2)}))
    store.copy_thread("t", "copy")
    return store


def test_s1_a_copy_tells_the_whole_story(copied: Driver) -> None:
    """Checkpoints, forks, namespaces, metadata, parents, values and writes with their order are all there."""
    assert 4 == len(story(copied, "copy"))
    assert story(copied, "t") == story(copied, "copy")
    assert [("task-2", "a", "w0"), ("task-1", "__interrupt__", "q"), ("task-1", "a", "w2")] == copied.writes(
        cid(2), thread="copy"
    )[1:]


def test_s1_a_copy_and_its_source_do_not_touch_each_other(copied: Driver) -> None:
    """New checkpoints, writes and replaced special writes in one of the two are invisible in the other."""
    before = story(copied, "t")
    copied.save(cid(5), {"a": "copy only"}, {"a": 4}, thread="copy", parent=cid(2))
    copied.save(cid(3), {"a": "replaced"}, {"a": 5}, thread="copy", parent=cid(1))
    copied.put_writes(config("copy", id=cid(2)), [("__interrupt__", "other question")], "task-1", "~a")
    assert before == story(copied, "t")
    after = story(copied, "copy")
    copied.save(cid(6), {"a": "source only"}, {"a": 6}, parent=cid(3))
    copied.put_writes(config(id=cid(2)), [("__interrupt__", "third question")], "task-1", "~a")

    assert after == story(copied, "copy")


@pytest.mark.parametrize(("doomed", "kept"), [("t", "copy"), ("copy", "t")])
def test_s1_deleting_one_of_two_copies_leaves_the_other(copied: Driver, doomed: str, kept: str) -> None:
    """Values are not shared between the two in a way that deleting or pruning one could break."""
    before = story(copied, kept)
    copied.prune([doomed])
    copied.delete_thread(doomed)

    assert ([], before) == (copied.list(whole(doomed)), story(copied, kept))


def test_s1_a_copy_can_be_continued_and_copied_again(copied: Driver) -> None:
    """A question pending in the source can be answered in the copy's copy."""
    copied.copy_thread("copy", "again")
    copied.put_writes(config("again", id=cid(2)), [("__resume__", ["yes"]), ("a", "late")], "task-1", "~a")

    assert ("task-1", "__resume__", ["yes"]) in copied.writes(cid(2), thread="again")
    assert story(copied, "t") == story(copied, "copy") != story(copied, "again")


def test_s1_writes_that_wait_for_their_checkpoint_are_copied(store: Driver) -> None:
    """A write that overtook its checkpoint is part of the thread."""
    store.save(cid(1))
    store.put_writes(config(id=cid(2)), [("a", "early")], "task")
    store.copy_thread("t", "copy")
    store.save(cid(2), thread="copy", parent=cid(1))

    assert [("task", "a", "early")] == store.writes(cid(2), thread="copy")


def test_s1_copying_nothing_makes_nothing(store: Driver) -> None:
    """A source that does not exist is no error and makes no thread."""
    store.copy_thread("nobody", "copy")

    assert [] == store.list(None)


def test_s1_copying_into_a_thread_that_exists_is_refused(copied: Driver) -> None:
    """Two histories are never mixed: the target keeps what it had, and the error names it."""
    copied.save(cid(1), {"a": "other"}, thread="taken")
    before = story(copied, "taken")
    with pytest.raises(InvalidArgument, match="taken"):
        copied.copy_thread("t", "taken")

    assert before == story(copied, "taken")


def test_s1_copying_a_thread_onto_itself_loses_nothing(copied: Driver) -> None:
    """It changes nothing, whether it is refused or not."""
    before = story(copied, "t")
    with contextlib.suppress(InvalidArgument):
        copied.copy_thread("t", "t")

    assert before == story(copied, "t")
