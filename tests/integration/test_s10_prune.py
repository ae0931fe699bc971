"""S10: what prune takes away, and what it never does: what somebody may still come back to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from langgraph_ext import Frame, LedgerSaver, durable
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.saver import Pruned
from tests.support.apps import CONFIG, State, answered, asks, fails, line, says, tried
from tests.support.build import cid, config, whole
from tests.support.growing import check_strands, pieces


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def saver(path: Path) -> Iterator[LedgerSaver]:
    with LedgerSaver(path) as saver:
        yield saver


def heads(saver: LedgerSaver) -> list[str]:
    return [each.config["configurable"]["checkpoint_id"] for each in saver.list(config(ns=""))]


def pending(saver: LedgerSaver, id: str | None = None) -> Any:
    found = saver.get_tuple(config(id=id))
    assert found is not None
    return found.pending_writes


def branched(app: Any) -> Any:
    """Somebody goes back to the first checkpoint of the run and corrects it there; returns where the run had stood."""
    head = app.get_state(CONFIG).config
    first = [*app.get_state_history(CONFIG)][-1].config
    app.update_state(first, {"log": ["corrected"]}, as_node="a")
    return head


# -- what stays


def test_s10_a_question_on_another_branch_stays_and_is_answered(saver: LedgerSaver) -> None:
    """It is not at the newest checkpoint; its own stays listed, with what its task had written."""
    app = line(saver, a=says("a"), ask=asks("sure?"), b=says("b"))
    tried(app, durability="sync")
    asked = branched(app)
    before = pending(saver, asked["configurable"]["checkpoint_id"])
    saver.prune(["t"])

    assert 2 == len(heads(saver))
    assert before == pending(saver, asked["configurable"]["checkpoint_id"])
    assert ["in", "a", "yes", "b"] == app.invoke(Command(resume="yes"), asked)["log"]
    assert [] == saver.ledger.verify()


def test_s10_a_question_of_a_subgraph_on_another_branch_stays(saver: LedgerSaver) -> None:
    """So do the checkpoints around it, in every graph that encloses its task."""
    inner = line(None, deep=line(None, ask=asks("sure?")))
    app = line(saver, a=says("a"), inner=inner)
    tried(app, durability="sync")
    asked = branched(app)
    before = {(each.config["configurable"]["checkpoint_ns"]) for each in saver.list(whole())}
    saver.prune(["t"])

    assert before == {(each.config["configurable"]["checkpoint_ns"]) for each in saver.list(whole())}
    assert "yes" == app.invoke(Command(resume="yes"), asked)["log"][-1]


def test_s10_an_effect_in_doubt_stays_and_is_resolved(saver: LedgerSaver) -> None:
    """Its call raised, and somebody went back behind it; it is known as before, and so is where it stands."""

    def charge(key: str) -> Any:
        raise TimeoutError

    @durable(effect="write")
    def pays(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("charge", {}, charge)]}

    app = line(saver, a=says("a"), pays=pays)
    with pytest.raises(TimeoutError):
        app.invoke({"log": ["in"]}, CONFIG, durability="sync")
    stopped = branched(app)
    before = app.get_state(stopped), saver.ledger.effects(status="unknown")
    saver.prune(["t"])

    assert before == (app.get_state(stopped), saver.ledger.effects(status="unknown"))
    assert (2, True) == (len(heads(saver)), before[1][0].in_doubt)
    resolved = saver.ledger.resolve_effect(before[1][0].effect_id, receipt={"found": "in their books"})
    saver.prune(["t"])
    assert ("committed", 1) == (resolved.status, len(heads(saver)))


def test_s10_an_answer_that_was_taken_is_not_given_again(saver: LedgerSaver) -> None:
    """A subgraph asks twice in one step of the root graph. What says that the first answer was taken is pruned."""
    inner = line(None, first=asks("first?"), second=asks("second?"))
    app = line(saver, inner=inner, b=says("b"))
    tried(app, durability="sync")
    answered(app, "one", durability="sync")
    before = pending(saver)
    saver.prune(["t"])
    assert before == pending(saver)
    tried(app, None, durability="sync")  # who goes on without an answer is asked

    assert ["second?"] == [question.value for question in app.get_state(CONFIG).interrupts]
    assert ["one", "two", "b"] == app.invoke(Command(resume="two"), CONFIG)["log"][-3:]


def test_s10_a_paused_run_goes_on_as_if_nothing_had_been_pruned(saver: LedgerSaver) -> None:
    """Ten turns, the last of which asks: after every turn the thread is pruned."""
    app, other = (line(saver, a=says("a"), ask=asks("sure?"), b=says("b")) for _ in range(2))
    where: Any = {"configurable": {"thread_id": "other"}}
    for _ in range(10):
        for each, at in ((app, CONFIG), (other, where)):
            tried(each, config=at)
            saver.prune(["t"])
            each.invoke(Command(resume="yes"), at)
        saver.prune(["t"])

    assert app.get_state(CONFIG).values == other.get_state(where).values
    assert (1, []) == (len(heads(saver)), saver.ledger.verify())


# -- what goes


def test_s10_what_attempts_gave_back_goes_with_their_checkpoints(saver: LedgerSaver, path: Path) -> None:
    """The attempts stay on record; nobody can ask for their results any more, and verify knows."""

    @durable
    def talks(state: State, frame: Frame) -> Any:
        return {"log": ["long" * 1000]}

    app = line(saver, a=talks, b=talks)
    for _ in range(3):
        tried(app, durability="sync")
    run_ids = [run.run_id for run in saver.ledger.runs()]
    before = [saver.ledger.attempts(run_id) for run_id in run_ids]
    saver.prune(["t"])

    with sqlite3.connect(path) as connection:
        lengths = [row[0] for row in connection.execute("SELECT length(writes) FROM attempt")]
    assert [0] * 6 == lengths
    assert (before, []) == ([saver.ledger.attempts(run_id) for run_id in run_ids], saver.ledger.verify())


def test_s10_prune_says_what_it_took_and_what_it_would_take(saver: LedgerSaver) -> None:
    app = line(saver, a=says("a"), b=says("b"))
    for _ in range(3):
        tried(app, durability="sync")
    count = len(heads(saver))
    would = saver.prune_thread("t", keep_last=2, dry_run=True)
    assert (count, Pruned(checkpoints=count - 2)) == (len(heads(saver)), would)
    did = saver.prune_thread("t", keep_last=2)

    assert (2, count - 2, 5) == (len(heads(saver)), did.checkpoints, did.events)
    assert Pruned() == saver.prune_thread("t", keep_last=2) == saver.prune_thread("nobody")


async def test_s10_the_async_form_does_the_same(path: Path) -> None:
    async with LedgerSaver(path) as saver:
        app = line(saver, a=says("a"), b=says("b"))
        await app.ainvoke({"log": []}, CONFIG, durability="sync")
        would = await saver.aprune_thread("t", dry_run=True)
        did = await saver.aprune_thread("t")

        assert (3, 3) == (would.checkpoints, did.checkpoints)
        assert 1 == len([each async for each in saver.alist(whole())])


@pytest.mark.parametrize("keep_last", [0, -1, True, 1.5, "1", None])
def test_s10_what_cannot_be_kept_is_refused(saver: LedgerSaver, keep_last: Any) -> None:
    with pytest.raises(InvalidArgument, match="keep_last"):
        saver.prune_thread("t", keep_last=keep_last)


def test_s10_a_long_thread_is_pruned_in_slices(saver: LedgerSaver, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a transaction; what is in between is a sound thread, with the newest checkpoint as it was."""
    app = line(saver, a=says("a" * 1000), b=says("b"))
    for _ in range(8):
        tried(app, durability="sync")
    state, seen = app.get_state(CONFIG), []
    transact = saver.database.transact

    def small(fn: Any, *args: Any, **kwargs: Any) -> Any:
        answer = transact(fn, *args, **(kwargs | {"most": 5} if fn.__name__ == "prune" else kwargs))
        seen.append((len(heads(saver)), app.get_state(CONFIG) == state, saver.ledger.verify()))
        check_strands(path, trimmed=True)
        return answer

    monkeypatch.setattr(saver.database, "transact", small)
    gone = saver.prune_thread("t")

    assert pieces(path)
    assert [27, 22, 17, 12, 7, 2, 1] == [count for count, *_ in seen]
    assert ([(True, [])] * 7, 31) == ([tuple(rest) for _, *rest in seen], gone.checkpoints)


