"""L4, S11: the saver's own calls settle what is staged, in both forms."""

from __future__ import annotations

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import attempts
from tests.support.attempts import HERE, begin, end, force, status_of
from tests.support.build import cid, config
from tests.support.driver import Driver


@pytest.fixture
def saver(saver: LedgerSaver) -> LedgerSaver:
    """With a running attempt of the task."""
    saver.database.transact(begin)
    return saver


def test_l4_a_tasks_writes_settle_what_it_staged(saver: LedgerSaver, store: Driver) -> None:
    saver.staging.add(end())
    store.put_writes(config(id=HERE), [("a", 1)], "task")

    assert ("succeeded", False) == (status_of(saver.database), saver.staging.any)


def test_l4_empty_writes_settle_too(saver: LedgerSaver, store: Driver) -> None:
    saver.staging.add(end())
    store.put_writes(config(id=HERE), [], "task")

    assert ("succeeded", False) == (status_of(saver.database), saver.staging.any)


@pytest.mark.parametrize("parent_is_known", [True, False])
def test_l4_a_put_settles_what_no_writes_settled(saver: LedgerSaver, store: Driver, parent_is_known: bool) -> None:
    """Below an anchor; whether or not the put can be stored at the first try. Late writes then are only stored."""
    store.save(HERE, {"a": 0})
    if not parent_is_known:
        saver.recent._puts[("t", "")] = (saver.recent._puts[("t", "")][0]._replace(encoded=b"stale"), 1)
    saver.staging.add(end())
    store.save(cid(6), {"a": 1}, {"a": 2}, parent=HERE, new={"a": 2})
    settled = saver.database.read(attempts.find, "a1")
    store.put_writes(config(id=HERE), [("a", 1)], "task")

    assert ("succeeded", False) == (status_of(saver.database), saver.staging.any)
    assert settled == saver.database.read(attempts.find, "a1")


def test_l8_writes_of_another_task_settle_nothing(saver: LedgerSaver, store: Driver) -> None:
    saver.staging.add(end())
    store.put_writes(config(id=HERE), [("a", 1)], "another task")

    assert ("running", True) == (status_of(saver.database), saver.staging.any)


def test_l6_a_refused_end_stores_nothing_and_is_not_tried_again(saver: LedgerSaver, store: Driver) -> None:
    """The call that brought it fails; the next one of the thread does not."""
    saver.database.transact(force, "a1", "interrupted")
    saver.staging.add(end())
    store.save(HERE, {"a": 0})
    with pytest.raises(ConflictError, match="terminal_conflict"):
        store.put_writes(config(id=HERE), [("a", 1)], "task")
    store.save(cid(6), {"a": 1}, parent=HERE)

    assert [cid(6), HERE] == store.ids(config())
    assert not saver.staging.any
