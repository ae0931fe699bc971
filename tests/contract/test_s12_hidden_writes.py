"""S12: reads hide what LangGraph would take for an unasked answer or for success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.build import NULL_TASK, cid, config
from tests.support.driver import Driver

ANSWER = (NULL_TASK, "__resume__", "yes")


@pytest.fixture
def thread(store: Driver) -> Driver:
    """A checkpoint in the root and one in a subgraph."""
    store.save(cid(1))
    store.save(cid(2), ns="child")
    return store


@pytest.fixture
def write(thread: Driver) -> Callable[..., None]:
    """`write(batch, task=…, ns=…)` puts writes to the root's or the subgraph's checkpoint, as a running graph does."""

    def put(*batch: tuple[str, Any], task: str = "task", ns: str = "") -> None:
        where = config(ns=ns, id=cid(2 if ns else 1))
        where["configurable"]["__pregel_runtime"] = object()
        thread.put_writes(where, batch, task)

    return put


def test_s12_an_answer_that_was_taken_is_hidden(thread: Driver, write: Callable[..., None]) -> None:
    """Once a task stored a longer resume list, the null task's answer would answer the next question unasked."""
    write(("__resume__", "yes"), task=NULL_TASK)
    assert [ANSWER] == thread.writes(cid(1))
    write(("__resume__", ["yes"]), ("a", 1))

    assert [("task", "__resume__", ["yes"]), ("task", "a", 1)] == thread.writes(cid(1))


def test_s12_an_answer_taken_in_another_namespace_is_hidden(thread: Driver, write: Callable[..., None]) -> None:
    """The question may be a subgraph's: its task stores the list in the subgraph's namespace."""
    write(("__resume__", "yes"), task=NULL_TASK)
    write(("__resume__", ["yes"]), ("a", 1), ns="child")

    assert [] == thread.writes(cid(1))
    assert [("task", "__resume__", ["yes"]), ("task", "a", 1)] == thread.writes(cid(2), ns="child")


def test_s12_an_answer_nobody_took_is_shown(thread: Driver, write: Callable[..., None]) -> None:
    """A list stored before it, one that did not grow, and one of another thread say nothing of this answer."""
    write(("__resume__", ["old"]))
    write(("__resume__", "yes"), task=NULL_TASK)
    write(("__resume__", ["old"]), ("__interrupt__", "again"))
    thread.save(cid(1), thread="other")
    thread.put_writes(config("other", id=cid(1)), [("__resume__", ["yes", "more"])], "task")

    assert ANSWER in thread.writes(cid(1))


def test_s12_the_second_answer_is_hidden_when_the_list_grows_again(thread: Driver, write: Callable[..., None]) -> None:
    """Each answer is hidden by the growth that followed it, not by an earlier one."""
    write(("__resume__", "one"), task=NULL_TASK)
    write(("__interrupt__", "q1"), ("__resume__", ["one"]))
    write(("__resume__", "two"), task=NULL_TASK)
    assert (NULL_TASK, "__resume__", "two") in thread.writes(cid(1))
    write(("__resume__", ["one", "two"]), ("a", 1))

    assert [NULL_TASK] != [task for task, _, _ in thread.writes(cid(1))][:1]


@pytest.mark.parametrize("at", ["get_tuple", "list", "history"])
def test_s12_what_a_failing_call_wrote_beside_its_error_is_hidden(
    thread: Driver, write: Callable[..., None], at: str
) -> None:
    """Partial output beside `__error__` would make LangGraph take the task for finished: its branch would be lost."""
    write(("a", "partial"), ("__error__", "no"), ("b", "partial"))
    thread.save(cid(3), {}, {}, parent=cid(1))
    reads: dict[str, Callable[[], Any]] = {
        "get_tuple": lambda: thread.writes(cid(1)) == [("task", "__error__", "no")],
        "list": lambda: thread.list(config())[1].pending_writes == [("task", "__error__", "no")],
        "history": lambda: thread.history(config(id=cid(3)), ["a", "b"]) == {"a": {"writes": []}, "b": {"writes": []}},
    }

    assert reads[at]()


def test_s12_hidden_writes_leave_their_slots_free(thread: Driver, write: Callable[..., None]) -> None:
    """The first later call fills them: what the task wrote when it succeeded counts."""
    write(("a", "partial"), ("__error__", "no"))
    write(("a", "whole"), ("b", "whole"))
    write(("a", "late"), ("b", "late"))

    assert [("task", "__error__", "no"), ("task", "a", "whole"), ("task", "b", "whole")] == thread.writes(cid(1))


def test_s12_a_handled_error_hides_nothing(thread: Driver, write: Callable[..., None]) -> None:
    """`__error_source_node__` marks an error that a handler took over."""
    write(("a", 1), ("__error__", "no"), ("__error_source_node__", "node"))

    assert ["__error__", "a", "__error_source_node__"] == [channel for _, channel, _ in thread.writes(cid(1))]


def test_s12_an_error_beside_another_calls_success_hides_nothing(thread: Driver, write: Callable[..., None]) -> None:
    """Only the call that holds the error is looked at."""
    write(("__error__", "no"))
    write(("a", 1))
    write(("b", 2), task="other")

    assert [("other", "b", 2), ("task", "__error__", "no"), ("task", "a", 1)] == thread.writes(cid(1))


def test_s12_a_program_that_writes_an_error_itself_means_what_it_writes(thread: Driver) -> None:
    """Only a running graph's failing task leaves partial output; scenario 11 writes both and reads both."""
    thread.put_writes(config(id=cid(1)), [("__error__", "no"), ("a", 1)], "task")

    assert [("task", "__error__", "no"), ("task", "a", 1)] == thread.writes(cid(1))


def test_s12_a_copied_thread_hides_the_same(thread: Driver, write: Callable[..., None]) -> None:
    """What a read hides is known to the copy as well, and the copy's own later calls count like any other."""
    write(("__resume__", "yes"), task=NULL_TASK)
    write(("__resume__", ["yes"]), task="asker")
    write(("a", "partial"), ("__error__", "no"))
    thread.copy_thread("t", "copy")
    assert thread.writes(cid(1)) == thread.writes(cid(1), thread="copy")
    thread.put_writes(config("copy", id=cid(1)), [("a", "whole")], "task")

    assert [("asker", "__resume__", ["yes"]), ("task", "__error__", "no"), ("task", "a", "whole")] == thread.writes(
        cid(1), thread="copy"
    )