# -- events


def test_s10_l48_a_stored_cursor_sees_every_event_once_or_is_told(saver: LedgerSaver) -> None:
    """Those that went are missing for who had not seen them; who had, reads on; numbers stay what they were."""
    app = line(saver, a=says("a"), b=says("b"), ask=asks("sure?"), c=fails(1))
    tried(app, durability="sync")
    run_id = saver.ledger.runs()[0].run_id
    middle = saver.ledger.events(run_id)
    answered(app, durability="sync")
    tried(app, None, durability="sync")
    whole_ = saver.ledger.events(run_id)
    assert middle == whole_[: len(middle)]
    saver.prune(["t"])
    kept = saver.ledger.events(run_id)

    assert kept
    assert kept == whole_[-len(kept) :] == list(saver.ledger.follow(run_id, idle_seconds=0))
    gone = whole_[-len(kept) - 1]
    for event in whole_:
        if event.cursor < gone.cursor:
            for read in (saver.ledger.events, lambda *a, **k: list(saver.ledger.follow(*a, idle_seconds=0, **k))):
                with pytest.raises(NotFound, match="cursor_expired") as told:
                    read(run_id, after=event.cursor)
                assert gone.cursor == told.value.details["oldest"]
        else:
            assert [each for each in whole_ if each.cursor > event.cursor] == saver.ledger.events(
                run_id, after=event.cursor
            )
    assert saver.ledger.snapshot(run_id).cursor == whole_[-1].cursor
    assert [] == saver.ledger.verify()


