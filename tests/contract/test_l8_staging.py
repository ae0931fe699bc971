"""L4, L8, S11: which call settles a staged end, and when it leaves the register."""

from __future__ import annotations

import threading

import pytest

from langgraph_ext.errors import ConflictError, StoreError
from langgraph_ext.saver import staging
from langgraph_ext.saver.staging import Staging
from tests.support.attempts import HERE, end
from tests.support.build import cid

NESTED = (("", HERE), ("sub", cid(6)))


@pytest.fixture
def register() -> Staging:
    return Staging()


def test_l4_an_end_is_found_by_its_task_and_at_every_anchor(register: Staging) -> None:
    """By its own `put_writes`; by a `put` below any checkpoint around it, in that one's namespace only."""
    staged = end(anchors=NESTED)
    register.add(staged)

    assert (staged,) == register.of_task("t", HERE, "task")
    assert [(staged,), (staged,)] == [register.anchored("t", *anchor) for anchor in NESTED]
    assert [(), (), ()] == [register.anchored("t", *each) for each in (("", cid(6)), ("sub", HERE), ("", None))]


@pytest.mark.parametrize("place", [("another", HERE, "task"), ("t", cid(6), "task"), ("t", HERE, "another")])
def test_l8_writes_of_another_task_never_settle_it(register: Staging, place: tuple[str, str, str]) -> None:
    register.add(end())

    assert () == register.of_task(*place)


def test_l4_what_was_committed_leaves_the_register(register: Staging) -> None:
    """Nothing is kept of it, so a process that runs for long does not grow."""
    ends = [end(attempt=f"a{n}", task=f"task {n}", anchors=NESTED) for n in range(3)]
    for each in ends:
        register.add(each)
    with register.settling(ends):
        assert register.any

    assert not register.any
    assert [0, 0, 0] == [len(index) for index in (register._staged, register._of_task, register._anchored)]


def test_l5_after_a_commit_that_failed_it_is_staged_as_before(register: Staging) -> None:
    """A full disk, a busy file, Ctrl-C: the next call that concerns it settles it."""
    register.add(end())
    with pytest.raises(StoreError), register.settling([end()]):
        raise StoreError("no space left", code="store_full")

    assert (end(),) == register.anchored("t", "", HERE)


@pytest.mark.parametrize(("code", "left"), [("terminal_conflict", ["a2"]), ("thread_conflict", ["a1", "a2"])])
def test_l6_what_was_refused_for_good_leaves_the_register_alone(register: Staging, code: str, left: list[str]) -> None:
    """Else it would fail every later call of its thread; a call that was refused for another reason keeps all."""
    ends = [end(), end(attempt="a2", task="second")]
    for each in ends:
        register.add(each)
    with pytest.raises(ConflictError), register.settling(ends):
        raise ConflictError("refused", code=code, details={"attempt_id": "a1"})

    assert left == [each.attempt_id for each in register.anchored("t", "", HERE)]


def test_l6_an_attempt_has_one_staged_end(register: Staging) -> None:
    """Its newest; the commit of an older one does not take that away."""
    register.add(end("paused", anchors=NESTED))
    register.add(end("succeeded"))
    register.done(end("paused", anchors=NESTED))

    assert () == register.anchored("t", *NESTED[1])
    assert (end("succeeded"),) == register.of_task("t", HERE, "task")


def test_l4_an_admission_makes_the_register_forget_what_it_gave_up(register: Staging) -> None:
    register.add(end())
    register.forget(["a1", "never staged"])

    assert (False, ()) == (register.any, register.of_task("t", HERE, "task"))


def test_l16_a_result_is_lent_to_many_and_a_question_to_one(register: Staging) -> None:
    """Of several who ask for the same part at once, one may go on with an attempt that has paused."""
    returned, asks = end(), end("paused", attempt="a2", ordinal=1)
    register.add(returned)
    register.add(asks)
    with register.lent(returned.key) as first, register.lent(returned.key) as second:
        assert [returned] == first == second
    with register.lent(asks.key) as first:
        with register.lent(asks.key) as second:
            assert ([asks], []) == (first, second)
        with register.lent(asks.key) as third:
            assert [] == third
        assert (asks,) == register.of_task("t", HERE, "task")[1:]
    with register.lent(asks.key) as first:
        register.forget([asks.attempt_id])
    with register.lent(asks.key) as second:
        assert ([asks], []) == (first, second)


def test_l4_the_register_is_bounded(register: Staging, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first."""
    monkeypatch.setattr(staging, "_MOST", 3)
    for n in range(5):
        register.add(end(attempt=f"a{n}"))

    assert ["a2", "a3", "a4"] == [each.attempt_id for each in register.anchored("t", "", HERE)]


def test_l4_threads_may_use_it_at_once(register: Staging) -> None:
    """Nothing is lost or left over, whoever adds, looks and takes at the same time."""

    def work(worker: int) -> None:
        for n in range(200):
            staged = end(attempt=f"{worker}-{n}", task=f"task {worker}")
            register.add(staged)
            assert staged in register.of_task("t", HERE, f"task {worker}")
            assert staged in register.anchored("t", "", HERE)
            register.done(staged)

    failed: list[BaseException] = []

    def watched(worker: int) -> None:
        try:
            work(worker)
        except BaseException as error:  # noqa: BLE001 - looked at below
            failed.append(error)

    threads = [threading.Thread(target=watched, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ([], False, {}) == (failed, register.any, register._anchored)