def test_s10_l48_numbers_go_on_behind_a_prune(saver: LedgerSaver) -> None:
    """A run that is pruned while it waits, twice, and goes on, is numbered without a gap."""
    app = line(saver, a=says("a"), ask=asks("sure?"), b=says("b"), again=asks("really?"), c=says("c"))
    tried(app, durability="sync")
    run_id = saver.ledger.runs()[0].run_id
    seen = saver.ledger.events(run_id)
    for _ in range(2):
        saver.prune(["t"])
        answered(app, durability="sync")
        seen += saver.ledger.events(run_id, after=seen[-1].cursor)

    assert list(range(1, len(seen) + 1)) == [event.run_seq for event in seen]
    assert "run.succeeded" == seen[-1].name


def test_s10_l48_a_follower_that_was_overtaken_is_told(saver: LedgerSaver) -> None:
    """It has read a part; what it was to be shown next is taken away."""
    app = line(saver, a=says("a"), b=says("b"), c=says("c"))
    tried(app, durability="sync")
    run_id = saver.ledger.runs()[0].run_id
    following = saver.ledger.follow(run_id)
    assert "run.started" == next(following).name
    tried(app, durability="sync")
    saver.prune(["t"])
    rest = following  # what it had fetched is shown; nothing else is left out in silence

    assert 3 <= len([*rest])


def test_s10_ids_that_prune_takes_stay_taken(saver: LedgerSaver) -> None:
    """The log's numbers never come again, whatever is pruned."""
    app = line(saver, a=says("a"))
    numbers = set()
    for _ in range(4):
        tried(app, durability="sync")
        numbers.add(saver.ledger.events()[-1].cursor)
        saver.prune(["t"])
        numbers.add(saver.ledger.events()[-1].cursor)

    assert 8 == len(numbers)


def test_s10_a_subgraph_of_a_pruned_step_keeps_its_last_checkpoint(saver: LedgerSaver) -> None:
    """As LangGraph has it for `keep_latest`; a sweep takes it away (test_s10_sweep.py)."""
    app = line(saver, inner=line(None, b=says("b"), c=says("c")))
    for _ in range(2):
        tried(app, durability="sync")
    saver.prune(["t"])

    assert [1, 1, 1] == sorted(
        sum(each.config["configurable"]["checkpoint_ns"] == ns for each in saver.list(whole()))
        for ns in {each.config["configurable"]["checkpoint_ns"] for each in saver.list(whole())}
    )
    assert cid(1) not in heads(saver)
